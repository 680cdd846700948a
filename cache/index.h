#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "admission/fingerprint.h"
#include "cache/log/record.h"

namespace secondsight::cache {

/// What is on disk, in RAM: fingerprint -> place of the object's record. Says "no" without disk
/// access. Sharded, one mutex a shard, no allocation in find(). Thread-safe.
class Index {
 public:
  struct Entry {
    log::Location location;
    log::RecordKind kind = log::RecordKind::Object;
  };
  Index();
  ~Index();

  std::optional<Entry> find(const admission::Fingerprint&) const noexcept;
  /// Newer wins: replaces what is there.
  void insert(const admission::Fingerprint&, const Entry&);
  bool erase(const admission::Fingerprint&) noexcept;
  /// Only if it still points there (a reclaimed or damaged record).
  bool erase_at(const admission::Fingerprint&, const log::Location&) noexcept;

  std::uint64_t objects() const noexcept;
  std::uint64_t memory_bytes() const noexcept;

 private:
  struct Shard;
  static constexpr std::size_t kShards = 64;
  Shard& shard_of(const admission::Fingerprint&) const noexcept;
  std::unique_ptr<Shard[]> shards_;
};

}  // namespace secondsight::cache
