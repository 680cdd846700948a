#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "cache/log/object_log.h"
#include "cache/purge_list.h"
#include "config/result.h"

namespace secondsight::cache {

/// A purge that is in effect already, on its way to the disk.
struct PendingPurge {
  Purge purge;
  PurgeStamp stamp;
  WallTime time;
};

/// Brings purges to the disk, on the writer's thread. Those that come in a row are synced together.
/// What the disk did not take is owed, and tried again when the writer is told that the disk may
/// work: a lost purge would let a restart revive what it removed.
class PurgeWriter {
 public:
  /// Above this many owed ones all that the disk holds is given up.
  static constexpr std::size_t kOwedMax = 65'536;
  /// Told on the writer's thread, without a lock held: no error once all of them hold after a power
  /// cut, else why they do not yet.
  using Done = std::function<void(const boost::system::error_code&)>;
  struct Job {
    std::vector<PendingPurge> purges;
    Done done;
  };
  using Append = std::function<Result<log::Location>(const log::RecordView&)>;
  using Sync = std::function<Result<>()>;
  using GiveUp = std::function<void()>;

  /// The list must outlive it.
  PurgeWriter(PurgeList& list, Append append, Sync sync, GiveUp give_up);

  /// Appends; whoever waits is told by settle().
  void write(Job job);
  bool has_unsettled() const noexcept { return !unsettled_.empty(); }
  std::size_t unsettled() const noexcept { return unsettled_.size(); }
  /// Syncs, and tells all who wait.
  void settle();
  /// Tries again what is owed.
  void write_owed();
  /// There is nothing left that could come back: nothing is owed.
  void note_given_up();
  /// How many the disk has not taken yet. From any thread.
  std::size_t owed() const noexcept { return owed_count_.load(std::memory_order_relaxed); }

 private:
  struct Unsettled {
    std::vector<PendingPurge> written;
    boost::system::error_code error;
    Done done;
  };
  boost::system::error_code append(std::vector<PendingPurge> purges,
                                   std::vector<PendingPurge>& written);
  void owe(PendingPurge purge);

  PurgeList& list_;
  const Append append_;
  const Sync sync_;
  const GiveUp give_up_;
  std::vector<Unsettled> unsettled_;
  std::vector<PendingPurge> owed_;
  std::atomic<std::size_t> owed_count_{0};  // relaxed: a statistic
};

}  // namespace secondsight::cache
