#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "loadtest/driver.h"
#include "loadtest/origin.h"
#include "loadtest/plan.h"
#include "loadtest/written.h"

namespace secondsight::loadtest {

/// Where one proxy can be looked at. Each part may be missing; what it would tell is then unknown.
struct ProxyUnderTest {
  std::string policy;  // names the run in reports
  tcp::endpoint address;
  std::optional<tcp::endpoint> admin;  // /metrics
  std::optional<pid_t> pid;            // the kernel's counts
  std::string cache_directory;         // empty: unknown
  std::uint64_t disk_limit_bytes = 0;  // 0: unknown
};

/// One run: what the client saw, and what was written meanwhile by three counts.
struct RunReport {
  std::string policy;
  unsigned connections = 0;
  double rate = 0;
  DriveResult drive;
  std::optional<std::uint64_t> origin_fetches;  // counted by our own origin
  ProxyCounters counters;  // of this run alone, gauges as they stood at its end
  std::optional<ProcessIo> kernel;
  std::optional<DirectoryUse> directory;
  std::vector<std::string> notes;  // disagreements, and what could not be measured
};

/// Drives the plan through the proxy and measures. `origin` may be null when it is not ours.
RunReport measured_run(const Plan& plan, const ProxyUnderTest& proxy, const Origin* origin,
                       const DriveOptions& options);

}  // namespace secondsight::loadtest
