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

// An entry as a word: 29 bits of offset and 26 of length in units of the records' alignment, 4 of
// kind, 4 of hits, 1 that says whether the last was recent. No record is longer than a segment.
constexpr std::uint64_t kUnit = log::kRecordAlignment;
struct Field {
  unsigned shift;
  unsigned bits;

  constexpr std::uint64_t max() const noexcept { return (std::uint64_t{1} << bits) - 1; }
  constexpr std::uint64_t of(std::uint64_t word) const noexcept { return word >> shift & max(); }
  std::uint64_t put(std::uint64_t value) const {
    CHECK(value <= max());
    return value << shift;
  }
};
constexpr Field kOffset{0, 29}, kLength{29, 26}, kKind{55, 4}, kHits{59, 4}, kRecent{63, 1};
static_assert(kHits.max() == Index::kQuartersMax);
constexpr std::uint64_t kQuartersPerHit = 4;

std::uint64_t tag_of(const admission::Fingerprint& fingerprint) noexcept {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
  return fingerprint.low ^ (fingerprint.high * kOdd);
}

std::uint64_t word_of(const Value& value) noexcept {
  return value.low | std::uint64_t{value.high} << 32;
}

void set_word(Value& value, std::uint64_t word) noexcept {
  value.low = static_cast<std::uint32_t>(word);
  value.high = static_cast<std::uint32_t>(word >> 32);
}

Value pack(const Index::Entry& entry, unsigned hits) {
  const log::Location& at = entry.location;
  CHECK(at.offset_bytes % kUnit == 0 && at.length_bytes % kUnit == 0);
  const std::uint64_t word = kOffset.put(at.offset_bytes / kUnit) |
                             kLength.put(at.length_bytes / kUnit) |
                             kKind.put(static_cast<std::uint64_t>(entry.kind)) | kHits.put(hits);
  Value value{at.segment, 0, 0};
  set_word(value, word);
  return value;
}

Index::Entry unpack(const Value& value) noexcept {
  const std::uint64_t word = word_of(value);
  return {{value.segment, static_cast<std::uint32_t>(kOffset.of(word) * kUnit),
           static_cast<std::uint32_t>(kLength.of(word) * kUnit)},
          static_cast<log::RecordKind>(kKind.of(word))};
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
  if (value == nullptr) return;
  const std::uint64_t word = word_of(*value);
  const std::uint64_t hits = std::min(kHits.of(word) + kQuartersPerHit, kHits.max());
  set_word(*value, (word & ~(kHits.max() << kHits.shift)) | kHits.put(hits) | kRecent.put(1));
}

Index::Hits Index::hits(const admission::Fingerprint& fingerprint) const noexcept {
  const Shard& shard = shard_of(fingerprint);
  const std::lock_guard lock(shard.mutex);
  const Value* const value = shard.table.find(tag_of(fingerprint));
  if (value == nullptr) return {};
  const std::uint64_t word = word_of(*value);
  return {static_cast<unsigned>(kHits.of(word)), kRecent.of(word) != 0};
}

void Index::insert(const admission::Fingerprint& fingerprint, const Entry& entry) {
  const Value value = pack(entry, 0);
  Shard& shard = shard_of(fingerprint);
  const std::lock_guard lock(shard.mutex);
  shard.table.insert(tag_of(fingerprint), value);
}

bool Index::move(const admission::Fingerprint& fingerprint, const log::Location& old,
                 const Entry& entry, unsigned quarters) noexcept {
  const Value fresh = pack(entry, quarters);
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
