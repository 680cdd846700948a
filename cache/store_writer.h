#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "cache/detail.h"
#include "cache/disk_store.h"
#include "cache/fill.h"
#include "cache/index.h"
#include "cache/log/object_log.h"
#include "cache/memory_tier.h"
#include "cache/object.h"
#include "cache/purge_list.h"
#include "cache/purge_writer.h"
#include "config/metrics.h"

namespace secondsight::cache {

/// The only thread that writes to the log, and its bounded queue. Whoever admits an object hands it
/// over and goes on: nobody waits for the disk, and no disk error reaches a client.
///
/// An object counts against the queue from the moment it is taken until it is written; a fill
/// reserves kFillReserveBytes for as long as it lives. Full means refused and counted. After a
/// failed write new objects are refused until Maintenance calls try_disk_again(), once a second.
///
/// A log that is not open is opened here, in the constructor or as soon as it can be; until then
/// objects are refused, and removals remembered: they are applied before anything that was on the
/// disk is served.
///
/// All functions are thread-safe.
class StoreWriter {
 public:
  static constexpr std::uint64_t kFillPartBytes = 1U << 20;  // one part of a fill, at most
  /// Above this many removals that the disk did not take, all that it holds is given up.
  static constexpr std::size_t kOwedTombstonesMax = 65'536;
  /// So many are synced even while others wait.
  static constexpr std::size_t kUnsyncedTombstonesMax = 1'024;
  static constexpr std::uint64_t kFillReserveBytes =
      2U << 20;  // one being gathered, one being written

  StoreWriter(log::ObjectLog& log, Index& index, MemoryTier* memory, PurgeList& purges,
              std::uint64_t queue_bytes_max, Metrics& metrics);
  ~StoreWriter();  // as stop()

  /// Takes a whole object. None: taken; else QueueFull or DiskError.
  Detail store(ObjectPtr object);
  /// Takes a marker that must not be lost, whatever waits and however the disk is: without it, what
  /// it outdates could be found again. Tried again until the disk takes it.
  void store_for_certain(ObjectPtr marker);
  /// Opens a fill; null when the queue has no room for it (QueueFull) or the disk failed
  /// (DiskError).
  std::shared_ptr<Fill> begin_fill(const CacheKey& key, std::uint64_t purges_seen,
                                   std::function<void()> on_progress, Detail& refusal);
  /// The next part, at most kFillPartBytes and the log's part_body_bytes_max(). The caller keeps
  /// waiting_bytes() within what it reserved.
  void append(const std::shared_ptr<Fill>& fill, std::vector<ChunkPtr> pieces, std::uint64_t bytes);
  void commit(const std::shared_ptr<Fill>& fill, std::shared_ptr<const ObjectHead> head);
  void abandon(const std::shared_ptr<Fill>& fill);

  /// A new head for a stored body (after a 304): a small record that points at the old body.
  /// Dropped where the queue has no room: the old head stays, and is validated again.
  /// `purges_seen`: as of an Object.
  void refresh(const CacheKey& key, std::shared_ptr<const ObjectHead> head, Index::Entry old,
               std::vector<log::PartRef> parts, std::uint64_t purges_seen);
  /// Forgets a key for good: what is in the index, in the queue and being written is not found any
  /// more; a tombstone in the log follows soon.
  void remove(const CacheKey& key);
  /// Takes purges that are in the list already, whatever waits. Told as PurgeWriter says; after
  /// stop() at once, with operation_canceled.
  void purge(PurgeWriter::Job job);
  std::size_t owed_purges() const noexcept { return purge_writer_.owed(); }

  /// An object that was taken and is not in the index yet. Null: none.
  ObjectPtr find_pending(const CacheKey& key) const;
  struct Refreshed {
    log::Location old;
    std::shared_ptr<const ObjectHead> head;
    std::uint64_t purges_seen = 0;
  };
  /// The head that was taken for the record of `entry` and is not written yet. Its head null: none.
  Refreshed find_refreshed(const CacheKey& key, const Index::Entry& entry) const;
  /// Whether anything of that key is on its way to the index: an object, or a fill's last word.
  bool is_on_its_way(const CacheKey& key) const;

  /// Once a second.
  void try_disk_again() noexcept;
  /// Whether what the index says may be served: not before the disk could be opened.
  bool is_open() const noexcept { return store_.opening().is_open(); }
  bool is_directory_usable() const noexcept { return store_.opening().is_usable(); }
  bool is_disk_up() const noexcept {
    return store_.opening().is_usable() && store_.health().is_up();
  }
  DiskHealth& health() noexcept { return store_.health(); }
  std::uint64_t queue_bytes() const noexcept {
    return queue_bytes_.load(std::memory_order_relaxed);
  }
  /// Returns when everything taken before the call was dealt with, and removals are durable.
  void drain();
  /// Writes what is queued, seals the log, ends the thread. Later calls are refused with QueueFull.
  void stop();

 private:
  struct StoreJob {
    ObjectPtr object;
    bool is_certain = false;
  };
  struct PartJob {
    std::shared_ptr<Fill> fill;
    std::vector<ChunkPtr> pieces;
    std::uint64_t bytes;
  };
  struct CommitJob {
    std::shared_ptr<Fill> fill;
    std::shared_ptr<const ObjectHead> head;
  };
  struct AbandonJob {
    std::shared_ptr<Fill> fill;
  };
  struct RefreshJob {
    CacheKey key;
    std::shared_ptr<const ObjectHead> head;
    Index::Entry old;
    std::vector<log::PartRef> parts;
    std::uint64_t bytes;  // what it takes of the queue
    std::uint64_t purges_seen;
  };
  struct RemoveJob {
    admission::Fingerprint key;
  };
  using PurgeJob = PurgeWriter::Job;
  struct DrainJob {
    std::function<void()> done;
  };
  using Job = std::variant<StoreJob, PartJob, CommitJob, AbandonJob, RefreshJob, RemoveJob,
                           PurgeJob, DrainJob>;

  void run();
  void push(Job job);
  void push_locked(Job job);
  void note_pending();  // with mutex_ held
  void execute(StoreJob&);
  void execute(PartJob&);
  void execute(CommitJob&);
  void execute(AbandonJob&);
  void execute(RefreshJob&);
  void execute(RemoveJob&);
  void execute(PurgeJob&);
  void execute(DrainJob&);
  bool is_current(const RefreshJob&) const;
  bool is_wanted(const ObjectPtr&) const;
  bool is_purged(std::uint64_t purges_seen, const CacheKey&, const ObjectHead&) const;
  bool must_settle_purges() const;  // with mutex_ held
  bool make_visible(const std::shared_ptr<Fill>&, const std::optional<Index::Entry>&);
  bool write_tombstone(const admission::Fingerprint&);
  bool has_unsynced_removals() const noexcept {
    return !unsynced_tombstones_.empty() || !unsynced_markers_.empty();
  }
  Result<> sync();
  void owe(const admission::Fingerprint& key);
  void write_owed();
  bool owes() const noexcept {
    return !owed_tombstones_.empty() || !owed_markers_.empty() || purge_writer_.owed() > 0;
  }
  void look_after_disk();
  void settle_removals();

  log::ObjectLog& log_;
  DiskStore store_;  // writer thread only, but for what it says
  Index& index_;
  const PurgeList& purges_;
  PurgeWriter purge_writer_;  // writer thread only, but for owed()
  const std::uint64_t queue_bytes_max_;

  std::atomic<std::uint64_t> queue_bytes_{0};  // relaxed: a bound, orders nothing
  std::atomic<std::uint64_t> pending_count_{
      0};  // of all three maps; relaxed: lets find_pending skip the lock
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Job> queue_;  // guarded by mutex_, as are the next four
  boost::unordered_flat_map<admission::Fingerprint, ObjectPtr, admission::FingerprintHash> pending_;
  boost::unordered_flat_map<admission::Fingerprint, std::shared_ptr<Fill>,
                            admission::FingerprintHash>
      committing_;
  boost::unordered_flat_map<admission::Fingerprint, Refreshed, admission::FingerprintHash>
      refreshing_;
  bool stopping_ = false;
  bool has_new_chance_ = false;  // guarded by mutex_: the disk may work again
  // Written since the last sync; writer thread only, as are the next.
  std::vector<admission::Fingerprint> unsynced_tombstones_;
  std::vector<ObjectPtr> unsynced_markers_;
  /// Removed keys whose tombstone could not be written, or not synced: a restart would revive them.
  std::vector<admission::Fingerprint> owed_tombstones_;
  std::vector<ObjectPtr> owed_markers_;  // writer thread only; in pending_ until they are written

  Counter& objects_written_;
  std::thread thread_;
};

}  // namespace secondsight::cache
