#include "cache/index.h"

#include <mutex>
#include <utility>

#include <boost/unordered/unordered_flat_map.hpp>

namespace secondsight::cache {

struct alignas(64) Index::Shard {
  using Map = boost::unordered_flat_map<admission::Fingerprint, Entry, admission::FingerprintHash>;
  static_assert(sizeof(Map::value_type) <= 32, "kept once per object on disk");

  mutable std::mutex mutex;
  Map entries;
};

namespace {

// boost::unordered_flat_map keeps 15 slots and 16 bytes of metadata per group.
constexpr std::uint64_t kSlotsPerGroup = 15;
constexpr std::uint64_t kMetadataBytesPerGroup = 16;

}  // namespace

Index::Index() : shards_(std::make_unique<Shard[]>(kShards)) {}
Index::~Index() = default;

Index::Shard& Index::shard_of(const admission::Fingerprint& fingerprint) const noexcept {
  return shards_[fingerprint.high % kShards];
}

std::optional<Index::Entry> Index::find(const admission::Fingerprint& fingerprint) const noexcept {
  const Shard& shard = shard_of(fingerprint);
  const std::lock_guard lock(shard.mutex);
  const auto at = shard.entries.find(fingerprint);
  if (at == shard.entries.end()) return std::nullopt;
  return at->second;
}

void Index::insert(const admission::Fingerprint& fingerprint, const Entry& entry) {
  Shard& shard = shard_of(fingerprint);
  const std::lock_guard lock(shard.mutex);
  shard.entries.insert_or_assign(fingerprint, entry);
}

bool Index::erase(const admission::Fingerprint& fingerprint) noexcept {
  Shard& shard = shard_of(fingerprint);
  const std::lock_guard lock(shard.mutex);
  return shard.entries.erase(fingerprint) != 0;
}

bool Index::erase_at(const admission::Fingerprint& fingerprint,
                     const log::Location& location) noexcept {
  Shard& shard = shard_of(fingerprint);
  const std::lock_guard lock(shard.mutex);
  const auto at = shard.entries.find(fingerprint);
  if (at == shard.entries.end() || at->second.location != location) return false;
  shard.entries.erase(at);
  return true;
}

std::uint64_t Index::objects() const noexcept {
  std::uint64_t objects = 0;
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::lock_guard lock(shards_[i].mutex);
    objects += shards_[i].entries.size();
  }
  return objects;
}

std::uint64_t Index::memory_bytes() const noexcept {
  std::uint64_t bytes = sizeof(Index) + kShards * sizeof(Shard);
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::lock_guard lock(shards_[i].mutex);
    const std::uint64_t slots = shards_[i].entries.bucket_count();
    bytes +=
        slots * sizeof(Shard::Map::value_type) + slots / kSlotsPerGroup * kMetadataBytesPerGroup;
  }
  return bytes;
}

}  // namespace secondsight::cache
