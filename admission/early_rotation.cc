#include "admission/early_rotation.h"

#include <algorithm>
#include <cmath>

namespace secondsight::admission {
namespace {

constexpr double kEarlyShare = 0.75;  // of the window; later than that, the plan was about right
constexpr std::chrono::hours kTellInterval{1};

}  // namespace

std::optional<EarlyRotation> EarlyRotationWatch::look(const FilterStatus& status,
                                                      SteadyTime now) noexcept {
  const std::uint64_t known = known_rotations_.value_or(status.rotations_by_fill);
  known_rotations_ = known;
  if (status.rotations_by_fill == known) return std::nullopt;
  if (told_at_ && now - *told_at_ < kTellInterval) return std::nullopt;
  const double share = std::chrono::duration<double>(status.last_generation) /
                       std::chrono::duration<double>(window_);
  known_rotations_ = status.rotations_by_fill;
  if (share > kEarlyShare || share <= 0) return std::nullopt;
  told_at_ = now;
  constexpr double kMostKeys = 1e18;  // what a generation of one tick would come to fits in 64 bits
  const double keys = std::min(std::ceil(static_cast<double>(expected_keys_) / share), kMostKeys);
  return EarlyRotation{
      .lasted = std::chrono::duration_cast<std::chrono::milliseconds>(status.last_generation),
      .expected_keys = static_cast<std::uint64_t>(keys),
      .rotations = status.rotations_by_fill - known};
}

}  // namespace secondsight::admission
