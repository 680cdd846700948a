#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace secondsight::admission {

/// Counts marks without making two workers share a cache line. add() from any thread; the sum is
/// exact once the adders are at rest, and never goes back for one reader.
class MarkCounter {
 public:
  void add() noexcept {
    stripes_[stripe_of_thread()].count.fetch_add(1, std::memory_order_relaxed);
  }

  std::uint64_t value() const noexcept {
    std::uint64_t sum = 0;
    for (const Stripe& stripe : stripes_) sum += stripe.count.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  static constexpr std::size_t kStripes = 16;
  struct alignas(64) Stripe {
    std::atomic<std::uint64_t> count{0};  // relaxed: triggers a rotation, orders nothing
  };

  static std::size_t stripe_of_thread() noexcept {
    static std::atomic<std::size_t> next{0};  // relaxed: any spread will do
    thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed) % kStripes;
    return mine;
  }

  std::array<Stripe, kStripes> stripes_{};
};

}  // namespace secondsight::admission
