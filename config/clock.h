#pragma once
#include <chrono>

namespace secondsight {

using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;  // dates, ages; may jump
using SteadyTime = std::chrono::steady_clock::time_point;           // intervals; never goes back
using Seconds = std::chrono::seconds;

/// The only door to the current time. Held by the workers' services and Maintenance; everything
/// below them takes `now` as an argument. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime wall() const noexcept = 0;
  virtual SteadyTime steady() const noexcept = 0;
};

/// The machine's clocks. Thread-safe.
class SystemClock final : public Clock {
 public:
  WallTime wall() const noexcept override {
    return std::chrono::time_point_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now());
  }
  SteadyTime steady() const noexcept override { return std::chrono::steady_clock::now(); }
};

}  // namespace secondsight
