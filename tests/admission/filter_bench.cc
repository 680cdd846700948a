// The price of one sighting, as ratios within one run: compare with DramMiss, not across machines.
//   filter_bench --benchmark_counters_tabular=true
#include <algorithm>
#include <array>
#include <benchmark/benchmark.h>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "admission/bloom_math.h"
#include "admission/two_generation_filter.h"
#include "tests/admission/keys.h"

namespace {

using namespace secondsight;
using namespace secondsight::admission;

constexpr std::uint64_t kKeys = 50'000'000;
constexpr std::size_t kBatch = 16;

// One filter for the whole run: `previous` full, `current` half full, as on an average day.
TwoGenerationFilter& full_size_filter() {
  static TwoGenerationFilter& filter = [&]() -> TwoGenerationFilter& {
    const SteadyTime start = std::chrono::steady_clock::now();
    static TwoGenerationFilter built(size_filter(kKeys, 0.01), std::chrono::hours(24), start);
    test::Keys keys(1);
    for (std::uint64_t i = 0; i < kKeys; ++i) built.sight(keys.next());
    do built.maintain(start);
    while (built.sweeping());
    for (std::uint64_t i = 0; i < kKeys / 2; ++i) built.sight(keys.next());
    return built;
  }();
  return filter;
}

// Three strangers in four, the rest keys of the previous generation: a CDN edge's mix.
Fingerprint mixed_key(const test::Keys& known, const test::Keys& strangers, std::uint64_t i) {
  return i % 4 == 0 ? known.at(i % kKeys) : strangers.at(i);
}

std::uint64_t next_stream() {
  static std::atomic<std::uint64_t> stream{100};
  return ++stream;
}

// One dependent load after another through 256 MiB of huge pages.
void DramMiss(benchmark::State& state) {
  constexpr std::size_t kLines = std::size_t{4} << 20U;
  struct alignas(64) Node {
    std::size_t next;
  };
  static Node* const nodes = [] {
    static HugeMemory memory(kLines * sizeof(Node));
    auto* const made = static_cast<Node*>(memory.data());
    std::vector<std::size_t> order(kLines);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937_64(test::test_seed()));
    for (std::size_t i = 0; i < kLines; ++i) made[order[i]].next = order[(i + 1) % kLines];
    return made;
  }();
  std::size_t at = 0;
  for (auto _ : state) at = nodes[at].next;
  benchmark::DoNotOptimize(at);
}
BENCHMARK(DramMiss);

// Each key depends on the answer before: no overlap between two sightings.
void Isolated(benchmark::State& state) {
  TwoGenerationFilter& filter = full_size_filter();
  const test::Keys known(1);
  const test::Keys strangers(next_stream());
  std::uint64_t i = 0;
  std::uint64_t chain = 0;
  for (auto _ : state) {
    const Sighting said = filter.sight(mixed_key(known, strangers, i + chain));
    chain += said == Sighting::Repeat ? 4 : 0;  // a multiple of four keeps the mix
    ++i;
  }
  benchmark::DoNotOptimize(chain);
}
BENCHMARK(Isolated);

// Independent keys one after another: the processor overlaps what it can.
void Streamed(benchmark::State& state) {
  TwoGenerationFilter& filter = full_size_filter();
  const test::Keys known(1);
  const test::Keys strangers(next_stream());
  std::uint64_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(filter.sight(mixed_key(known, strangers, i++)));
}
BENCHMARK(Streamed);
BENCHMARK(Streamed)->Name("StreamedByTwoThreads")->Threads(2)->UseRealTime();

void BatchOf16(benchmark::State& state) {
  TwoGenerationFilter& filter = full_size_filter();
  const test::Keys known(1);
  const test::Keys strangers(next_stream());
  std::uint64_t i = 0;
  std::array<Fingerprint, kBatch> batch;
  while (state.KeepRunningBatch(kBatch)) {
    for (Fingerprint& key : batch) {
      key = mixed_key(known, strangers, i++);
      filter.prefetch(key);
    }
    for (const Fingerprint& key : batch) benchmark::DoNotOptimize(filter.sight(key));
  }
}
BENCHMARK(BatchOf16);

// Sixty-four keys that are asked for all the time: nothing is written.
void HotKeys(benchmark::State& state) {
  TwoGenerationFilter& filter = full_size_filter();
  const test::Keys hot(2);
  std::uint64_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(filter.sight(hot.at(i++ % 64)));
}
BENCHMARK(HotKeys);
BENCHMARK(HotKeys)->Name("HotKeysByTwoThreads")->Threads(2)->UseRealTime();

enum class Ahead { Prefetched, Unprepared };

// A request's work in between, as far as caches are concerned: 2 MiB written, on 512 small pages,
// so that neither the second-level cache nor the TLB remembers the filter. Only sight() is timed;
// the clock's own cost is the counter clock_ns.
void cold(benchmark::State& state, Ahead ahead) {
  using Clock = std::chrono::steady_clock;
  TwoGenerationFilter& filter = full_size_filter();
  const test::Keys known(1);
  const test::Keys strangers(next_stream());
  std::vector<std::uint64_t> work(std::size_t{2} << 17U);
  std::uint64_t i = 0;
  Clock::duration clock_cost{};
  for (auto _ : state) {
    const Fingerprint key = mixed_key(known, strangers, i++);
    for (std::size_t w = 0; w < work.size(); w += 8) ++work[w];
    if (ahead == Ahead::Prefetched) filter.prefetch(key);
    for (std::size_t w = 0; w < 2048; w += 8) ++work[w];  // about a microsecond until it is needed
    const auto before = Clock::now();
    benchmark::DoNotOptimize(filter.sight(key));
    benchmark::ClobberMemory();
    const auto after = Clock::now();
    clock_cost += Clock::now() - after;
    state.SetIterationTime(std::chrono::duration<double>(after - before).count());
  }
  state.counters["clock_ns"] =
      benchmark::Counter(std::chrono::duration<double, std::nano>(clock_cost).count(),
                         benchmark::Counter::kAvgIterations);
}
void Cold(benchmark::State& state) {
  cold(state, Ahead::Unprepared);
}
void ColdAfterPrefetch(benchmark::State& state) {
  cold(state, Ahead::Prefetched);
}
BENCHMARK(Cold)->UseManualTime()->Iterations(20'000);
BENCHMARK(ColdAfterPrefetch)->UseManualTime()->Iterations(20'000);

}  // namespace

BENCHMARK_MAIN();
