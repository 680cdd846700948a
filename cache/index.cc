#include "cache/index.h"

#include <algorithm>
#include <mutex>

#include "cache/index_table.h"
#include "cache/log/record_format.h"
#include "config/check.h"

namespace secondsight::cache {

struct alignas(64) Index::Shard {
  mutable std::mutex mutex;
  IndexTable table;
};

namespace {

using Value = IndexTable::Value;

// A place as two words: 29 bits of offset and 29 of length, both in units of the records'
// alignment, 4 bits of kind, 2 of hits.
constexpr unsigned kUnitBits = 29;
constexpr std::uint64_t kUnitMask = (std::uint64_t{1} << kUnitBits) - 1;
constexpr unsigned kKindShift = 2 * kUnitBits;
constexpr std::uint64_t kKindMask = 15;
constexpr unsigned kHitsShift = kKindShift + 4;

std::uint64_t tag_of(const admission::Fingerprint& fingerprint) noexcept {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
  return fingerprint.low ^ (fingerprint.high * kOdd);
}

Value pack(const Index::Entry& entry) {
  const log::Location& at = entry.location;
  CHECK(at.offset_bytes % log::kRecordAlignment == 0 &&
        at.length_bytes % log::kRecordAlignment == 0);
  const std::uint64_t word = std::uint64_t{at.offset_bytes / log::kRecordAlignment} |
                             std::uint64_t{at.length_bytes / log::kRecordAlignment} << kUnitBits |
                             static_cast<std::uint64_t>(entry.kind) << kKindShift;
  return {at.segment, static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
}

std::uint64_t word_of(const Value& value) noexcept {
  return value.low | std::uint64_t{value.high} << 32;
}

Index::Entry unpack(const Value& value) noexcept {
  const std::uint64_t word = word_of(value);
  const auto bytes = [](std::uint64_t units) {
    return static_cast<std::uint32_t>((units & kUnitMask) * log::kRecordAlignment);
  };
  return {{value.segment, bytes(word), bytes(word >> kUnitBits)},
          static_cast<log::RecordKind>(word >> kKindShift & kKindMask)};
}

unsigned hits_of(const Value& value) noexcept {
  return static_cast<unsigned>(word_of(value) >> kHitsShift);
}

}  // namespace

Index::Index() : shards_(std::make_unique<Shard[]>(kShards)) {}
Index::~Index() = default;

Index::Shard& Index::shard_of(const admission::Fingerprint& fingerprint) const noexcept {
  return shards_[fingerprint.high % kShards];
}

std::optional<Index::Entry> Index::find(const admission::Fingerprint& fingerprint) const noexcept {
  const Shard& shard = shard_of(fingerprint);
  const std::lock_guard lock(shard.mutex);
  const Value* const value = shard.table.find(tag_of(fingerprint));
  if (value == nullptr) return std::nullopt;
  return unpack(*value);
}

void Index::note_hit(const admission::Fingerprint& fingerprint) noexcept {
  Shard& shard = shard_of(fingerprint);
  const std::lock_guard lock(shard.mutex);
  Value* const value = shard.table.find(tag_of(fingerprint));
  if (value != nullptr && hits_of(*value) < kHitsMax) value->high += 1U << (kHitsShift - 32);
}

unsigned Index::hits(const admission::Fingerprint& fingerprint) const noexcept {
  const Shard& shard = shard_of(fingerprint);
  const std::lock_guard lock(shard.mutex);
  const Value* const value = shard.table.find(tag_of(fingerprint));
  return value == nullptr ? 0 : hits_of(*value);
}

void Index::insert(const admission::Fingerprint& fingerprint, const Entry& entry) {
  const Value value = pack(entry);
  Shard& shard = shard_of(fingerprint);
  const std::lock_guard lock(shard.mutex);
  shard.table.insert(tag_of(fingerprint), value);
}

bool Index::move(const admission::Fingerprint& fingerprint, const log::Location& old,
                 const Entry& entry) noexcept {
  const Value fresh = pack(entry);
  Shard& shard = shard_of(fingerprint);
  const std::lock_guard lock(shard.mutex);
  Value* const value = shard.table.find(tag_of(fingerprint));
  if (value == nullptr || unpack(*value).location != old) return false;
  *value = fresh;
  return true;
}

bool Index::erase(const admission::Fingerprint& fingerprint) noexcept {
  Shard& shard = shard_of(fingerprint);
  const std::lock_guard lock(shard.mutex);
  return shard.table.erase(tag_of(fingerprint));
}

bool Index::erase_at(const admission::Fingerprint& fingerprint,
                     const log::Location& location) noexcept {
  Shard& shard = shard_of(fingerprint);
  const std::lock_guard lock(shard.mutex);
  const Value* const value = shard.table.find(tag_of(fingerprint));
  if (value == nullptr || unpack(*value).location != location) return false;
  return shard.table.erase(tag_of(fingerprint));
}

void Index::reserve(std::uint64_t objects) {
  // Fingerprints spread like balls thrown into bins: four sigma above the mean.
  const std::uint64_t mean = objects / kShards + 1;
  std::uint64_t sigma = 1;
  while (sigma * sigma < mean) ++sigma;
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::lock_guard lock(shards_[i].mutex);
    shards_[i].table.reserve(mean + 4 * sigma);
  }
}

void Index::fit() {
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::lock_guard lock(shards_[i].mutex);
    shards_[i].table.fit();
  }
}

void Index::prefetch(const admission::Fingerprint& fingerprint) const noexcept {
  shard_of(fingerprint).table.prefetch(tag_of(fingerprint));
}

std::uint64_t Index::objects() const noexcept {
  std::uint64_t objects = 0;
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::lock_guard lock(shards_[i].mutex);
    objects += shards_[i].table.size();
  }
  return objects;
}

std::uint64_t Index::memory_bytes() const noexcept {
  std::uint64_t bytes = sizeof(Index) + kShards * sizeof(Shard);
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::lock_guard lock(shards_[i].mutex);
    bytes += shards_[i].table.memory_bytes();
  }
  return bytes;
}

}  // namespace secondsight::cache
