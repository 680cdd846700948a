#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "admission/admission_policy.h"
#include "cache/detail.h"
#include "cache/fill.h"
#include "cache/index.h"
#include "cache/key.h"
#include "cache/log/object_log.h"
#include "cache/memory_tier.h"
#include "cache/object.h"
#include "cache/purge_list.h"
#include "cache/purge_sweep.h"
#include "cache/scrubber.h"
#include "cache/store_writer.h"
#include "config/metrics.h"
#include "config/settings.h"

namespace secondsight::cache {

/// A stored response on disk, its head read: `body` gives its bytes.
struct DiskObject {
  std::shared_ptr<const ObjectHead> head;
  std::unique_ptr<log::ObjectReader> body;
  std::uint64_t body_bytes = 0;
  bool is_vary_marker = false;
  Index::Entry entry;
  std::uint64_t purges_seen = 0;  // as of an Object
};

/// Where the body of a stored object is.
std::vector<log::PartRef> body_parts(const DiskObject& object);

/// Where a key is now.
struct Places {
  ObjectPtr in_memory;         // in the memory tier
  ObjectPtr in_queue;          // taken by the writer, not in the index yet
  bool is_on_its_way = false;  // that, or a fill whose last word is queued
  std::optional<Index::Entry> on_disk;

  /// What find_in_memory() gives.
  const ObjectPtr& object() const noexcept { return in_memory ? in_memory : in_queue; }
};

/// Permission to write one response: made by Cache::sight() and Cache::promote() only, so that
/// nothing reaches the disk around the admission policy.
class Admitted {
 public:
  Detail reason() const noexcept { return reason_; }

 private:
  friend class Cache;
  explicit Admitted(Detail reason) noexcept : reason_(reason) {}
  Detail reason_;
};

/// What one sighting decided. `admitted` is empty when refused; `detail` says why in either case.
struct Sighting {
  Detail detail = Detail::None;
  std::optional<Admitted> admitted;
};

/// Where a response is kept. `marker` null: its resource does not vary.
struct Placement {
  CacheKey key;
  ObjectPtr marker;
};

struct TaggedVariant {
  std::string etag;
  CacheKey key;
};

/// Memory tier, index, log and admission as one cache. Owns the tier, the index, the log and the
/// writer thread; borrows the rest. Thread-safe. Only open_object() with ReadMode::Blocking blocks:
/// call it on a disk thread.
class Cache {
 public:
  /// `files` null: memory only. Replays the log into the index. Errors: those of ObjectLog::open.
  static Result<std::unique_ptr<Cache>> open(const CacheSettings& settings, FileSystem* files,
                                             admission::AdmissionPolicy& policy,
                                             const admission::FingerprintSeed& seed,
                                             Metrics& metrics);
  ~Cache();

  /// Starts the memory accesses that a look-up will need.
  void prefetch(const CacheKey& key) const noexcept { policy_.prefetch(key.fingerprint()); }

  // --- look-up. What was purged is not found; what was purged softly has a head that says so.
  /// To be read before the cache is asked, and the origin: what is stored then comes with it
  /// (Object::purges_seen), and counts as older than every later purge.
  std::uint64_t purges() const noexcept { return purges_.sequence(); }
  /// Whether a purge that came later than `seen` concerns what is fetched under that key. `head`:
  /// of the response; null: not known yet.
  bool is_purged(std::uint64_t seen, const CacheKey& key, const ObjectHead* head) const {
    return !purges_.judge(seen, key.text(), head != nullptr ? &head->fields : nullptr).is_clear();
  }
  /// Everywhere that a look-up would look, without counting a use.
  Places look(const CacheKey& key) const;
  /// What find_part() gives, likewise.
  ObjectPtr look_for_part(const CacheKey& key) const;
  /// In the memory tier, or on its way to disk. Null: neither.
  ObjectPtr find_in_memory(const CacheKey& key) noexcept;
  /// Says "no" without disk access.
  std::optional<Index::Entry> find_on_disk(const CacheKey& key) const noexcept {
    return is_disk_open() ? index_.find(key.fingerprint()) : std::nullopt;
  }
  /// Errors: resource_unavailable_try_again (PageCacheOnly: call again on a disk thread). Anything
  /// else means the object is gone: it was counted and leaves the index, so it is a miss from now
  /// on.
  Result<DiskObject> open_object(const CacheKey& key, const Index::Entry& entry, ReadMode mode);
  /// A body block of an object could not be read: counted, the object leaves the index.
  void note_unreadable(const CacheKey& key, const Index::Entry& entry,
                       const boost::system::error_code& error);

  // --- admission
  /// Counts one sighting of a storable response and decides. `body_bytes` empty: not known yet.
  Sighting sight(const CacheKey& key, std::optional<std::uint64_t> body_bytes) noexcept;
  /// What the policy would say to a sighting now. Counts nothing.
  admission::Verdict peek(const CacheKey& key,
                          std::optional<std::uint64_t> body_bytes) const noexcept {
    return policy_.peek(key.fingerprint(), body_bytes);
  }
  /// What sight() would decide now; Chance also where it would draw (peek() says Undecided). Counts
  /// nothing.
  Detail foresee(const CacheKey& key, std::optional<std::uint64_t> body_bytes) const noexcept {
    return judge(peek(key, body_bytes), key, body_bytes);
  }
  /// As AdmissionPolicy says.
  unsigned sightings_needed() const noexcept { return policy_.sightings_needed(); }
  /// The chance of what peek() calls Undecided.
  double chance(std::optional<std::uint64_t> body_bytes) const noexcept {
    return policy_.chance(body_bytes);
  }
  /// A hit on disk keeps the object, as far as the write budget goes, and the key remembered, so
  /// that what is popular is admitted at once after it was reclaimed.
  void note_disk_hit(const CacheKey& key) noexcept;
  /// A variant of its resource was hit on disk: without the marker it could not be found.
  void note_use_of_marker(const Object& marker) noexcept;
  /// A hit in memory: a further sighting of an object that is not on disk yet. Writes it and
  /// returns true, if the policy and the writer agree; else a later hit may.
  bool promote(const ObjectPtr& object);
  /// Whether promote() would write it now, if the writer has room, and the draw is for it where the
  /// policy draws.
  bool would_promote(const Object& object) const noexcept;

  // --- storing
  /// Keeps a whole body in the memory tier, as far as it fits.
  void keep(const ObjectPtr& object, Newcomer newcomer);
  /// Hands a whole object to the writer. None, or why it was refused.
  Detail store(Admitted admitted, const ObjectPtr& object);
  /// Opens a fill for a body that does not fit in memory; null with the refusal.
  std::shared_ptr<Fill> begin_fill(Admitted admitted, const CacheKey& key,
                                   std::uint64_t purges_seen, std::function<void()> on_progress,
                                   Detail& refusal);
  void append(const std::shared_ptr<Fill>& fill, std::vector<ChunkPtr> pieces,
              std::uint64_t bytes) {
    writer_->append(fill, std::move(pieces), bytes);
  }
  void commit(const std::shared_ptr<Fill>& fill, std::shared_ptr<const ObjectHead> head) {
    writer_->commit(fill, std::move(head));
  }
  void abandon(const std::shared_ptr<Fill>& fill) { writer_->abandon(fill); }
  /// The largest part of a fill.
  std::uint64_t fill_part_bytes() const noexcept;

  /// What is kept in parts of the object of that key (cache/partial.h). Null: nothing.
  ObjectPtr find_part(const CacheKey& key) noexcept;
  /// Keeps a part, one with what was there where both belong together. What is kept now.
  ObjectPtr keep_part(const CacheKey& key, const ObjectPtr& part);
  void forget_part(const CacheKey& key) noexcept;

  /// The stored response was validated: the new head goes with the old body, in memory (or the
  /// queue, where find_in_memory() found it there), unless a newer one took its place, ...
  void refresh(const ObjectPtr& old, std::shared_ptr<const ObjectHead> head,
               std::uint64_t purges_seen);
  /// ... and on disk, where its new lifetime is worth a small record.
  void refresh(const CacheKey& key, const Index::Entry& old, std::vector<log::PartRef> parts,
               std::shared_ptr<const ObjectHead> head, Seconds lifetime, std::uint64_t purges_seen);
  /// Where a response to `request` is kept: under the primary key, or as a variant of it. What is
  /// known of how the resource varies (`known`, may be null) grows by the fields of the response's
  /// Vary, and by this variant; kept in memory, on disk after persist_marker().
  Placement place(const CacheKey& primary, ObjectPtr known, const policy::FieldBlock& request,
                  const ObjectHead& head);
  void persist_marker(const ObjectPtr& marker);
  /// The key of the variant that this request selects.
  CacheKey variant_key(const CacheKey& primary, const Object& marker,
                       const policy::FieldBlock& request) const;
  /// The key of the variant in the language that this request prefers to all others, where the rest
  /// of its selecting fields agrees. Empty: none is known.
  std::optional<CacheKey> variant_by_language(const CacheKey& primary, const Object& marker,
                                              const policy::FieldBlock& request) const;
  /// The known variants of which the origin may be asked whether one will do for this request, the
  /// latest first: those with a strong entity tag, of requests that take the same codings. (Origins
  /// that code on the fly give one tag to the plain and the coded, and would call either good.)
  std::vector<TaggedVariant> tagged_variants(const CacheKey& primary, const Object& marker,
                                             const policy::FieldBlock& request) const;
  /// Whether what is in memory under that key came later than this head.
  bool has_newer(const CacheKey& key, const ObjectHead& head) noexcept;
  /// An unsafe request changed the resource (RFC 9111 4.4): no stored response of it is used again,
  /// of no variant either (`marker` null: it has none).
  void invalidate(const CacheKey& primary, const ObjectPtr& marker, WallTime now);

  /// Purges: in effect for all who look from now on. `done` is told once that holds whatever
  /// happens to this process and its machine (no error), or that the disk has not taken it (why),
  /// which is tried again; on the writer's thread, or at once where there is no disk, whose cache
  /// no restart revives.
  void purge(std::vector<Purge> purges, WallTime now, PurgeWriter::Done done);

  /// The largest body worth keeping at all: cache.max_object, and not so much that it would push
  /// itself out of the log's ring.
  std::uint64_t stored_body_bytes_max() const noexcept;
  /// The largest body worth collecting whole in memory before it is kept or written.
  std::uint64_t whole_body_bytes_max() const noexcept;
  const admission::FingerprintSeed& seed() const noexcept { return seed_; }

  // --- numbers for metrics
  std::uint64_t objects_on_disk() const noexcept { return is_disk_open() ? index_.objects() : 0; }
  /// Whether objects can be written to disk now. False without one, too.
  bool is_disk_up() const noexcept { return writer_ && writer_->is_disk_up(); }
  /// Whether the directory of the disk cache is there and ours. False without one, too.
  bool is_directory_usable() const noexcept { return writer_ && writer_->is_directory_usable(); }
  std::uint64_t index_bytes() const noexcept { return index_.memory_bytes(); }
  std::uint64_t disk_bytes() const noexcept { return log_ ? log_->bytes_on_disk() : 0; }
  std::uint64_t memory_bytes() const noexcept { return memory_ ? memory_->bytes() : 0; }
  std::uint64_t memory_objects() const noexcept { return memory_ ? memory_->objects() : 0; }
  std::uint64_t writer_queue_bytes() const noexcept { return writer_ ? writer_->queue_bytes() : 0; }
  log::LogCounters log_counters() const noexcept {
    return log_ ? log_->counters() : log::LogCounters{};
  }

  std::uint64_t purge_stamps() const { return purges_.stamps(); }
  std::uint64_t purge_bytes() const { return purges_.memory_bytes(); }
  std::uint64_t purge_folds() const noexcept { return purges_.folds(); }
  std::uint64_t owed_purges() const noexcept { return writer_ ? writer_->owed_purges() : 0; }

  /// Once a second, by Maintenance.
  void try_disk_again() noexcept;
  /// Lets go, a bit at a time, of what was purged in memory, and then of purges that concern
  /// nothing any more. Every few milliseconds, by Maintenance.
  void sweep_purged(SteadyTime now);
  /// Everything stored so far is in the index or was refused. For tests and shutdown.
  void drain();
  /// Writes what is queued and seals the log. No store is accepted afterwards.
  void stop();

 private:
  Cache(const CacheSettings& settings, admission::AdmissionPolicy& policy,
        const admission::FingerprintSeed& seed, Metrics& metrics);
  void count(Detail detail) noexcept;
  ObjectPtr as_purged(const ObjectPtr& object) const;
  ObjectPtr judged(ObjectPtr object);
  ObjectPtr unless_purged(ObjectPtr pending) const;
  bool is_disk_open() const noexcept { return writer_ && writer_->is_open(); }
  bool may_have_unknown_marker(const CacheKey& primary) const noexcept;
  bool may_have_lost_marker() const noexcept;
  Detail judge(admission::Verdict verdict, const CacheKey& key,
               std::optional<std::uint64_t> body_bytes) const noexcept;
  Detail hand_over(const ObjectPtr& object);
  void forget_sightings(const Purge& purge);

  const CacheSettings settings_;
  admission::AdmissionPolicy& policy_;
  const admission::FingerprintSeed seed_;
  PurgeList purges_;
  std::unique_ptr<MemoryTier> memory_;  // null: cache.memory is "0"
  Index index_;
  /// What is known of a resource is read, changed and kept again under one of these. Never held
  /// across a wait.
  static constexpr std::size_t kMarkerMutexes = 64;
  std::array<std::mutex, kMarkerMutexes> marker_mutexes_;
  std::atomic<bool> keeps_parts_{false};  // ever; relaxed: lets forget_part() do nothing
  std::unique_ptr<log::ObjectLog> log_;   // null: cache.disk is "0"
  std::unique_ptr<StoreWriter> writer_;   // null likewise
  std::unique_ptr<Scrubber> scrubber_;    // null: cache.scrub is "0"
  PurgeSweep sweep_;
  std::array<Counter*, kDetailCount> decisions_{};
  Counter& unreadable_;
};

}  // namespace secondsight::cache
