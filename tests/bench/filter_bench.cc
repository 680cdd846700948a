// What a sighting costs, beside a memory access and beside other filters, in one run:
// make bench-filter. docs/admission.md has a run of it.
#include "tests/bench/filter_bench.h"

#include <benchmark/benchmark.h>
#include <iostream>

#include <boost/program_options.hpp>

#include "admission/bloom_math.h"

namespace {

using secondsight::bench::AllTimings;

// Gathers what Google Benchmark measures; the report is ours.
class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& context) override {
    PrintBasicContext(&std::cerr, context);
    return true;
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration || run.error_occurred) continue;
      // Without the suffixes for iterations and threads.
      secondsight::bench::Timings& timing = timings[run.run_name.function_name];
      const auto own = run.counters.find("ns");
      timing.cpu.push_back(own != run.counters.end() ? own->second.value
                                                     : run.GetAdjustedCPUTime());
      // Google Benchmark divides the time of the clock by the threads.
      timing.wall.push_back(own != run.counters.end()
                                ? own->second.value
                                : run.GetAdjustedRealTime() * static_cast<double>(run.threads));
    }
  }
  AllTimings timings;
};

}  // namespace

int main(int argc, char** argv) {
  namespace options = boost::program_options;
  secondsight::bench::FilterBenchOptions chosen;
  std::string json;
  std::string only;
  options::options_description known("usage: filter_bench [options]");
  auto add = known.add_options();
  add("keys", options::value(&chosen.keys)->default_value(chosen.keys), "of one generation");
  add("repetitions", options::value(&chosen.repetitions)->default_value(chosen.repetitions),
      "of each case");
  add("only", options::value(&only)->default_value("."), "cases that match this expression");
  add("json", options::value(&json), "where the figures go as JSON");
  add("help", "print this");
  try {
    options::variables_map given;
    options::store(options::command_line_parser(argc, argv).options(known).positional({}).run(),
                   given);
    options::notify(given);
    if (given.count("help") > 0) {
      std::cout << known;
      return 0;
    }
    if (const auto fault =
            secondsight::admission::explain_bad_size(chosen.keys, 0.01, ~std::uint64_t{0})) {
      throw options::error(*fault);
    }
    if (chosen.repetitions < 1) throw options::error("at least one repetition");
  } catch (const options::error& error) {
    std::cerr << "filter_bench: " << error.what() << '\n';
    return 2;
  }

  std::vector<std::string> settings{argv[0], "--benchmark_filter=" + only,
                                    "--benchmark_repetitions=" + std::to_string(chosen.repetitions),
                                    "--benchmark_enable_random_interleaving=true"};
  std::vector<char*> pointers;
  for (std::string& setting : settings) pointers.push_back(setting.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());

  secondsight::bench::register_memory_probes(chosen);
  secondsight::bench::register_filter_cases(chosen);
  secondsight::bench::register_baseline_cases(chosen);
  std::cerr << "Measures for some minutes, in 1.5 GB of memory at full size.\n";
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);
  const auto tails = secondsight::bench::measure_rotation(chosen);
  secondsight::bench::print_report(chosen, collector.timings, tails);
  if (!json.empty() && !secondsight::bench::write_json(json, chosen, collector.timings, tails)) {
    std::cerr << "filter_bench: cannot write " << json << '\n';
    return 1;
  }
  return 0;
}
