#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "loadtest/asio.h"
#include "loadtest/histogram.h"
#include "loadtest/outcome.h"
#include "loadtest/plan.h"

namespace secondsight::loadtest {

/// How far a run is.
struct DriveProgress {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::uint64_t hits = 0;
  std::uint64_t failed = 0;  // errors and corrupt bodies
  std::chrono::steady_clock::duration elapsed{};
};

struct DriveOptions {
  tcp::endpoint server;
  std::string host;  // of the Host field
  unsigned connections = 16;
  double rate = 0;                            // requests a second; 0: closed loop
  std::chrono::milliseconds timeout{30'000};  // for one request
  std::function<void(const DriveProgress&)>
      on_progress;  // about four times a second, and at the end
};

/// What one run saw from the client's side.
struct DriveResult {
  std::uint64_t requests = 0;  // ended, in whatever way
  std::uint64_t hits = 0;
  std::uint64_t hit_bytes = 0;
  std::uint64_t body_bytes = 0;
  std::array<std::uint64_t, kOutcomes> outcomes{};
  std::uint64_t errors = 0;
  std::uint64_t corrupt_bodies = 0;
  std::uint64_t reconnects =
      0;  // a kept connection was closed before its next request was answered
  std::uint64_t one_hit_written =
      0;  // objects asked once whose response says that they went to disk
  std::map<std::string, std::uint64_t, std::less<>> details;  // responses by Cache-Status detail
  std::vector<std::string> examples;                          // the first few failures, in words
  Histogram
      latency;  // ns, until the body's last byte; from the intended start when a rate is given
  double seconds = 0;
  double cpu_seconds = 0;  // of the driving thread
  int interrupted_by = 0;  // signal; 0: ran to its end
};

/// Sends every request of the plan in order: to whichever of the keep-alive connections is free
/// (closed loop), or each at its own time and no later than a connection is free (open loop). Every
/// body is verified as it comes. SIGINT and SIGTERM end the run early. Uses the calling thread
/// only.
DriveResult drive(const Plan& plan, const DriveOptions& options);

}  // namespace secondsight::loadtest
