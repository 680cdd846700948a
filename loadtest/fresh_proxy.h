#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "loadtest/measured_run.h"
#include "loadtest/policy_options.h"
#include "loadtest/proxy_process.h"

namespace secondsight::loadtest {

/// What a proxy that we start ourselves is told.
struct FreshProxyOptions {
  std::string binary;
  PolicyChoice policy;
  std::string directory;  // gets POLICY.toml, POLICY.log and the cache POLICY-cache
  std::string origin_url;
  std::uint64_t disk_bytes = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t expected_keys = 1;
  unsigned window_hours = 24;
  unsigned workers = 1;
};

/// Sizes for a workload: disk 5 % and memory 1 % of its unique bytes, at least 1 MiB each (the
/// smallest disk log); one generation for 10 % of its distinct keys.
void size_for(const Plan& plan, FreshProxyOptions& options);

/// Its configuration file.
std::string config_text(const FreshProxyOptions& options, const std::string& cache_directory);

/// A running proxy with an empty cache.
struct FreshProxy {
  std::unique_ptr<ProxyProcess> process;
  ProxyUnderTest under_test;
};
/// Removes an earlier run's cache of the same name first. Throws RunError.
FreshProxy start_fresh_proxy(const FreshProxyOptions& options);
/// Ends it; throws RunError when it does not end as it should.
void stop_proxy(FreshProxy& proxy);

}  // namespace secondsight::loadtest
