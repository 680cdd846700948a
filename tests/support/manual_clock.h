#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

#include "config/clock.h"

namespace secondsight::test {

/// A clock that stands still until it is told otherwise. Thread-safe.
class ManualClock final : public Clock {
 public:
  /// Wall time starts at 2026-01-01T00:00:00Z, so that ages and dates look real.
  ManualClock() = default;

  WallTime wall() const noexcept override {
    return WallTime{std::chrono::milliseconds{wall_ms_.load()}};
  }
  SteadyTime steady() const noexcept override {
    return SteadyTime{std::chrono::nanoseconds{steady_ns_.load()}};
  }

  /// Time passes: both clocks go on.
  void advance(std::chrono::milliseconds by) noexcept {
    wall_ms_ += by.count();
    steady_ns_ += std::chrono::nanoseconds{by}.count();
  }
  /// Somebody sets the machine's clock: only the wall jumps, backwards too.
  void set_wall(WallTime to) noexcept { wall_ms_ = to.time_since_epoch().count(); }

 private:
  static constexpr std::chrono::sys_days kStart{std::chrono::year{2026} / 1 / 1};

  std::atomic<std::int64_t> wall_ms_{std::chrono::milliseconds{kStart.time_since_epoch()}.count()};
  // Not zero: an interval's start that somebody forgot to set must not look like "just now".
  std::atomic<std::int64_t> steady_ns_{std::chrono::nanoseconds{std::chrono::hours{1}}.count()};
};

}  // namespace secondsight::test
