#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "config/file_system.h"
#include "config/settings.h"
#include "proxy/server.h"
#include "tests/support/manual_clock.h"
#include "tests/support/raw_client.h"
#include "tests/support/scripted_origin.h"

namespace secondsight::proxy::test {

using secondsight::test::ManualClock;
using secondsight::test::OriginConnection;
using secondsight::test::ScriptedOrigin;
using secondsight::testing::RawClient;
using secondsight::testing::RawResponse;

/// A folder that is gone when the test is.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

/// The whole proxy in this process: real sockets, real threads, a disk cache in a folder of its
/// own, time by hand.
class RunningProxy {
 public:
  using Change = std::function<void(Settings&)>;
  explicit RunningProxy(const std::string& origin_url, const Change& change = {},
                        std::unique_ptr<FileSystem> files = nullptr);
  ~RunningProxy();
  RunningProxy(const RunningProxy&) = delete;
  RunningProxy& operator=(const RunningProxy&) = delete;

  std::uint16_t port() const;
  /// Only with settings.admin.enabled and port 0.
  std::uint16_t admin_port() const { return server_->admin_endpoint().value().port(); }
  /// One request on a connection of its own. `more`: further field lines, each with its CRLF.
  RawResponse get(std::string_view target, std::string_view more = {}) const;
  RawResponse send(std::string_view method, std::string_view target, std::string_view more = {},
                   std::string_view body = {}) const;
  /// Ends the process's way and starts it again on the same folder.
  void restart();
  void stop() {
    stop([] { return true; });
  }
  /// As Server::stop().
  void stop(const std::function<bool()>& hurry);
  /// Everything admitted so far is on disk or was refused.
  void drain() { server_->cache().drain(); }
  /// What Maintenance does once a second.
  void try_disk_again() { server_->cache().try_disk_again(); }
  /// A metric's value, by its name and labels as exposed; 0 when there is none.
  double metric(std::string_view name) const;
  std::filesystem::path directory() const { return folder_.path(); }

  ManualClock clock;

 private:
  void start(std::unique_ptr<FileSystem> files);
  TemporaryDirectory folder_;
  Settings settings_;
  std::unique_ptr<Server> server_;
};

/// An origin that answers by target; every answer is "HTTP/1.1 ..." bytes, sent as they are.
/// Unknown targets get 404 with "Cache-Control: no-store".
class RoutedOrigin {
 public:
  /// Makes the answer from the whole request as it came.
  using Answer = std::function<std::string(const std::string& request)>;
  RoutedOrigin();
  void on(const std::string& target, Answer answer);
  void on(const std::string& target, std::string answer);
  std::string url() const { return origin_->url(); }
  /// How many requests came for that target.
  std::size_t count(std::string_view target) const;
  std::vector<std::string> requests() const { return origin_->requests(); }

 private:
  std::string answer(const std::string& request);
  std::mutex mutex_;
  std::map<std::string, Answer> answers_;
  std::unique_ptr<ScriptedOrigin> origin_;
};

/// "HTTP/1.1 200 OK" with Content-Length, these field lines ("A: b\r\n...") and that body.
std::string ok(std::string_view fields, std::string_view body);

}  // namespace secondsight::proxy::test
