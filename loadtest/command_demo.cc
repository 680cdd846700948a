#include <cstdio>
#include <filesystem>
#include <iostream>

#include <boost/json/serialize.hpp>
#include <boost/program_options.hpp>

#include "admission/filter_report.h"
#include "loadtest/commands.h"
#include "loadtest/fresh_proxy.h"
#include "loadtest/progress.h"
#include "loadtest/report.h"
#include "loadtest/workload_options.h"

namespace secondsight::loadtest {
namespace {

namespace po = boost::program_options;

struct DemoOptions {
  WorkloadChoice workload;
  std::string proxy;
  std::string directory;
  unsigned connections = 16;
};

po::options_description describe(DemoOptions& options) {
  po::options_description description(
      "usage: secondsight-load demo --proxy BINARY --out DIR [OPTION...]\n\n"
      "Replays one workload against two fresh proxies, policy always and second-sighting, with the "
      "same\n"
      "disk (5 % of the unique bytes), memory (1 %) and expected keys (10 % of the distinct ones). "
      "Prints\n"
      "both side by side and leaves DIR/report.json. Fails when a response failed or was not the\n"
      "object.\n\noptions");
  description.add_options()("proxy", po::value(&options.proxy)->value_name("BINARY"),
                            "secondsight")("out", po::value(&options.directory)->value_name("DIR"),
                                           "reports, configurations, logs, caches");
  add_workload_options(description, options.workload);
  description.add_options()("connections",
                            po::value(&options.connections)->value_name("N")->default_value(16),
                            "kept alive; each has one request under way")("help,h", "this text");
  return description;
}

RunReport run_policy(const std::string& policy, const Plan& plan, const DemoOptions& options) {
  // An origin each, so that neither run finds the other's connections and counts.
  const auto origin = Origin::start({});
  if (!origin) throw RunError("the origin cannot listen: " + origin.error().message());
  FreshProxyOptions proxy;
  proxy.binary = options.proxy;
  proxy.policy.policy = policy;
  proxy.directory = options.directory;
  proxy.origin_url = (*origin)->url();
  size_for(plan, proxy);
  FreshProxy fresh = start_fresh_proxy(proxy);

  ProgressView progress(stderr, policy);
  DriveOptions drive;
  drive.server = fresh.under_test.address;
  drive.host = "edge.test";
  drive.connections = options.connections;
  drive.on_progress = [&progress](const DriveProgress& p) { progress.show(p); };
  RunReport report = measured_run(plan, fresh.under_test, origin->get(), drive);
  stop_proxy(fresh);
  return report;
}

}  // namespace

int command_demo(const std::vector<std::string>& arguments) {
  DemoOptions options;
  const po::options_description description = describe(options);
  po::variables_map values;
  po::store(po::command_line_parser(arguments).options(description).positional({}).run(), values);
  po::notify(values);
  if (values.count("help") > 0) {
    std::cout << description;
    return 0;
  }
  if (options.proxy.empty()) throw UsageError("--proxy is needed: the binary to start");
  if (options.directory.empty()) throw UsageError("--out is needed: the folder for the report");
  if (options.connections < 1 || options.connections > 10'000) {
    throw UsageError("--connections: not within 1 to 10000");
  }

  const NamedPlan workload = load_plan(options.workload);
  FreshProxyOptions sizes;
  size_for(workload.plan, sizes);
  AdmissionSettings filter;
  filter.expected_keys = sizes.expected_keys;
  std::cout << "filter: " << admission::summarise_filter(filter) << '\n';
  std::vector<RunReport> runs;
  for (const char* const policy : {"always", "second-sighting"}) {
    runs.push_back(run_policy(policy, workload.plan, options));
    const int signal = runs.back().drive.interrupted_by;
    if (signal != 0) return 128 + signal;
  }
  const WorkloadFacts facts = workload_facts(workload.plan, workload.name);
  std::cout << '\n' << table_of(facts, runs);
  const std::string report = (std::filesystem::path(options.directory) / "report.json").string();
  const std::string fault = write_file(report, boost::json::serialize(json_of(facts, runs)) + '\n');
  if (!fault.empty()) throw RunError(fault);
  std::cout << "\nreport: " << report << '\n';

  const bool counted = avoided(runs.front(), runs.back()).objects.has_value();
  if (!counted) std::cerr << "the proxies did not tell what they wrote\n";
  return counted && clean(runs.front()) && clean(runs.back()) ? 0 : 1;
}

}  // namespace secondsight::loadtest
