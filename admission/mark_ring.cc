#include "admission/mark_ring.h"

#include <memory>

#include "config/check.h"

namespace secondsight::admission {

void MarkRing::keep_marks() {
  CHECK(!keeps_marks());
  memory_ = std::make_unique<HugeMemory>(kKeptBytes);
  auto* const slots = static_cast<Slot*>(memory_->data());
  std::uninitialized_value_construct_n(slots, kStripes * kKept);
  for (std::size_t s = 0; s < kStripes; ++s) {
    cursors_[s].next = stripes_[s].count.load(std::memory_order_relaxed);
    stripes_[s].kept = slots + s * kKept;
  }
}

std::uint64_t MarkRing::drain(std::vector<std::uint64_t>& out) {
  CHECK(keeps_marks());
  std::uint64_t lost = 0;
  for (std::size_t s = 0; s < kStripes; ++s) lost += drain_stripe(s, out);
  return lost;
}

std::uint64_t MarkRing::drain_stripe(std::size_t stripe, std::vector<std::uint64_t>& out) {
  Cursor& cursor = cursors_[stripe];
  const std::uint64_t end = stripes_[stripe].count.load(std::memory_order_relaxed);
  std::uint64_t lost = 0;
  if (end - cursor.next > kKept) {  // overwritten: the adders were a whole ring ahead
    lost = end - cursor.next - kKept;
    cursor = {end - kKept, false};
  }
  // A slot that is empty for the second time is given up, and with it all empty ones of this call:
  // an adder sleeps, or the marks of an overwritten lap were taken for theirs, which may leave many
  // gaps.
  const bool gives_up = cursor.was_empty;
  for (; cursor.next < end; ++cursor.next) {
    const std::uint64_t mark =
        stripes_[stripe].kept[cursor.next % kKept].exchange(0, std::memory_order_acquire);
    cursor.was_empty = mark == 0 && !gives_up;
    if (cursor.was_empty) return lost;  // counted and not put here yet: wait for it, once
    if (mark != 0)
      out.push_back(mark);
    else
      ++lost;
  }
  return lost;
}

}  // namespace secondsight::admission
