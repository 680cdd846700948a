#pragma once
#include <atomic>
#include <cstdint>

#include "cache/disk_health.h"
#include "cache/index.h"
#include "cache/log/object_log.h"
#include "cache/purge_list.h"

namespace secondsight::cache {

/// Whether there is a disk: opens the log when that becomes possible, and gives it another
/// directory when that which it had is gone. A process starts without its disk, and goes on
/// without it.
///
///   closed --look(): opened, replayed--> settling --publish()--> open
///   open   --another directory, or start_over_soon()--> look(): emptied--> open
///
/// What a directory that came back holds is never used: it may hold what was removed while it was
/// away. The log starts over there, as it does where too many removals are owed to it.
/// One thread, but for is_open() and is_usable().
class DiskOpening {
 public:
  DiskOpening(log::ObjectLog& log, Index& index, PurgeList& purges, DiskHealth& health);

  enum class Found : std::uint8_t {
    Nothing,      // new; the disk may be usable or not
    Replayed,     // the index holds what was there; publish() lets it be served
    StartedOver,  // nothing of before is there any more
  };
  /// Looks after the directory; before anything is written, then once a second. Where trying is
  /// expensive it does so less and less often, down to every eighth time.
  Found look(const log::ObjectLog::OnReclaimed& reclaimed);
  /// Lets readers see what was replayed.
  void publish() noexcept { is_open_.store(true, std::memory_order_release); }
  enum class Serving : std::uint8_t { GoesOn, Ends };
  /// What the directory holds may not be found by a restart: it is emptied as soon as it can be.
  /// Until then what the index says is right, and served on; or not, and nothing is.
  void start_over_soon(Serving serving) noexcept;

  /// What the index says may be served.
  bool is_open() const noexcept { return is_open_.load(std::memory_order_acquire); }
  /// Writing may be tried.
  bool is_usable() const noexcept { return is_usable_.load(std::memory_order_relaxed); }

 private:
  Found open();
  Found start_over(const log::ObjectLog::OnReclaimed& reclaimed);
  Found fail(const boost::system::error_code& error);

  log::ObjectLog& log_;
  Index& index_;
  PurgeList& purges_;
  DiskHealth& health_;
  std::atomic<bool> is_open_;    // release in publish() after the replay, acquire in is_open()
  std::atomic<bool> is_usable_;  // relaxed: a hint
  bool must_start_over_ = false;
  unsigned failures_ = 0;  // of what is expensive, in a row
  unsigned pause_ = 0;     // so many calls of look() do not try it
};

}  // namespace secondsight::cache
