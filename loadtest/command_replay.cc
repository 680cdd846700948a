#include <cstdio>
#include <iostream>
#include <optional>

#include <boost/json/serialize.hpp>
#include <boost/program_options.hpp>

#include "config/units.h"
#include "loadtest/commands.h"
#include "loadtest/fresh_proxy.h"
#include "loadtest/progress.h"
#include "loadtest/report.h"
#include "loadtest/workload_options.h"

namespace secondsight::loadtest {
namespace {

namespace po = boost::program_options;

struct ReplayOptions {
  WorkloadChoice workload;
  std::string url;
  std::string proxy;
  PolicyChoice policy;
  std::string directory = "build/replay";
  std::string origin;
  std::string admin;
  std::string cache_directory;
  std::string json;
  pid_t pid = 0;
  unsigned connections = 16;
  double rate = 0;
  double timeout_seconds = 30;
};

po::options_description describe(ReplayOptions& options) {
  po::options_description description(
      "usage: secondsight-load replay --proxy BINARY [OPTION...]\n"
      "       secondsight-load replay --url http://ADDRESS:PORT [OPTION...]\n\n"
      "Drives one proxy, verifies every body, and measures what was written. With --proxy it "
      "starts\n"
      "one, sized for the workload (disk 5 % and memory 1 % of the unique bytes, expected keys 10 "
      "% of the\n"
      "distinct ones), in front of its own origin.\n\noptions");
  add_workload_options(description, options.workload);
  description.add_options()(
      "connections", po::value(&options.connections)->value_name("N")->default_value(16),
      "kept alive")("rate", po::value(&options.rate)->value_name("PER_SECOND"),
                    "open loop: start requests at this rate, latency from the intended start")(
      "timeout", po::value(&options.timeout_seconds)->value_name("SECONDS")->default_value(30),
      "for one request")("json", po::value(&options.json)->value_name("FILE"), "report")(
      "proxy", po::value(&options.proxy)->value_name("BINARY"), "start this proxy")(
      "dir", po::value(&options.directory)->value_name("DIR")->default_value(options.directory),
      "its configuration, log and cache")("url", po::value(&options.url)->value_name("URL"),
                                          "a proxy that runs already")(
      "origin-listen", po::value(&options.origin)->value_name("ADDRESS:PORT"),
      "with --url: be its origin there (else one must run: secondsight-load origin)")(
      "admin", po::value(&options.admin)->value_name("ADDRESS:PORT"), "with --url: its metrics")(
      "pid", po::value(&options.pid)->value_name("PID"),
      "with --url: its process, for the kernel's count")(
      "cache-dir", po::value(&options.cache_directory)->value_name("DIR"), "with --url: its cache")(
      "help,h", "this text");
  add_policy_options(description, options.policy);
  return description;
}

tcp::endpoint endpoint_of_url(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  std::string_view rest = url;
  if (!rest.starts_with(kScheme)) throw UsageError("--url: must start with http://");
  rest.remove_prefix(kScheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const auto endpoint = parse_endpoint(rest);
  if (!endpoint) throw UsageError("--url: '" + url + "' is not http://ADDRESS:PORT");
  return *endpoint;
}

void check(const ReplayOptions& options) {
  if (options.url.empty() == options.proxy.empty()) {
    throw UsageError("one of --proxy and --url is needed");
  }
  if (options.connections < 1 || options.connections > 10'000) {
    throw UsageError("--connections: not within 1 to 10000");
  }
  if (!(options.rate >= 0)) throw UsageError("--rate: below 0");
  if (!(options.timeout_seconds > 0)) throw UsageError("--timeout: not above 0");
  if (options.url.empty() && (!options.origin.empty() || !options.admin.empty() ||
                              options.pid != 0 || !options.cache_directory.empty())) {
    throw UsageError("--origin-listen, --admin, --pid and --cache-dir belong to --url");
  }
}

/// Our own origin; null when the running proxy has another.
std::unique_ptr<Origin> start_origin(const ReplayOptions& options) {
  Origin::Options listen;
  if (!options.url.empty()) {
    if (options.origin.empty()) return nullptr;
    const auto endpoint = parse_endpoint(options.origin);
    if (!endpoint)
      throw UsageError("--origin-listen: '" + options.origin + "' is not ADDRESS:PORT");
    listen.host = endpoint->address().to_string();
    listen.port = endpoint->port();
  }
  auto origin = Origin::start(listen);
  if (!origin) throw RunError("the origin cannot listen: " + origin.error().message());
  return std::move(*origin);
}

ProxyUnderTest running_proxy(const ReplayOptions& options) {
  ProxyUnderTest proxy;
  proxy.policy = options.url;
  proxy.address = endpoint_of_url(options.url);
  if (!options.admin.empty()) {
    proxy.admin = parse_endpoint(options.admin);
    if (!proxy.admin) throw UsageError("--admin: '" + options.admin + "' is not ADDRESS:PORT");
  }
  if (options.pid > 0) proxy.pid = options.pid;
  proxy.cache_directory = options.cache_directory;
  return proxy;
}

}  // namespace

int command_replay(const std::vector<std::string>& arguments) {
  ReplayOptions options;
  const po::options_description description = describe(options);
  po::variables_map values;
  po::store(po::command_line_parser(arguments).options(description).positional({}).run(), values);
  po::notify(values);
  if (values.count("help") > 0) {
    std::cout << description;
    return 0;
  }
  check(options);
  if (options.url.empty()) read_policy(options.policy);
  std::optional<ProxyUnderTest> target;
  if (!options.url.empty()) target = running_proxy(options);
  const NamedPlan workload = load_plan(options.workload);
  const auto origin = start_origin(options);

  FreshProxy fresh;
  if (!target) {
    FreshProxyOptions proxy;
    proxy.binary = options.proxy;
    proxy.policy = options.policy;
    proxy.directory = options.directory;
    proxy.origin_url = origin->url();
    size_for(workload.plan, proxy);
    fresh = start_fresh_proxy(proxy);
    target = fresh.under_test;
  }
  ProgressView progress(stderr, target->policy);
  DriveOptions drive_options;
  drive_options.server = target->address;
  drive_options.host = options.url.empty() ? "edge.test" : options.url.substr(7);
  drive_options.connections = options.connections;
  drive_options.rate = options.rate;
  drive_options.timeout =
      std::chrono::milliseconds(static_cast<long>(options.timeout_seconds * 1'000));
  drive_options.on_progress = [&progress](const DriveProgress& p) { progress.show(p); };
  const std::vector<RunReport> runs{
      measured_run(workload.plan, *target, origin.get(), drive_options)};
  if (fresh.process) stop_proxy(fresh);

  const WorkloadFacts facts = workload_facts(workload.plan, workload.name);
  std::cout << '\n' << table_of(facts, runs);
  if (!options.json.empty()) {
    const std::string fault =
        write_file(options.json, boost::json::serialize(json_of(facts, runs)) + '\n');
    if (!fault.empty()) throw RunError(fault);
  }
  const int signal = runs.front().drive.interrupted_by;
  if (signal != 0) return 128 + signal;
  return clean(runs.front()) ? 0 : 1;
}

}  // namespace secondsight::loadtest
