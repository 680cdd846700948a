#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "admission/two_generation_filter.h"
#include "tests/bench/filter_contestant.h"

namespace secondsight::bench {

/// A filter whose rotations a Companion drives, and the time they are told.
struct SweptFilter {
  static constexpr SteadyTime::duration kWindow = std::chrono::hours(24);

  explicit SweptFilter(std::uint64_t keys)
      : filter(admission::size_filter(keys, kRate), kWindow, SteadyTime(now)) {}

  SteadyTime::duration now{std::chrono::hours{1}};  // the companion's
  std::atomic<SteadyTime::rep> latest{0};           // stored before each call of maintain()
  std::atomic<std::uint64_t> rotations{0};          // begun; relaxed: a figure for the report
  admission::TwoGenerationFilter filter;
};

/// A second thread while it lives: one that calls maintain() so that the sweep never rests, or one
/// that keeps its core busy and touches nothing, so that what the scheduler does is the same.
class Companion {
 public:
  enum class Does { Sweep, Spin };

  Companion(SweptFilter& swept, Does does)
      : thread_([this, &swept, does] {
          while (!stop_.load(std::memory_order_relaxed)) {
            if (does == Does::Sweep) step(swept);
          }
        }) {}
  ~Companion() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
  }
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;

 private:
  // Half a window at a time between sweeps: what was marked since the call before is to be known.
  static void step(SweptFilter& swept) {
    const bool was_sweeping = swept.filter.sweeping();
    if (!was_sweeping) swept.now += SweptFilter::kWindow / 2;
    swept.latest.store(swept.now.count());
    swept.filter.maintain(SteadyTime(swept.now));
    if (!was_sweeping && swept.filter.sweeping()) {
      swept.rotations.fetch_add(1, std::memory_order_relaxed);
    }
  }

  std::atomic<bool> stop_{false};  // relaxed: nothing hangs on when it is seen
  std::thread thread_;
};

}  // namespace secondsight::bench
