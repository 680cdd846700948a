#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/disk_health.h"
#include "cache/disk_opening.h"
#include "cache/index.h"
#include "cache/key.h"
#include "cache/log/object_log.h"
#include "cache/memory_tier.h"
#include "cache/object.h"
#include "cache/purge_list.h"
#include "cache/reinsertion.h"
#include "config/metrics.h"

namespace secondsight::cache {

/// The writing side of the disk cache without its thread: objects become records, what is reclaimed
/// leaves the index, bytes are counted by cause. It puts nothing into the index itself: whoever
/// calls knows whether what was written is still wanted.
///
/// One thread, but for failed(), try_again(), health() and what is said of opening().
class DiskStore {
 public:
  /// Why bytes were written, for metrics.
  enum class Cause : std::uint8_t { Admitted, Refreshed, Tombstone, Reappended, Purge };

  /// `memory` null: no tier.
  DiskStore(log::ObjectLog& log, Index& index, MemoryTier* memory, PurgeList& purges,
            Metrics& metrics);

  /// The whole object: one record, or parts and a head. Empty: it could not be written.
  std::optional<Index::Entry> write(const Object& object);
  /// Bytes [first, first + size) of these chunks as a part; invisible until a head names it.
  std::optional<log::PartRef> write_part(const CacheKey& key, const std::vector<ChunkPtr>& chunks,
                                         std::uint64_t first, std::uint64_t size);
  /// A head over parts that are written.
  std::optional<Index::Entry> write_head(const CacheKey& key, const ObjectHead& head,
                                         std::span<const log::PartRef> parts);
  /// A new head over the body of the record at `old`, unless the index points elsewhere by now: to
  /// make room for it may have moved that very object.
  std::optional<Index::Entry> write_refreshed(const CacheKey& key, const ObjectHead& head,
                                              std::span<const log::PartRef> parts,
                                              const log::Location& old);
  bool write_tombstone(const admission::Fingerprint& key);
  Result<log::Location> write_purge(const log::RecordView& record) {
    return append(record, Cause::Purge);
  }
  /// DiskOpening::look(). What is given up leaves the index.
  DiskOpening::Found look_after_disk();
  DiskOpening& opening() noexcept { return opening_; }
  const DiskOpening& opening() const noexcept { return opening_; }
  DiskHealth& health() noexcept { return health_; }
  const DiskHealth& health() const noexcept { return health_; }
  /// Makes what was written durable. After an error it may be lost in a power cut.
  Result<> sync();
  void close();

  /// A write or a sync failed, and try_again() has not been called since; or the disk is not usable
  /// at all.
  bool failed() const noexcept {
    return failed_.load(std::memory_order_relaxed) || !opening_.is_usable();
  }
  /// Whether there was something to try again.
  bool try_again() noexcept { return failed_.exchange(false, std::memory_order_relaxed); }

 private:
  /// What the oldest segment's turn asks for.
  void make_room(const log::RecordView& view);
  /// That first, then the record.
  Result<log::Location> append(const log::RecordView& view, Cause cause);
  Result<log::Location> append_record(const log::RecordView& view, Cause cause);
  void forget_reclaimed(const admission::Fingerprint&, const log::Location&);

  DiskHealth health_;
  DiskOpening opening_;
  log::ObjectLog& log_;
  Index& index_;
  MemoryTier* memory_;
  Reinsertion reinsertion_;
  std::atomic<bool> failed_{false};        // relaxed: a hint
  std::array<Counter*, 5> written_bytes_;  // by Cause
  Counter& write_errors_;
};

}  // namespace secondsight::cache
