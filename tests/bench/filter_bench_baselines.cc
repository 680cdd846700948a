#include <memory>
#include <string>

#include "tests/bench/filter_baselines.h"
#include "tests/bench/filter_bench.h"
#include "tests/bench/filter_contestant.h"

namespace secondsight::bench {
namespace {

constexpr std::uint64_t kBitsPerKey = 10;

template <typename Filter>
std::shared_ptr<Lazily<Filter>> lazily(std::uint64_t keys) {
  return std::make_shared<Lazily<Filter>>(
      keys, [](std::uint64_t planned) { return std::make_unique<Filter>(planned * kBitsPerKey); });
}

template <typename Filter, typename Case>
benchmark::internal::Benchmark* add(const std::string& name,
                                    const std::shared_ptr<Lazily<Filter>>& filter,
                                    const Case& run) {
  return benchmark::RegisterBenchmark(
             name.c_str(),
             [filter, run](benchmark::State& state) { run(state, filter->ready(state)); })
      ->Iterations(kOperations);
}

template <typename Filter>
void add_all(const std::string& name, const std::shared_ptr<Lazily<Filter>>& filter) {
  add(name + "/isolated", filter, isolated<Filter>);
  add(name + "/streamed", filter, streamed<Filter>);
  add(name + "/batch-16", filter, batched<Filter>);
  using State = benchmark::State;
  using Ready = Contestant<Filter>;
  add(name + "/cold", filter, [](State& state, Ready& ready) {
    cold(state, ready, Ahead::Unprepared);
  })->Iterations(kColdOperations);
  add(name + "/cold-prefetched", filter, [](State& state, Ready& ready) {
    cold(state, ready, Ahead::Prefetched);
  })->Iterations(kColdOperations);
}

}  // namespace

void register_baseline_cases(const FilterBenchOptions& options) {
  add_all("classic", lazily<ClassicPair>(options.keys));
  const auto split_block = lazily<SplitBlockPair>(options.keys);
  add_all("split-block", split_block);
  add("split-block/streamed-by-two", split_block, streamed<SplitBlockPair>)->Threads(2);

  using Locked = LockedSplitBlockPair;
  const auto locked = lazily<Locked>(options.keys);
  add("split-block-locked/streamed", locked, streamed<Locked>);
  add("split-block-locked/batch-16", locked, batched<Locked>);
  add("split-block-locked/streamed-by-two", locked, streamed<Locked>)->Threads(2);
  add("split-block-locked/batch-16-by-two", locked, batched<Locked>)->Threads(2);
}

}  // namespace secondsight::bench
