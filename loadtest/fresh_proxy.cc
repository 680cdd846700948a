#include "loadtest/fresh_proxy.h"

#include <algorithm>
#include <filesystem>
#include <variant>

#include "config/units.h"
#include "loadtest/report.h"
#include "loadtest/workload_options.h"

namespace secondsight::loadtest {
namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

void size_for(const Plan& plan, FreshProxyOptions& options) {
  options.disk_bytes = std::max(plan.unique_bytes / 20, 1_MiB);
  options.memory_bytes = std::max(plan.unique_bytes / 100, 1_MiB);
  options.expected_keys = std::max<std::uint64_t>(plan.objects.size() / 10, 1);
}

std::string config_text(const FreshProxyOptions& options, const std::string& cache_directory) {
  return "[proxy]\nlisten = \"127.0.0.1:0\"\nworkers = " + std::to_string(options.workers) +
         "\n\n[origin]\nurl = " + quoted(options.origin_url) +
         "\n\n[cache]\ndirectory = " + quoted(cache_directory) + "\ndisk = \"" +
         std::to_string(options.disk_bytes) + "\"\nmemory = \"" +
         std::to_string(options.memory_bytes) + "\"\n\n[admission]\n" +
         policy_lines(options.policy) + "expected_keys = " + std::to_string(options.expected_keys) +
         "\nwindow = \"" + std::to_string(options.window_hours) +
         "h\"\n\n[admin]\nlisten = \"127.0.0.1:0\"\n";
}

FreshProxy start_fresh_proxy(const FreshProxyOptions& options) {
  std::error_code error;
  const fs::path directory = fs::absolute(options.directory, error);
  const fs::path cache = directory / (options.policy.policy + "-cache");
  fs::remove_all(cache, error);
  if (!error) fs::create_directories(cache, error);
  if (error) throw RunError("cannot make " + cache.string() + ": " + error.message());
  const std::string config = (directory / (options.policy.policy + ".toml")).string();
  const std::string fault = write_file(config, config_text(options, cache.string()));
  if (!fault.empty()) throw RunError(fault);

  auto started = ProxyProcess::start(
      {options.binary, config, (directory / (options.policy.policy + ".log")).string()});
  if (const auto* words = std::get_if<std::string>(&started)) throw RunError(*words);
  FreshProxy proxy;
  proxy.process = std::move(std::get<std::unique_ptr<ProxyProcess>>(started));
  proxy.under_test = {
      name_of(options.policy), proxy.process->address(), proxy.process->admin_address(),
      proxy.process->pid(),    cache.string(),           options.disk_bytes};
  return proxy;
}

void stop_proxy(FreshProxy& proxy) {
  constexpr std::chrono::milliseconds kTimeout(20'000);
  const std::string fault = proxy.process->stop(kTimeout);
  if (!fault.empty()) throw RunError("the proxy (" + proxy.under_test.policy + ") " + fault);
}

}  // namespace secondsight::loadtest
