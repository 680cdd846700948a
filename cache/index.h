#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "admission/fingerprint.h"
#include "cache/log/record.h"

namespace secondsight::cache {

/// What is on disk, in RAM: fingerprint -> place of the object's record, and how often it was hit.
/// Says "no" without disk access. 72 bits of a fingerprint are told apart, which is no proof:
/// whoever opens the record compares its key. Sharded, one mutex a shard, no allocation in a
/// look-up; an insert may move one shard's table (a quarter of a millisecond at ten million
/// objects). Thread-safe.
class Index {
 public:
  struct Entry {
    log::Location location;  // offset and length are multiples of kRecordAlignment
    log::RecordKind kind = log::RecordKind::Object;
  };
  /// How often an object was hit, and whether since it was last written. In quarters of a hit, so
  /// that one fades in steps; saturating at a little less than four.
  struct Hits {
    unsigned quarters = 0;
    bool is_recent = false;
    friend bool operator==(const Hits&, const Hits&) = default;
  };
  static constexpr unsigned kQuartersMax = 15;

  Index();
  ~Index();

  std::optional<Entry> find(const admission::Fingerprint&) const noexcept;
  /// Counts a use of what is there.
  void note_hit(const admission::Fingerprint&) noexcept;
  /// None where it is not there.
  Hits hits(const admission::Fingerprint&) const noexcept;
  /// Newer wins: replaces what is there. No hits yet.
  void insert(const admission::Fingerprint&, const Entry&);
  /// Only if it still points to `old`: the same object is written once more, and keeps `count`
  /// hits, none of them recent.
  bool move(const admission::Fingerprint&, const log::Location& old, const Entry&,
            unsigned quarters) noexcept;
  bool erase(const admission::Fingerprint&) noexcept;
  /// Only if it still points there (a reclaimed or damaged record).
  bool erase_at(const admission::Fingerprint&, const log::Location&) noexcept;

  /// Room for so many; fit() gives back what they did not take. For filling it at once.
  void reserve(std::uint64_t objects);
  void fit();
  /// Begins the memory accesses of a change to come. By the only thread that makes changes.
  void prefetch(const admission::Fingerprint&) const noexcept;

  std::uint64_t objects() const noexcept;
  std::uint64_t memory_bytes() const noexcept;

 private:
  struct Shard;
  static constexpr std::size_t kShards = 256;
  Shard& shard_of(const admission::Fingerprint&) const noexcept;
  std::unique_ptr<Shard[]> shards_;
};

}  // namespace secondsight::cache
