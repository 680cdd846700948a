#include <array>
#include <chrono>
#include <ctime>
#include <memory>

#include "tests/bench/filter_bench.h"
#include "tests/bench/filter_companion.h"

namespace secondsight::bench {
namespace {

using Clock = std::chrono::steady_clock;
using admission::Fingerprint;
using admission::Sighting;

constexpr int kRounds = 6;
constexpr std::size_t kTailBatch = 256;
constexpr std::size_t kBatchesPerRound = 8192;
constexpr Clock::duration kLong = std::chrono::milliseconds(1);

// Of this thread: what the scheduler gave it.
Clock::duration time_on_core() {
  std::timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::uint64_t nanoseconds(Clock::duration time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

// Every operation of a batch is timed; then each of its keys is sighted once more.
void run_batch(SweptFilter& swept, const std::array<Fingerprint, kTailBatch>& batch, Tail& tail) {
  const SteadyTime::rep marked_at = swept.latest.load();
  std::array<Clock::duration, kTailBatch> took;
  const Clock::duration core_before = time_on_core();
  const auto began = Clock::now();
  for (std::size_t i = 0; i < kTailBatch; ++i) {
    const auto before = Clock::now();
    benchmark::DoNotOptimize(swept.filter.sight(batch[i]));
    benchmark::ClobberMemory();
    took[i] = Clock::now() - before;
  }
  const auto off_core = (Clock::now() - began) - (time_on_core() - core_before);
  for (const Clock::duration time : took) {
    tail.nanoseconds.record(nanoseconds(time));
    if (time <= kLong) continue;
    ++tail.above_1_ms;
    if (time - off_core > kLong) ++tail.above_1_ms_on_core;
  }

  std::uint64_t lost = 0;
  for (const Fingerprint& key : batch) {
    lost += swept.filter.sight(key) == Sighting::First ? 1U : 0U;
  }
  if (swept.latest.load() - marked_at >= SweptFilter::kWindow.count()) return;
  tail.marks_checked += kTailBatch;
  tail.marks_lost += lost;
}

void run_round(SweptFilter& swept, std::uint64_t keys, Companion::Does does, Tail& tail) {
  const Contestant<TwoGenerations>::Mix mix(keys);
  const std::uint64_t rotations_before = swept.rotations.load(std::memory_order_relaxed);
  const Companion companion(swept, does);
  std::array<Fingerprint, kTailBatch> batch;
  std::uint64_t i = 0;
  for (std::size_t b = 0; b < kBatchesPerRound; ++b) {
    for (Fingerprint& key : batch) key = mix.at(i++);
    run_batch(swept, batch, tail);
  }
  tail.rotations += swept.rotations.load(std::memory_order_relaxed) - rotations_before;
}

}  // namespace

RotationTails measure_rotation(const FilterBenchOptions& options) {
  const auto swept = std::make_unique<SweptFilter>(options.keys);
  RotationTails tails;
  for (int round = 0; round < kRounds; ++round) {
    run_round(*swept, options.keys, Companion::Does::Spin, tails.quiet);
    run_round(*swept, options.keys, Companion::Does::Sweep, tails.sweeping);
  }
  return tails;
}

}  // namespace secondsight::bench
