#pragma once
#include <array>
#include <atomic>
#include <benchmark/benchmark.h>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <sched.h>
#include <utility>
#include <vector>

#include "admission/bloom_math.h"
#include "admission/two_generation_filter.h"
#include "tests/admission/keys.h"
#include "tests/bench/filter_bench.h"

namespace secondsight::bench {

inline constexpr std::size_t kBatch = 16;
inline constexpr double kRate = 0.01;
// Few enough for a repetition to leave the fill as it was.
inline constexpr std::int64_t kOperations = 1 << 20;
inline constexpr std::int64_t kColdOperations = 4000;

/// Whether marks are also kept for the journal of sightings, as in a proxy with a disk.
enum class Marks { Counted, Kept };

/// The product's filter in the shape of the others. rotate() from one thread.
class TwoGenerations {
 public:
  TwoGenerations(std::uint64_t keys, Marks marks)
      : filter_(admission::size_filter(keys, kRate), kWindow, now_) {
    if (marks == Marks::Kept) filter_.keep_marks();
  }

  [[gnu::always_inline]] void prefetch(const admission::Fingerprint& key) const noexcept {
    filter_.prefetch(key);
  }
  bool sight(const admission::Fingerprint& key) noexcept {
    return filter_.sight(key) == admission::Sighting::Repeat;
  }
  void rotate() noexcept {
    filter_.maintain(now_ += kWindow);
    while (filter_.sweeping()) filter_.maintain(now_);
    filter_.maintain(now_);
  }
  std::uint64_t marked_keys() const noexcept { return filter_.status(now_).marked_keys; }

 private:
  static constexpr std::chrono::hours kWindow{24};
  SteadyTime now_{std::chrono::hours{1}};
  admission::TwoGenerationFilter filter_;
};

/// Two of `Filter`'s generations on an average day: `previous` full of known keys, `current`
/// between a quarter and three quarters full of strangers.
template <typename Filter>
class Contestant {
 public:
  Contestant(std::uint64_t keys, std::unique_ptr<Filter> filter)
      : keys_(keys), filter_(std::move(filter)) {
    refill();
  }

  Filter& filter() noexcept { return *filter_; }

  /// Before each repetition, by one thread: the strangers of earlier ones must not pile up.
  void prepare() {
    if (filter_->marked_keys() > keys_ / 4 * 3) refill();
  }

  /// The next keys of a mix as an edge sees it: three strangers in four, the rest known.
  class Mix {
   public:
    explicit Mix(std::uint64_t keys)
        : keys_(keys),
          stream_(next_stream()),
          strangers_(stream_),
          at_(stream_ * 7'654'321 % keys) {}
    admission::Fingerprint at(std::uint64_t index) const noexcept {
      return index % 4 == 0 ? known_.at((at_ + index) % keys_) : strangers_.at(index);
    }

   private:
    static std::uint64_t next_stream() noexcept {
      static std::atomic<std::uint64_t> next{100};
      return next.fetch_add(1, std::memory_order_relaxed);
    }
    std::uint64_t keys_;
    std::uint64_t stream_;
    admission::test::Keys known_{kKnownStream};
    admission::test::Keys strangers_;
    std::uint64_t at_;
  };
  Mix mix() const { return Mix(keys_); }

 private:
  static constexpr std::uint64_t kKnownStream = 1;

  void fill(admission::test::Keys keys, std::uint64_t count) {
    std::array<admission::Fingerprint, kBatch> batch;
    while (keys.taken() < count) {
      for (admission::Fingerprint& key : batch) filter_->prefetch(key = keys.next());
      for (const admission::Fingerprint& key : batch) filter_->sight(key);
    }
  }
  void refill() {
    filter_->rotate();
    fill(admission::test::Keys(kKnownStream), keys_);
    filter_->rotate();
    fill(admission::test::Keys(kKnownStream + 1 + refills_++), keys_ / 4);
  }

  std::uint64_t keys_;
  std::unique_ptr<Filter> filter_;
  std::uint64_t refills_ = 0;
};

/// Built by its first case, kept for the others.
template <typename Filter>
class Lazily {
 public:
  using Make = std::unique_ptr<Filter> (*)(std::uint64_t keys);
  Lazily(std::uint64_t keys, Make make) : keys_(keys), make_(make) {}

  /// Called by every thread of a case before its loop; `state` tells them apart.
  Contestant<Filter>& ready(const benchmark::State& state) {
    const std::lock_guard lock(mutex_);
    if (!contestant_) contestant_ = std::make_unique<Contestant<Filter>>(keys_, make_(keys_));
    if (state.thread_index() == 0) contestant_->prepare();
    return *contestant_;
  }

 private:
  std::uint64_t keys_;
  Make make_;
  std::mutex mutex_;
  std::unique_ptr<Contestant<Filter>> contestant_;
};

/// Keeps the threads of a case on a core each, as far as there are enough: two that take turns on
/// one would measure nothing.
class OnOwnCore {
 public:
  explicit OnOwnCore(const benchmark::State& state) {
    if (state.threads() == 1) return;
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    const int wanted = state.thread_index() % CPU_COUNT(&before_);
    int seen = 0;
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &before_)) continue;
      if (seen++ == wanted) CPU_SET(cpu, &one);
    }
    is_bound_ = ::sched_setaffinity(0, sizeof one, &one) == 0;
  }
  ~OnOwnCore() {
    if (is_bound_) ::sched_setaffinity(0, sizeof before_, &before_);
  }
  OnOwnCore(const OnOwnCore&) = delete;
  OnOwnCore& operator=(const OnOwnCore&) = delete;

 private:
  cpu_set_t before_{};
  bool is_bound_ = false;
};

/// Each key depends on the answer before: no overlap between two sightings.
template <typename Filter>
void isolated(benchmark::State& state, Contestant<Filter>& contestant) {
  Filter& filter = contestant.filter();
  const auto mix = contestant.mix();
  std::uint64_t i = 0;
  for (auto _ : state) {
    std::uint64_t said = filter.sight(mix.at(i)) ? 4 : 0;  // a multiple of four keeps the mix
    asm volatile("" : "+r"(said));                         // data, not a branch to be guessed
    i += 1 + said;
  }
}

/// Independent keys one after another: the processor overlaps what it can.
template <typename Filter>
void streamed(benchmark::State& state, Contestant<Filter>& contestant) {
  const OnOwnCore core(state);
  Filter& filter = contestant.filter();
  const auto mix = contestant.mix();
  std::uint64_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(filter.sight(mix.at(i++)));
}

/// Sixteen prefetches, then sixteen sightings.
template <typename Filter>
void batched(benchmark::State& state, Contestant<Filter>& contestant) {
  const OnOwnCore core(state);
  Filter& filter = contestant.filter();
  const auto mix = contestant.mix();
  std::uint64_t i = 0;
  std::array<admission::Fingerprint, kBatch> batch;
  while (state.KeepRunningBatch(kBatch)) {
    for (admission::Fingerprint& key : batch) filter.prefetch(key = mix.at(i++));
    for (const admission::Fingerprint& key : batch) benchmark::DoNotOptimize(filter.sight(key));
  }
}

/// Sixty-four keys that are asked for all the time: nothing is written.
template <typename Filter>
void hot_keys(benchmark::State& state, Contestant<Filter>& contestant) {
  const OnOwnCore core(state);
  Filter& filter = contestant.filter();
  const admission::test::Keys hot(50);
  std::uint64_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(filter.sight(hot.at(i++ % 64)));
}

enum class Ahead { Prefetched, Unprepared };

/// What a request does to the caches between two sightings: 1.5 MiB written, more than the
/// second-level cache holds, and 4096 small pages touched, more than the TLB does.
class OtherWork {
 public:
  void all() noexcept {
    for (std::size_t w = 0; w < lines_.size(); w += 8) ++lines_[w];
    for (std::size_t page = 0; page < kPages; ++page) ++pages_[page * 512 + page * 8 % 512];
  }
  /// About a microsecond.
  void some() noexcept {
    for (std::size_t w = 0; w < 2048; w += 8) ++lines_[w];
  }

 private:
  static constexpr std::size_t kPages = 4096;
  std::vector<std::uint64_t> lines_ = std::vector<std::uint64_t>(std::size_t{3} << 16U);
  std::vector<std::uint64_t> pages_ = std::vector<std::uint64_t>(kPages * 512);
};

/// Only sight() is timed, by the clock, less the clock's own cost. Operations above 20 us are
/// interruptions and left out.
template <typename Filter>
void cold(benchmark::State& state, Contestant<Filter>& contestant, Ahead ahead) {
  using Clock = std::chrono::steady_clock;
  using Nanoseconds = std::chrono::duration<double, std::nano>;
  constexpr Nanoseconds kInterruption{20'000};
  Filter& filter = contestant.filter();
  const auto mix = contestant.mix();
  OtherWork work;
  std::uint64_t i = 0;
  std::uint64_t counted = 0;
  Nanoseconds sum{};
  for (auto _ : state) {
    const admission::Fingerprint key = mix.at(i++);
    work.all();
    if (ahead == Ahead::Prefetched) filter.prefetch(key);
    work.some();
    const auto before = Clock::now();
    benchmark::DoNotOptimize(filter.sight(key));
    benchmark::ClobberMemory();
    const auto after = Clock::now();
    const auto clock_read = Clock::now();
    if (clock_read - before > kInterruption) continue;
    sum += Nanoseconds(after - before) - Nanoseconds(clock_read - after);
    ++counted;
  }
  state.counters["ns"] = sum.count() / static_cast<double>(counted);
}

}  // namespace secondsight::bench
