#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <variant>

#include "loadtest/asio.h"

namespace secondsight::loadtest {

/// One line of the proxy's log: TIME level message name=value, with quotes around what holds
/// spaces.
struct LogLine {
  std::string level;
  std::string message;
  std::map<std::string, std::string> fields;
};
/// Empty when the line does not have that form.
std::optional<LogLine> parse_log_line(std::string_view line);

/// "127.0.0.1:8080" or "[::1]:8080"; empty for anything else.
std::optional<tcp::endpoint> parse_endpoint(std::string_view text);

/// A proxy that this process started and that does not outlive it: the kernel kills it when the
/// starting thread ends, in whatever way. What it says goes to a file.
class ProxyProcess {
 public:
  struct Options {
    std::string binary;
    std::string config_file;
    std::string log_file;
    std::chrono::milliseconds start_timeout{20'000};
  };
  /// Returns once it said that it is ready, or what went wrong in words, its last lines included.
  static std::variant<std::unique_ptr<ProxyProcess>, std::string> start(const Options& options);
  /// Kills it if it still runs.
  ~ProxyProcess();

  pid_t pid() const noexcept;
  tcp::endpoint address() const;
  std::optional<tcp::endpoint> admin_address() const;

  /// SIGTERM, then SIGKILL after `timeout`. Empty when it ended by itself with 0, else how it
  /// ended.
  std::string stop(std::chrono::milliseconds timeout);

 private:
  ProxyProcess();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace secondsight::loadtest
