#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "loadtest/histogram.h"

namespace secondsight::bench {

/// Of the whole run.
struct FilterBenchOptions {
  std::uint64_t keys = 50'000'000;  // of one generation
  int repetitions = 7;              // of each case, interleaved at random
};

// Each registers its cases with Google Benchmark, as "contestant/case". One call; filters are built
// when their first case runs.

/// "memory/dram": one dependent load after another through 512 MiB of huge pages.
/// "memory/filter-sized": the same through as much as the two-generation filter takes.
void register_memory_probes(const FilterBenchOptions& options);
/// "two-generation/...": the product's filter.
void register_filter_cases(const FilterBenchOptions& options);
/// "classic/...", "split-block/...", "split-block-locked/...".
void register_baseline_cases(const FilterBenchOptions& options);

/// Nanoseconds of one operation, one figure for each repetition.
struct Timings {
  std::vector<double> cpu;   // of the thread's CPU time, or what the case measured itself
  std::vector<double> wall;  // of the clock
};
double median(std::vector<double> values);
using AllTimings = std::map<std::string, Timings>;

/// Single operations, each timed, beside another thread that either sweeps or only keeps its core
/// busy.
struct Tail {
  loadtest::Histogram nanoseconds;
  std::uint64_t above_1_ms = 0;          // by the clock
  std::uint64_t above_1_ms_on_core = 0;  // ... of which the scheduler does not explain so much
  std::uint64_t marks_checked = 0;       // sighted once more within their window
  std::uint64_t marks_lost = 0;          // ... and not known
  std::uint64_t rotations = 0;
};
struct RotationTails {
  Tail quiet;
  Tail sweeping;
};
/// Rounds of both kinds in turn, on one filter. Takes some ten seconds.
RotationTails measure_rotation(const FilterBenchOptions& options);

/// Prints all medians, then the ratios against their targets. Not met is not an error.
void print_report(const FilterBenchOptions& options, const AllTimings& timings,
                  const RotationTails& tails);
/// The same figures, with every repetition. False when the file cannot be written.
bool write_json(const std::string& path, const FilterBenchOptions& options,
                const AllTimings& timings, const RotationTails& tails);

}  // namespace secondsight::bench
