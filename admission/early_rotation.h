#pragma once
#include <chrono>
#include <cstdint>
#include <optional>

#include "admission/admission_policy.h"
#include "config/clock.h"
#include "config/settings.h"

namespace secondsight::admission {

/// A generation that was full well before its window ended: the filter remembers less long than its
/// settings say, because there are more new keys than planned.
struct EarlyRotation {
  std::chrono::milliseconds lasted{};
  std::uint64_t expected_keys = 0;  // that would have lasted the window at this traffic
  std::uint64_t rotations = 0;      // by fill, since the watch last told
};

/// Tells of early rotations, at most once an hour. One thread. What the first look() finds is taken
/// for old: a restart gives the filter its sightings back, rotations included.
class EarlyRotationWatch {
 public:
  explicit EarlyRotationWatch(const AdmissionSettings& settings)
      : window_(settings.window), expected_keys_(settings.expected_keys) {}

  /// Empty: there is nothing to tell, or not yet again.
  std::optional<EarlyRotation> look(const FilterStatus& status, SteadyTime now) noexcept;

 private:
  const std::chrono::milliseconds window_;
  const std::uint64_t expected_keys_;
  std::optional<std::uint64_t> known_rotations_;
  std::optional<SteadyTime> told_at_;
};

}  // namespace secondsight::admission
