#include <memory>
#include <string>

#include "tests/bench/filter_bench.h"
#include "tests/bench/filter_companion.h"
#include "tests/bench/filter_contestant.h"

namespace secondsight::bench {
namespace {

using Filter = Lazily<TwoGenerations>;
using Ready = Contestant<TwoGenerations>;
using benchmark::State;

template <typename Case>
benchmark::internal::Benchmark* add(const std::string& name, const std::shared_ptr<Filter>& filter,
                                    const Case& run) {
  return benchmark::RegisterBenchmark(
             ("two-generation/" + name).c_str(),
             [filter, run](State& state) { run(state, filter->ready(state)); })
      ->Iterations(kOperations);
}

// Strangers in batches of 16, prefetched, and one after another, beside a companion.
void add_beside(const std::string& name, const std::shared_ptr<std::unique_ptr<SweptFilter>>& swept,
                std::uint64_t keys, Companion::Does does) {
  benchmark::RegisterBenchmark(("two-generation/" + name).c_str(), [swept, keys,
                                                                    does](State& state) {
    if (!*swept) *swept = std::make_unique<SweptFilter>(keys);
    const Ready::Mix mix(keys);
    const Companion companion(**swept, does);
    std::uint64_t i = 0;
    for (auto _ : state) benchmark::DoNotOptimize((*swept)->filter.sight(mix.at(i++)));
  })->Iterations(kOperations);
}

}  // namespace

void register_filter_cases(const FilterBenchOptions& options) {
  const auto filter = std::make_shared<Filter>(options.keys, [](std::uint64_t keys) {
    return std::make_unique<TwoGenerations>(keys, Marks::Counted);
  });
  add("isolated", filter, isolated<TwoGenerations>);
  add("streamed", filter, streamed<TwoGenerations>);
  add("streamed-by-two", filter, streamed<TwoGenerations>)->Threads(2);
  add("batch-16", filter, batched<TwoGenerations>);
  add("batch-16-by-two", filter, batched<TwoGenerations>)->Threads(2);
  add("hot-64", filter, hot_keys<TwoGenerations>);
  add("hot-64-by-two", filter, hot_keys<TwoGenerations>)->Threads(2);
  add("cold", filter, [](State& state, Ready& ready) {
    cold(state, ready, Ahead::Unprepared);
  })->Iterations(kColdOperations);
  add("cold-prefetched", filter, [](State& state, Ready& ready) {
    cold(state, ready, Ahead::Prefetched);
  })->Iterations(kColdOperations);

  const auto keeping = std::make_shared<Filter>(options.keys, [](std::uint64_t keys) {
    return std::make_unique<TwoGenerations>(keys, Marks::Kept);
  });
  add("isolated-keeping-marks", keeping, isolated<TwoGenerations>);
  add("streamed-keeping-marks", keeping, streamed<TwoGenerations>);
  add("batch-16-keeping-marks", keeping, batched<TwoGenerations>);
  add("cold-prefetched-keeping-marks", keeping, [](State& state, Ready& ready) {
    cold(state, ready, Ahead::Prefetched);
  })->Iterations(kColdOperations);

  const auto swept = std::make_shared<std::unique_ptr<SweptFilter>>();
  add_beside("streamed-beside-a-sweep", swept, options.keys, Companion::Does::Sweep);
  add_beside("streamed-beside-an-idle-loop", swept, options.keys, Companion::Does::Spin);
}

}  // namespace secondsight::bench
