#pragma once
#include <atomic>
#include <cstdint>

#include "admission/admission_policy.h"
#include "admission/mark_ring.h"
#include "config/clock.h"

namespace secondsight::admission {

enum class RotationCause : std::uint8_t { None, Age, Fill };

/// Says when a generation ends, for the structures whose rotation is complete within one call of
/// maintain(): by age, one `window` after the call that followed the last rotation, or by fill, at
/// `keys_per_generation` marks since that rotation was complete.
///
/// Whoever was marked before a rotation is forgotten by the next one. So no key is forgotten within
/// one window after it was sighted, nor, by fill, within keys_per_generation further marks.
///
/// Threads: add_mark(), take_mark_back(), marks() and describe() from any thread; the rest belongs
/// to the thread that calls maintain().
class GenerationClock {
 public:
  GenerationClock(std::uint64_t keys_per_generation, SteadyTime::duration window, SteadyTime now);

  /// `hash`: the key's Fingerprint::high.
  void add_mark(std::uint64_t hash) noexcept { marks_.add(hash); }
  /// A key of the current generation was removed from it.
  void take_mark_back() noexcept { taken_back_.fetch_add(1, std::memory_order_relaxed); }
  /// Marks in the current generation, less those taken back.
  std::uint64_t marks() const noexcept;

  /// Asked once in each call of maintain().
  RotationCause due(SteadyTime now) noexcept;
  /// The rotation is complete: nothing of the generation before the last is answered any more.
  void rotated(RotationCause cause, SteadyTime now) noexcept;

  /// Fills in the marks, the times and the rotations; leaves the rest as it is.
  void describe(FilterStatus& status, SteadyTime now) const noexcept;

  std::uint64_t keys_per_generation() const noexcept { return keys_per_generation_; }

 private:
  std::uint64_t marks_ever() const noexcept;

  const std::uint64_t keys_per_generation_;
  const SteadyTime::duration window_;
  MarkRing marks_;                            // counts only
  std::atomic<std::uint64_t> taken_back_{0};  // relaxed: as marks_ it orders nothing

  // Written by the thread of maintain(), relaxed: describe() shows them, they order nothing.
  std::atomic<std::uint64_t> marks_at_rotation_{0};
  std::atomic<SteadyTime::rep> rotated_at_;
  std::atomic<SteadyTime::rep> last_generation_{0};
  std::atomic<std::uint64_t> rotations_by_age_{0};
  std::atomic<std::uint64_t> rotations_by_fill_{0};
  SteadyTime window_from_;       // thread of maintain() only
  bool rotation_ended_ = false;  // ... and its end was not yet stamped
};

}  // namespace secondsight::admission
