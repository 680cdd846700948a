#include "admission/generation_clock.h"

#include "config/check.h"

namespace secondsight::admission {
namespace {

SteadyTime::rep to_ticks(SteadyTime time) noexcept {
  return time.time_since_epoch().count();
}

SteadyTime to_time(const std::atomic<SteadyTime::rep>& ticks) noexcept {
  return SteadyTime(SteadyTime::duration(ticks.load(std::memory_order_relaxed)));
}

}  // namespace

GenerationClock::GenerationClock(std::uint64_t keys_per_generation, SteadyTime::duration window,
                                 SteadyTime now)
    : keys_per_generation_(keys_per_generation),
      window_(window),
      rotated_at_(to_ticks(now)),
      window_from_(now) {
  CHECK(keys_per_generation > 0);
  CHECK(window > SteadyTime::duration::zero());
}

std::uint64_t GenerationClock::marks_ever() const noexcept {
  // Relaxed counters: what was taken back may be seen before it is seen to have been added.
  const std::uint64_t taken_back = taken_back_.load(std::memory_order_relaxed);
  const std::uint64_t added = marks_.value();
  return added > taken_back ? added - taken_back : 0;
}

std::uint64_t GenerationClock::marks() const noexcept {
  const std::uint64_t base = marks_at_rotation_.load(std::memory_order_relaxed);
  const std::uint64_t ever = marks_ever();
  return ever > base ? ever - base : 0;
}

RotationCause GenerationClock::due(SteadyTime now) noexcept {
  if (rotation_ended_) {
    // The rotation took time: its end is the next call's `now`, so that no window is cut short.
    window_from_ = now;
    rotation_ended_ = false;
  }
  if (marks() >= keys_per_generation_) return RotationCause::Fill;
  return now - window_from_ >= window_ ? RotationCause::Age : RotationCause::None;
}

void GenerationClock::rotated(RotationCause cause, SteadyTime now) noexcept {
  CHECK(cause != RotationCause::None);
  (cause == RotationCause::Fill ? rotations_by_fill_ : rotations_by_age_)
      .fetch_add(1, std::memory_order_relaxed);
  last_generation_.store((now - to_time(rotated_at_)).count(), std::memory_order_relaxed);
  rotated_at_.store(to_ticks(now), std::memory_order_relaxed);
  marks_at_rotation_.store(marks_ever(), std::memory_order_relaxed);
  rotation_ended_ = true;
}

void GenerationClock::describe(FilterStatus& status, SteadyTime now) const noexcept {
  status.marked_keys = marks();
  status.window_age = now - to_time(rotated_at_);
  status.last_generation = SteadyTime::duration(last_generation_.load(std::memory_order_relaxed));
  status.rotations_by_age = rotations_by_age_.load(std::memory_order_relaxed);
  status.rotations_by_fill = rotations_by_fill_.load(std::memory_order_relaxed);
}

}  // namespace secondsight::admission
