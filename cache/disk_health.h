#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <boost/system/error_code.hpp>

#include "config/metrics.h"

namespace secondsight::cache {

/// Why the disk cannot be used. One table gives the metric's label and the log line's word.
enum class DiskTrouble : std::uint8_t {
  NoSpace,       // the file system, a quota, or a file size limit
  ReadOnly,      // what is there is served
  Gone,          // the directory, or something that is no directory stands in its place
  Busy,          // another process has the directory
  Held,          // readers hold every segment, so that none can be given up
  NewerVersion,  // a newer version wrote what is there
  OtherSeed,     // what is there belongs to another installation, or its seed is damaged
  Permission,
  Io,
};
inline constexpr std::size_t kDiskTroubleCount = 9;
std::string_view to_string(DiskTrouble trouble) noexcept;
/// Of an error of FileSystem or ObjectLog.
DiskTrouble trouble_of(const boost::system::error_code& error) noexcept;

/// What operators hear of the disk: each failure counted, each kind of it logged once until the
/// disk works again, and then that it does. Thread-safe.
class DiskHealth {
 public:
  explicit DiskHealth(Metrics& metrics);

  /// `doing` completes "cannot ...".
  void note_failure(std::string_view doing, const boost::system::error_code& error);
  void note_failure(std::string_view doing, DiskTrouble trouble, std::string_view error);
  /// The log is open, or a write arrived.
  void note_success() noexcept {
    if (!is_up_.load(std::memory_order_relaxed)) recover();
  }
  bool is_up() const noexcept { return is_up_.load(std::memory_order_relaxed); }

  /// A stored object could not be read. Whether that is worth a line: once for damage and once for
  /// all else, until a second has gone by without any.
  bool note_unreadable(const boost::system::error_code& error) noexcept;
  /// Once a second.
  void tick() noexcept;

 private:
  void recover() noexcept;
  Counter& count(DiskTrouble trouble) noexcept {
    return *counts_[static_cast<std::size_t>(trouble)];
  }

  // Relaxed, as all here: told to whoever asks, they order nothing.
  std::atomic<bool> is_up_{true};
  std::atomic<std::uint32_t> logged_{0};             // kinds, since it was up; by bit
  std::atomic<std::uint32_t> unreadable_{0};         // damaged: 1, else 2; in this second
  std::atomic<std::uint32_t> unreadable_logged_{0};  // likewise, since a second without
  std::array<Counter*, kDiskTroubleCount> counts_{};
};

}  // namespace secondsight::cache
