#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/clock.h"
#include "config/metrics.h"
#include "config/settings.h"
#include "proxy/origin.h"
#include "tests/support/scripted_origin.h"

namespace secondsight::proxy::test {

using secondsight::test::OriginConnection;
using secondsight::test::ScriptedOrigin;

/// Time stands still until the test moves it.
class SteadyHand final : public Clock {
 public:
  WallTime wall() const noexcept override { return WallTime{}; }
  SteadyTime steady() const noexcept override { return now; }
  SteadyTime now{std::chrono::hours(1)};
};

/// What one fetch delivered, and hooks to act from within its callbacks.
class Recorder final : public OriginReceiver {
 public:
  void on_head(OriginHead&& received) override;
  Flow on_body(std::span<const std::byte> bytes) override;
  void on_trailer(cache::policy::FieldLine field) override;
  void on_done(OriginError error) override;

  std::optional<OriginHead> head;
  std::string body;
  std::string trailers;
  std::optional<OriginError> done;
  std::uint64_t body_bytes = 0;
  bool keeps_body = true;
  std::function<void()> at_head, at_done;
  std::function<Flow()> at_body;
};

/// "None 200 OK [X: y|] body": everything that a response came to, in one line.
std::string summary(const Recorder& recorder);

/// A client on an io_context that the test's thread runs.
class OriginClientTest {
 public:
  explicit OriginClientTest(const std::vector<std::string>& urls,
                            const std::function<void(OriginSettings&)>& change = {});

  std::unique_ptr<OriginFetch> start(OriginRequest request, OriginReceiver& receiver);
  std::unique_ptr<OriginFetch> get(std::string target, OriginReceiver& receiver);
  /// Runs io until `condition` holds; the bound only keeps a failing test from hanging. False when
  /// it was reached.
  bool run_until(const std::function<bool()>& condition);
  /// Fetches and waits for the end.
  std::string fetch(OriginRequest request);
  std::string fetch(std::string target);
  /// Serves everything that is ready, until nothing is.
  void drain();
  void pass(std::chrono::milliseconds time);
  std::uint64_t errors(OriginError error);
  std::uint64_t connections();

  net::io_context io;
  SteadyHand clock;
  Metrics metrics;
  OriginSettings settings;
  std::unique_ptr<OriginClient> client;
};

OriginRequest make_request(std::string method, std::string target);

}  // namespace secondsight::proxy::test
