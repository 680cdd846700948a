#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/program_options.hpp>

#include "admission/bloom_math.h"
#include "admission/filter_report.h"
#include "config/units.h"
#include "loadtest/baseline.h"
#include "loadtest/commands.h"
#include "loadtest/policy_options.h"
#include "loadtest/report.h"
#include "loadtest/simulate.h"
#include "loadtest/simulate_report.h"
#include "loadtest/workload_options.h"

namespace secondsight::loadtest {
namespace {

namespace po = boost::program_options;

constexpr std::uint64_t kAnyBytes = ~std::uint64_t{0};  // the simulator finds out by allocating

struct Options {
  std::vector<std::string> traces;
  std::string disk;
  std::string memory;
  PolicyChoice policy;
  std::string keys = "10%";
  std::string window = "24h";
  std::string max_object = "1GiB";
  std::string json;
  std::uint64_t requests = 0;
};

po::options_description describe(Options& options) {
  po::options_description description(
      "usage: secondsight-load simulate TRACE... [OPTION...]\n\n"
      "Replays traces offline through the proxy's own admission, memory tier, index and disk log, "
      "and through\nmodels of the same size: FIFO, LRU, a clairvoyant cache and a bound. A SIZE is "
      "bytes (64MiB) or a\npercentage of the trace's unique bytes; several are separated by "
      "commas. "
      "With --disk alone there is no\nmemory tier, with --memory alone no disk; with both, every "
      "pair of sizes, against models of their sum.\n\noptions");
  description.add_options()("trace", po::value(&options.traces)->value_name("TRACE"),
                            "the positional ones")(
      "disk", po::value(&options.disk)->value_name("SIZE,.."),
      "without any size: 1,2,5,10,20,50 %; at least 1 MiB each")(
      "memory", po::value(&options.memory)->value_name("SIZE,.."),
      "without any size: 0.1,0.5,1,5,10 %")(
      "keys", po::value(&options.keys)->value_name("N")->default_value(options.keys),
      "expected keys of a generation, or a percentage of the distinct ones")(
      "window", po::value(&options.window)->value_name("TIME")->default_value(options.window),
      "a generation's longest life, by the trace's clock")(
      "max-object",
      po::value(&options.max_object)->value_name("BYTES")->default_value(options.max_object),
      "larger bodies are passed on, as is what is above half of the disk")(
      "requests", po::value(&options.requests)->value_name("N"), "at most so many of each trace")(
      "json", po::value(&options.json)->value_name("FILE"), "report")("help,h", "this text");
  add_policy_options(description, options.policy);
  return description;
}

/// "5%" of `whole`, or what `read` makes of the text. Empty for anything else.
template <class Read>
std::optional<std::uint64_t> share_or(std::string_view text, std::uint64_t whole, Read read) {
  if (!text.ends_with('%')) return read(text);
  text.remove_suffix(1);
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!(percent >= 0) || percent > 1'000) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(percent / 100 * static_cast<double>(whole)));
}

std::vector<std::uint64_t> read_sizes(std::string_view option, std::string_view list,
                                      const Plan& plan) {
  std::vector<std::uint64_t> sizes;
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t to = std::min(list.find(',', from), list.size());
    const std::string_view text = list.substr(from, to - from);
    const auto bytes = share_or(text, plan.unique_bytes, parse_bytes);
    if (!bytes || *bytes == 0) {
      throw UsageError("--" + std::string(option) + ": '" + std::string(text) +
                       "' is neither bytes (64MiB) nor a percentage (5%), above 0");
    }
    sizes.push_back(*bytes);
    from = to + 1;
  }
  return sizes;
}

std::uint64_t read_count(std::string_view text, std::uint64_t whole) {
  const auto count = share_or(text, whole, [](std::string_view digits) {
    std::optional<std::uint64_t> number{0};
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), *number);
    if (error != std::errc{} || end != digits.data() + digits.size()) number.reset();
    return number;
  });
  if (!count)
    throw UsageError("--keys: '" + std::string(text) + "' is neither a number nor a percentage");
  return std::max<std::uint64_t>(*count, 1);
}

AdmissionSettings read_admission(const Options& options, const Plan& plan) {
  AdmissionSettings admission = read_policy(options.policy);
  admission.expected_keys = read_count(options.keys, plan.objects.size());
  const auto window = parse_duration(options.window);
  if (!window || *window <= window->zero())
    throw UsageError("--window: '" + options.window + "' is no time above 0 (24h)");
  admission.window = *window;
  return admission;
}

void print_filter(const AdmissionSettings& settings) {
  if (settings.policy != PolicyName::SecondSighting) return;
  if (const auto fault = admission::explain_bad_size(settings.expected_keys,
                                                     settings.false_positive_rate, kAnyBytes))
    throw std::invalid_argument(*fault);
  std::cout << admission::describe_filter(settings, "filter: ");
}

std::uint64_t read_max_object(const Options& options) {
  const auto bytes = parse_bytes(options.max_object);
  if (!bytes) throw UsageError("--max-object: '" + options.max_object + "' is no number of bytes");
  return *bytes;
}

/// What is shared by the runs of one trace and kind of cache.
struct Case {
  const Plan& plan;
  const AdmissionSettings& admission;
  ModelTrace all;       // everything is kept
  ModelTrace admitted;  // what the policy admits
};

ComparedRun compare(const Case& of, const SimulatedCacheSizes& sizes) {
  ComparedRun run;
  run.sizes = sizes;
  run.cache = simulate(of.plan, of.admission, sizes);
  const std::uint64_t capacity_bytes = sizes.disk_bytes + sizes.memory_bytes;
  const std::uint64_t body_bytes_max =
      sizes.disk_bytes > 0 ? std::min(sizes.max_object, sizes.disk_bytes / 2) : sizes.max_object;
  run.fifo = simulate_model(of.admitted, capacity_bytes, Eviction::FirstIn, body_bytes_max);
  run.lru =
      simulate_model(of.admitted, capacity_bytes, Eviction::LeastRecentlyUsed, body_bytes_max);
  run.lru_all = simulate_model(of.all, capacity_bytes, Eviction::LeastRecentlyUsed, body_bytes_max);
  run.clairvoyant = simulate_clairvoyant(of.all, capacity_bytes);
  run.hits_bound = hits_bound(of.all, capacity_bytes);
  return run;
}

/// The sizes of one table; equal ones (raised to the least) once.
std::vector<SimulatedCacheSizes> pairs(std::vector<std::uint64_t> disks,
                                       const std::vector<std::uint64_t>& memories,
                                       std::uint64_t max_object) {
  for (std::uint64_t& bytes : disks)
    if (bytes > 0) bytes = std::max(bytes, kSimulatedDiskBytesMin);
  disks.erase(std::unique(disks.begin(), disks.end()), disks.end());
  std::vector<SimulatedCacheSizes> all;
  for (const std::uint64_t disk : disks)
    for (const std::uint64_t memory : memories)
      all.push_back({.disk_bytes = disk, .memory_bytes = memory, .max_object = max_object});
  return all;
}

Comparison compare_all(const NamedPlan& workload, const Options& options, Medium medium,
                       const std::vector<SimulatedCacheSizes>& sizes) {
  const AdmissionSettings admission = read_admission(options, workload.plan);
  Case of{workload.plan, admission, model_trace(workload.plan, medium), {}};
  of.admitted = of.all;
  // Memory keeps newcomers, whatever the policy says.
  if (medium == Medium::Disk) of.admitted.admitted = admitted_requests(workload.plan, admission);
  Comparison comparison;
  comparison.workload = workload_facts(workload.plan, workload.name);
  comparison.requested_bytes = workload.plan.requested_bytes;
  comparison.policy = name_of(options.policy);
  for (const SimulatedCacheSizes& one : sizes) comparison.runs.push_back(compare(of, one));
  return comparison;
}

std::vector<Comparison> simulate_trace(const std::string& trace, const Options& options) {
  WorkloadChoice choice;
  choice.trace = trace;
  choice.requests = options.requests;
  const NamedPlan workload = load_plan(choice);
  const std::uint64_t max_object = read_max_object(options);
  const bool has_both = !options.disk.empty() && !options.memory.empty();
  const bool has_none = options.disk.empty() && options.memory.empty();
  const std::string disk = has_none ? "1%,2%,5%,10%,20%,50%" : options.disk;
  const std::string memory = has_none ? "0.1%,0.5%,1%,5%,10%" : options.memory;
  std::vector<std::uint64_t> disks{0};
  std::vector<std::uint64_t> memories{0};
  if (!disk.empty()) disks = read_sizes("disk", disk, workload.plan);
  if (!memory.empty()) memories = read_sizes("memory", memory, workload.plan);

  print_filter(read_admission(options, workload.plan));

  std::vector<Comparison> all;
  const auto add = [&](Medium medium, const std::vector<SimulatedCacheSizes>& sizes) {
    all.push_back(compare_all(workload, options, medium, sizes));
    std::cout << table_of(all.back()) << '\n' << std::flush;
  };
  if (has_both) {
    add(Medium::Disk, pairs(disks, memories, max_object));
    return all;
  }
  if (!disk.empty()) add(Medium::Disk, pairs(disks, {0}, max_object));
  if (!memory.empty()) add(Medium::Memory, pairs({0}, memories, max_object));
  return all;
}

}  // namespace

int command_simulate(const std::vector<std::string>& arguments) {
  Options options;
  const po::options_description description = describe(options);
  po::positional_options_description positional;
  positional.add("trace", -1);
  po::variables_map values;
  po::store(po::command_line_parser(arguments).options(description).positional(positional).run(),
            values);
  po::notify(values);
  if (values.count("help") > 0) {
    std::cout << description;
    return 0;
  }
  if (options.traces.empty()) throw UsageError("a trace is needed");
  boost::json::array comparisons;
  try {
    for (const std::string& trace : options.traces)
      for (const Comparison& comparison : simulate_trace(trace, options))
        comparisons.emplace_back(json_of(comparison));
  } catch (const std::invalid_argument& fault) {  // an admission that cannot be
    throw UsageError(std::string("--keys, --window: ") + fault.what());
  }
  if (!options.json.empty()) {
    const boost::json::object report{{"comparisons", std::move(comparisons)}};
    const std::string fault = write_file(options.json, boost::json::serialize(report) + '\n');
    if (!fault.empty()) throw RunError(fault);
  }
  return 0;
}

}  // namespace secondsight::loadtest
