#include "admission/cuckoo_filter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <vector>

#include "config/check.h"

namespace secondsight::admission {
namespace {

constexpr unsigned kNarrowestTag = 6;
constexpr unsigned kWidestTag = 16;
// Buckets of four take 95 % and more before an insertion fails (Fan et al.); the planned load keeps
// away from where insertions get long.
constexpr double kMostLoad = 0.93;
constexpr double kMostShardLoad = 0.95;      // of a shard that drew more keys than the average
constexpr double kSigmas = 5;                // ... how many more
constexpr std::uint64_t kShardsWanted = 64;  // so that threads seldom meet
constexpr double kFewestKeysPerShard = 4096;
constexpr double kMostKeysPerShard = 65536;  // a table that is emptied in tens of microseconds
constexpr int kMostKicks = 500;
// Marks that were pushed out of a full table and wait for the rotation. A look-up goes through all.
constexpr std::size_t kMostHomeless = 64;

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t scale(std::uint64_t hash, std::uint64_t range) noexcept {
  return static_cast<std::uint64_t>((static_cast<Wide>(hash) * range) >> 64U);
}

// A stranger is compared with every tag in two buckets; a tag is one of 2^bits - 1, since zero
// stands for an empty slot.
double match_rate(unsigned tag_bits, double tags) noexcept {
  const double values = std::exp2(tag_bits) - 1;
  return -std::expm1(tags * std::log1p(-1 / values));
}

}  // namespace

std::uint64_t CuckooSize::memory_bytes() const noexcept {
  return shard_count * buckets_per_shard * 2 * kTagsPerBucket * tag_bits / 8;
}

double CuckooSize::load() const noexcept {
  return static_cast<double>(keys_per_generation) /
         static_cast<double>(shard_count * buckets_per_shard * kTagsPerBucket);
}

WindowRates cuckoo_window_rates(unsigned tag_bits, double load) noexcept {
  // The generations' tags are independent: their chances to miss multiply, that is, the numbers of
  // tags add. Averaged over the filling of `current`: the integral of (1-q)^(8 load (1+x)).
  const double tags = 2 * kTagsPerBucket * load;
  const double values = std::exp2(tag_bits) - 1;
  const double decay = -tags * std::log1p(-1 / values);
  if (decay <= 0) return {};
  return {1 - std::exp(-decay) * -std::expm1(-decay) / decay, match_rate(tag_bits, 2 * tags)};
}

CuckooSize size_cuckoo(std::uint64_t expected_keys, double rate) noexcept {
  CHECK(expected_keys > 0);
  CHECK(rate >= kLowestCuckooRate && rate < 1);
  CuckooSize size;
  size.keys_per_generation = expected_keys;
  double best_load = 0;
  double fewest_bits_per_key = std::numeric_limits<double>::max();
  for (unsigned bits = kNarrowestTag; bits <= kWidestTag; bits += 2) {
    double low = 0;
    double high = kMostLoad;
    for (int step = 0; step < 50; ++step) {
      const double middle = (low + high) / 2;
      (cuckoo_window_rates(bits, middle).average <= rate ? low : high) = middle;
    }
    if (bits / low >= fewest_bits_per_key) continue;
    fewest_bits_per_key = bits / low;
    best_load = low;
    size.tag_bits = bits;
  }

  const double planned = static_cast<double>(expected_keys) * (1 + kSizingReserve);
  const double keys_wanted = std::clamp(planned / static_cast<double>(kShardsWanted),
                                        kFewestKeysPerShard, kMostKeysPerShard);
  size.shard_count = static_cast<std::uint64_t>(std::max(1.0, std::round(planned / keys_wanted)));
  const double keys = planned / static_cast<double>(size.shard_count);
  const double slots =
      std::max(keys / best_load, (keys + kSigmas * std::sqrt(keys)) / kMostShardLoad);
  size.buckets_per_shard = static_cast<std::uint64_t>(std::ceil(slots / kTagsPerBucket)) + 1;
  // What the last huge page has left makes the buckets more.
  const std::uint64_t pages = (size.memory_bytes() + kFilterGranuleBytes - 1) / kFilterGranuleBytes;
  size.buckets_per_shard = pages * kFilterGranuleBytes / (size.shard_count * size.tag_bits);
  return size;
}

std::optional<std::string> explain_bad_cuckoo_rate(double rate) {
  if (rate >= kLowestCuckooRate) return std::nullopt;
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(),
                "false_positive_rate = %g is below %g, the lowest that a cuckoo filter's tags of "
                "at most %u bits keep in tables worth their memory",
                rate, kLowestCuckooRate, kWidestTag);
  return text.data();
}

/// Where a key lives: a shard, one of two buckets in it, and the tag that stands for it there.
struct CuckooFilter::Address {
  Shard* shard;
  std::uint64_t tag;
  std::uint64_t first;   // bucket
  std::uint64_t second;  // bucket
};

struct alignas(64) CuckooFilter::Shard {
  struct Homeless {
    std::uint32_t bucket;
    std::uint32_t tag;
  };

  std::uint64_t other_bucket(std::uint64_t bucket, std::uint64_t tag) const noexcept {
    // H(tag) - bucket, modulo the buckets: from there, the same way leads back.
    const std::uint64_t sum = scale(tag * 0x9E3779B97F4A7C15U, buckets);
    return sum >= bucket ? sum - bucket : sum + buckets - bucket;
  }
  std::byte* bucket_at(unsigned generation, std::uint64_t bucket) const noexcept {
    return table + (2 * bucket + generation) * bucket_bytes;
  }

  // Exactly the bucket's bytes: what lies behind may belong to another shard's mutex.
  std::uint64_t load(unsigned generation, std::uint64_t bucket) const noexcept {
    std::uint64_t tags = 0;
    const std::byte* const from = bucket_at(generation, bucket);
    switch (bucket_bytes) {  // a constant length each, so that each is a load or two
      case 3:
        std::memcpy(&tags, from, 3);
        break;
      case 4:
        std::memcpy(&tags, from, 4);
        break;
      case 5:
        std::memcpy(&tags, from, 5);
        break;
      case 6:
        std::memcpy(&tags, from, 6);
        break;
      case 7:
        std::memcpy(&tags, from, 7);
        break;
      default:
        std::memcpy(&tags, from, 8);
        break;
    }
    return tags;
  }
  void store(unsigned generation, std::uint64_t bucket, std::uint64_t tags) noexcept {
    std::memcpy(bucket_at(generation, bucket), &tags, bucket_bytes);
  }

  std::uint64_t tag_mask() const noexcept { return (std::uint64_t{1} << tag_bits) - 1; }
  /// The slot of the bucket that holds `tag` (0: that is empty), or kTagsPerBucket.
  unsigned find(std::uint64_t tags, std::uint64_t tag) const noexcept {
    unsigned found = kTagsPerBucket;
    for (unsigned slot = kTagsPerBucket; slot-- > 0;) {
      if ((tags >> (slot * tag_bits) & tag_mask()) == tag) found = slot;
    }
    return found;
  }
  std::uint64_t with(std::uint64_t tags, unsigned slot, std::uint64_t tag) const noexcept {
    const unsigned shift = slot * tag_bits;
    return (tags & ~(tag_mask() << shift)) | tag << shift;
  }

  /// Puts `to` in place of `from` in one of a bucket's slots; false where no slot holds `from`.
  bool replace(unsigned generation, std::uint64_t bucket, std::uint64_t from,
               std::uint64_t to) noexcept {
    const std::uint64_t tags = load(generation, bucket);
    const unsigned slot = find(tags, from);
    if (slot == kTagsPerBucket) return false;
    store(generation, bucket, with(tags, slot, to));
    return true;
  }

  auto find_homeless(unsigned generation, const Address& at) noexcept {
    return std::find_if(homeless[generation].begin(), homeless[generation].end(),
                        [&at](const Homeless& h) {
                          return h.tag == at.tag && (h.bucket == at.first || h.bucket == at.second);
                        });
  }

  bool knows(unsigned generation, const Address& at) noexcept {
    if (find(load(generation, at.first), at.tag) != kTagsPerBucket) return true;
    if (find(load(generation, at.second), at.tag) != kTagsPerBucket) return true;
    return !homeless[generation].empty() &&
           find_homeless(generation, at) != homeless[generation].end();
  }

  bool remove(unsigned generation, const Address& at) noexcept {
    if (!replace(generation, at.first, at.tag, 0) && !replace(generation, at.second, at.tag, 0)) {
      const auto found = find_homeless(generation, at);
      if (found == homeless[generation].end()) return false;
      *found = homeless[generation].back();
      homeless[generation].pop_back();
    }
    --tags_in[generation];
    return true;
  }

  enum class Placed { InTable, Homeless, Nowhere };
  /// Nowhere: nothing was changed.
  Placed place(unsigned generation, const Address& at) noexcept {
    if (replace(generation, at.first, 0, at.tag) || replace(generation, at.second, 0, at.tag)) {
      ++tags_in[generation];
      return Placed::InTable;
    }
    if (homeless[generation].size() == kMostHomeless) return Placed::Nowhere;
    ++tags_in[generation];
    std::uint64_t bucket = random() & 1U ? at.first : at.second;
    std::uint64_t tag = at.tag;
    for (int kick = 0; kick < kMostKicks; ++kick) {
      const auto slot = static_cast<unsigned>(random() % kTagsPerBucket);
      const std::uint64_t tags = load(generation, bucket);
      const std::uint64_t pushed_out = tags >> (slot * tag_bits) & tag_mask();
      store(generation, bucket, with(tags, slot, tag));
      tag = pushed_out;
      bucket = other_bucket(bucket, tag);
      if (replace(generation, bucket, 0, tag)) return Placed::InTable;
    }
    // Room was reserved, and a shard's buckets are few.
    homeless[generation].push_back(
        {static_cast<std::uint32_t>(bucket), static_cast<std::uint32_t>(tag)});
    return Placed::Homeless;
  }

  /// The retired generation is emptied and takes marks from now on.
  void rotate() noexcept {
    current ^= 1U;
    for (std::uint64_t b = 0; b < buckets; ++b) store(current, b, 0);
    homeless[current].clear();
    tags_in[current] = 0;
  }

  std::uint64_t random() noexcept {  // Marsaglia's xorshift, whose upper half is good enough
    state ^= state << 13U;
    state ^= state >> 7U;
    state ^= state << 17U;
    return state >> 32U;
  }

  std::mutex mutex;
  unsigned current = 0;  // index of the generation that takes marks; the other one only answers
  unsigned tag_bits = 0;
  std::size_t bucket_bytes = 0;
  std::uint64_t buckets = 0;
  std::byte* table = nullptr;  // two buckets side by side, one of each generation
  std::uint64_t state = 0;
  std::array<std::uint64_t, 2> tags_in{};  // by generation
  std::array<std::vector<Homeless>, 2> homeless;
};

CuckooFilter::CuckooFilter(std::uint64_t expected_keys, double false_positive_rate,
                           SteadyTime::duration window, SteadyTime now)
    : size_(size_cuckoo(expected_keys, false_positive_rate)),
      memory_(size_.memory_bytes()),
      shards_(std::make_unique<Shard[]>(size_.shard_count)),
      clock_(expected_keys, window, now) {
  std::memset(memory_.data(), 0, memory_.size_bytes());  // so that no request pays for a page fault
  const std::uint64_t shard_bytes = size_.memory_bytes() / size_.shard_count;
  for (std::uint64_t s = 0; s < size_.shard_count; ++s) {
    Shard& shard = shards_[s];
    shard.tag_bits = size_.tag_bits;
    shard.bucket_bytes = kTagsPerBucket * size_.tag_bits / 8;
    shard.buckets = size_.buckets_per_shard;
    shard.table = static_cast<std::byte*>(memory_.data()) + s * shard_bytes;
    shard.state = s + 1;
    for (std::vector<Shard::Homeless>& homeless : shard.homeless) homeless.reserve(kMostHomeless);
  }
}

CuckooFilter::~CuckooFilter() = default;

CuckooFilter::Address CuckooFilter::address_of(const Fingerprint& key) const noexcept {
  // The shard takes the hash's top bits, the bucket those below, the tag a remix of all.
  const Wide spread = static_cast<Wide>(key.high) * size_.shard_count;
  Address at;
  at.shard = &shards_[static_cast<std::uint64_t>(spread >> 64U)];
  at.first = scale(static_cast<std::uint64_t>(spread), size_.buckets_per_shard);
  const std::uint64_t tag_values = (std::uint64_t{1} << size_.tag_bits) - 1;
  at.tag = 1 + scale(key.high * 0xD6E8FEB86659FD93U, tag_values);
  at.second = at.shard->other_bucket(at.first, at.tag);
  return at;
}

void CuckooFilter::prefetch(const Fingerprint& key) const noexcept {
  const Address at = address_of(key);
  const std::byte* const first = at.shard->bucket_at(0, at.first);
  const std::byte* const second = at.shard->bucket_at(0, at.second);
  __builtin_prefetch(first);
  __builtin_prefetch(second);
  // g++ 12 takes a function that only prefetches for one without effect, and drops calls of it.
  asm volatile("" : : "r"(first), "r"(second));
}

Sighting CuckooFilter::sight(const Fingerprint& key) noexcept {
  const Address at = address_of(key);
  Shard& shard = *at.shard;
  const std::lock_guard lock(shard.mutex);
  const bool in_previous = shard.knows(shard.current ^ 1U, at);
  if (shard.knows(shard.current, at)) return Sighting::Repeat;
  const Shard::Placed placed = shard.place(shard.current, at);
  if (placed != Shard::Placed::InTable) full_.store(true, std::memory_order_relaxed);
  if (placed == Shard::Placed::Nowhere) {
    unplaced_.fetch_add(1, std::memory_order_relaxed);
  } else {
    clock_.add_mark(key.high);
  }
  return in_previous ? Sighting::Repeat : Sighting::First;
}

Sighting CuckooFilter::peek(const Fingerprint& key) const noexcept {
  const Address at = address_of(key);
  const std::lock_guard lock(at.shard->mutex);
  return at.shard->knows(0, at) || at.shard->knows(1, at) ? Sighting::Repeat : Sighting::First;
}

bool CuckooFilter::forget(const Fingerprint& key) noexcept {
  const Address at = address_of(key);
  Shard& shard = *at.shard;
  const std::lock_guard lock(shard.mutex);
  const bool in_current = shard.remove(shard.current, at);
  if (in_current) clock_.take_mark_back();
  return shard.remove(shard.current ^ 1U, at) || in_current;
}

// Shard by shard: what a shard's `previous` holds was sighted before the last rotation was
// complete: a window ago, or before keys_per_generation marks. A table that is full sooner ends its
// generation sooner; what is lost then is what an overfull table could not have kept.
void CuckooFilter::maintain(SteadyTime now) noexcept {
  RotationCause cause = clock_.due(now);
  if (full_.load(std::memory_order_relaxed)) cause = RotationCause::Fill;
  if (cause == RotationCause::None) return;
  for (std::uint64_t s = 0; s < size_.shard_count; ++s) {
    const std::lock_guard lock(shards_[s].mutex);
    shards_[s].rotate();
  }
  // Afterwards: a shard that filled up while it waited for its turn has been emptied, too.
  full_.store(false, std::memory_order_relaxed);
  clock_.rotated(cause, now);
}

FilterStatus CuckooFilter::status(SteadyTime now) const noexcept {
  std::uint64_t in_current = 0;
  std::uint64_t in_previous = 0;
  for (std::uint64_t s = 0; s < size_.shard_count; ++s) {
    Shard& shard = shards_[s];
    const std::lock_guard lock(shard.mutex);
    in_current += shard.tags_in[shard.current];
    in_previous += shard.tags_in[shard.current ^ 1U];
  }
  FilterStatus status;
  clock_.describe(status, now);
  status.memory_bytes =
      memory_.size_bytes() +
      size_.shard_count * (sizeof(Shard) + 2 * kMostHomeless * sizeof(Shard::Homeless));
  const auto slots =
      static_cast<double>(size_.shard_count * size_.buckets_per_shard * kTagsPerBucket);
  status.fill = static_cast<double>(in_current) / slots;
  const double load = static_cast<double>(in_current + in_previous) / slots;
  status.false_positive_rate = match_rate(size_.tag_bits, 2 * kTagsPerBucket * load);
  return status;
}

FilterPrediction CuckooFilter::predict(std::uint64_t expected_keys, double rate) noexcept {
  const CuckooSize size = size_cuckoo(expected_keys, rate);
  return {size.memory_bytes(), cuckoo_window_rates(size.tag_bits, size.load())};
}

}  // namespace secondsight::admission
