#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "admission/huge_memory.h"

namespace secondsight::admission {

/// Counts the marks of a filter, and keeps the latest of them until the journal of sightings takes
/// them, without making two workers share a cache line, wait, or call the kernel. add() from any
/// thread; drain() from one. value() is exact once the adders are at rest, and never goes back for
/// one reader.
///
/// A thread adds to one of 16 stripes. A stripe holds its last kKept marks; one that is not taken
/// in time is overwritten, which loses it to the journal, not to the filter.
class MarkRing {
 public:
  static constexpr std::size_t kStripes = 16;
  static constexpr std::size_t kKept = std::size_t{1} << 14U;  // marks of one stripe
  static constexpr std::size_t kKeptBytes = kStripes * kKept * sizeof(std::uint64_t);

  /// From here on marks are kept, not counted only. Call before there is any other thread. Throws
  /// std::bad_alloc.
  void keep_marks();
  bool keeps_marks() const noexcept { return memory_ != nullptr; }

  void add(std::uint64_t mark) noexcept {
    Stripe& stripe = stripes_[number_of_thread()];
    const std::uint64_t n = stripe.count.fetch_add(1, std::memory_order_relaxed);
    // Release, with drain()'s acquire: whoever takes the mark sees the epoch that it was made in.
    if (stripe.kept != nullptr) stripe.kept[n % kKept].store(mark, std::memory_order_release);
  }

  std::uint64_t value() const noexcept {
    std::uint64_t sum = 0;
    for (const Stripe& stripe : stripes_) sum += stripe.count.load(std::memory_order_relaxed);
    return sum;
  }

  /// What add() touches for this thread, to be asked for ahead.
  const std::atomic<std::uint64_t>& stripe_of_thread() const noexcept {
    return stripes_[number_of_thread()].count;
  }

  /// Appends the marks that were added since the last call. A mark that is being added at this
  /// moment comes with the next call. How many were lost since the last call.
  std::uint64_t drain(std::vector<std::uint64_t>& out);

 private:
  using Slot = std::atomic<std::uint64_t>;  // 0: empty; a mark of 0 (one in 2^64) is never kept
  struct alignas(64) Stripe {
    std::atomic<std::uint64_t> count{0};  // relaxed: triggers a rotation, orders nothing
    Slot* kept = nullptr;                 // null: marks are not kept
  };
  /// drain() only.
  struct Cursor {
    std::uint64_t next = 0;
    bool was_empty = false;  // its slot was, at the last call
  };

  static std::size_t number_of_thread() noexcept {
    static std::atomic<std::size_t> next{0};  // relaxed: any spread will do
    thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed) % kStripes;
    return mine;
  }
  std::uint64_t drain_stripe(std::size_t stripe, std::vector<std::uint64_t>& out);

  std::array<Stripe, kStripes> stripes_{};
  std::unique_ptr<HugeMemory> memory_;
  std::array<Cursor, kStripes> cursors_{};
};

}  // namespace secondsight::admission
