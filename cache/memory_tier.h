#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/object.h"

namespace secondsight::cache {

/// Where a newcomer starts (the paper's ghost queue is the admission filter's answer).
enum class Newcomer : std::uint8_t { First, SeenBefore };

/// The RAM cache in front of the disk; it also stages bodies that were seen once.
///
/// S3-FIFO (Yang et al., SOSP 2023): a small FIFO takes a tenth of the bytes, a main FIFO the rest.
/// An object leaves the small queue for the main one if it was used since it came, else for good;
/// the main queue reinserts what was used (two-bit counter). SeenBefore starts in main, if it is
/// small (a 128th of its shard). Bounded in bytes, every overhead counted. Sharded by fingerprint,
/// as many shards as the size allows (a shard is at least 16 MiB), a mutex each; a hit takes the
/// shard's lock, copies one shared_ptr and writes no list; what is evicted is released after the
/// lock. Thread-safe.
class MemoryTier {
 public:
  /// 0 turns it off: nothing is ever kept.
  explicit MemoryTier(std::uint64_t capacity_bytes);
  ~MemoryTier();

  /// The object of exactly that key, marked used. Null: none.
  ObjectPtr find(const CacheKey&) noexcept;
  /// Same, without marking it used.
  ObjectPtr peek(const CacheKey&) const noexcept;
  /// Replaces what has the key (keeping its place). Of an object above object_bytes_max() only this
  /// much is done: what had the key goes, for it is out of date.
  void insert(ObjectPtr, Newcomer);
  void erase(const CacheKey&) noexcept;
  /// Puts `fresh`, of the same key, in the place of `old`, if that is what is there. What is there
  /// then; null: neither.
  ObjectPtr replace(const ObjectPtr& old, ObjectPtr fresh);
  /// Only if that is what is there.
  void erase(const ObjectPtr&) noexcept;

  /// How far a walk over all objects has come.
  struct Walk {
    std::size_t shard = 0;
    std::size_t slot = 0;
  };
  /// Adds what is in the next few slots of a walk to `objects`; false: the walk is over. Whatever
  /// is there from its beginning to its end is met once.
  bool walk(Walk& walk, std::size_t slots, std::vector<ObjectPtr>& objects) const;
  /// The disk has let go of that object: if it is here, its next use writes it again.
  void note_not_on_disk(const admission::Fingerprint&) noexcept;

  /// The largest object worth keeping, as Object::memory_bytes() counts: an eighth of a shard, at
  /// most 4 MiB.
  std::uint64_t object_bytes_max() const noexcept;
  /// What it holds now, its own tables included: never above capacity_bytes().
  std::uint64_t bytes() const noexcept;
  std::uint64_t objects() const noexcept;
  /// Objects that had to make room, since the start.
  std::uint64_t evictions() const noexcept;
  std::uint64_t capacity_bytes() const noexcept;

 private:
  class Shard;
  Shard& shard_of(const admission::Fingerprint&) const noexcept;
  std::uint64_t capacity_bytes_;
  std::size_t shard_count_;
  std::unique_ptr<Shard[]> shards_;
};

}  // namespace secondsight::cache
