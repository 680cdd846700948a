#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "admission/fingerprint.h"
#include "config/clock.h"

namespace secondsight::proxy {

/// Remembers keys for some seconds, in a table of fixed size where a newer key may push an older
/// one out: for what only saves work, and costs little where it is wrong. 32 bits of a key are
/// compared. Lock-free, any thread; entries stand alone, so relaxed.
class RecentKeys {
 public:
  void note(const admission::Fingerprint& key, SteadyTime now,
            std::chrono::seconds how_long) noexcept {
    slot(key).store((key.high << 32) | seconds_of(now + how_long), std::memory_order_relaxed);
  }
  void forget(const admission::Fingerprint& key) noexcept {
    auto& entry = slot(key);
    if (entry.load(std::memory_order_relaxed) >> 32 == (key.high & UINT32_MAX))
      entry.store(0, std::memory_order_relaxed);
  }
  bool contains(const admission::Fingerprint& key, SteadyTime now) const noexcept {
    const std::uint64_t entry = slots_[key.low % kSlots].load(std::memory_order_relaxed);
    return entry >> 32 == (key.high & UINT32_MAX) && (entry & UINT32_MAX) > seconds_of(now);
  }

 private:
  static constexpr std::size_t kSlots = 8192;
  static std::uint64_t seconds_of(SteadyTime now) noexcept {
    return static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count());
  }
  std::atomic<std::uint64_t>& slot(const admission::Fingerprint& key) noexcept {
    return slots_[key.low % kSlots];
  }

  std::array<std::atomic<std::uint64_t>, kSlots> slots_{};  // 32 bits of a key, 32 of seconds
};

}  // namespace secondsight::proxy
