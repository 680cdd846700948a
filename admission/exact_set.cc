#include "admission/exact_set.h"

#include <array>
#include <cmath>
#include <memory>
#include <mutex>
#include <new>
#include <optional>

#include <boost/unordered/unordered_flat_set.hpp>

#include "config/check.h"

namespace secondsight::admission {
namespace {

// What boost::unordered_flat_set is made of: groups of 15 slots and 16 bytes, a power of two of
// them, one slot less for the end; seven eighths of the slots may be in use.
constexpr std::uint64_t kSlotsPerGroup = 15;
constexpr std::uint64_t kGroupBytes = 16;
constexpr double kMostLoad = 0.875;
constexpr std::uint64_t kMostGroups = 4096;  // emptied in some ten microseconds
constexpr std::uint64_t kFewestGroups = 16;
constexpr std::uint64_t kShardsWanted = 64;  // so that threads seldom meet
constexpr double kSigmas = 5;                // how far beyond the average a shard may be filled
constexpr std::uint64_t kShardBytes = 192;

struct ByProduct {
  using is_avalanching = void;
  // The shard took the top bits, where the set wants to find variety.
  std::size_t operator()(std::uint64_t hash) const noexcept { return hash * 0x9E3779B97F4A7C15U; }
};

/// Counts what it hands out. Stateful: `bytes` outlives it.
template <typename T>
struct CountingAllocator {
  using value_type = T;
  explicit CountingAllocator(std::atomic<std::uint64_t>& counter) noexcept : bytes(&counter) {}
  template <typename U>
  CountingAllocator(const CountingAllocator<U>& other) noexcept : bytes(other.bytes) {}

  T* allocate(std::size_t count) {
    T* const got = std::allocator<T>().allocate(count);
    bytes->fetch_add(count * sizeof(T), std::memory_order_relaxed);
    return got;
  }
  void deallocate(T* old, std::size_t count) noexcept {
    std::allocator<T>().deallocate(old, count);
    bytes->fetch_sub(count * sizeof(T), std::memory_order_relaxed);
  }
  friend bool operator==(const CountingAllocator& a, const CountingAllocator& b) noexcept {
    return a.bytes == b.bytes;
  }

  std::atomic<std::uint64_t>* bytes;
};

using Set = boost::unordered_flat_set<std::uint64_t, ByProduct, std::equal_to<>,
                                      CountingAllocator<std::uint64_t>>;

std::uint64_t table_bytes(std::uint64_t slots) noexcept {
  const std::uint64_t groups = slots / kSlotsPerGroup + 1;
  const std::uint64_t bytes = 8 * slots + kGroupBytes * (groups + 1) - 1;
  return (bytes + 7) / 8 * 8;
}

}  // namespace

struct alignas(64) ExactSet::Shard {
  mutable std::mutex mutex;
  unsigned current = 0;  // index of the set that takes marks; the other one only answers
  std::array<std::optional<Set>, 2> sets;

  bool knows(std::uint64_t hash) const {
    return sets[current]->contains(hash) || sets[current ^ 1U]->contains(hash);
  }
};

std::uint64_t ExactSize::memory_bytes() const noexcept {
  return shard_count * (kShardBytes + 2 * table_bytes(slots_per_table));
}

ExactSize size_exact(std::uint64_t expected_keys) noexcept {
  CHECK(expected_keys > 0);
  const double planned = static_cast<double>(expected_keys) * (1 + kSizingReserve);
  ExactSize size;
  size.keys_per_generation = expected_keys;
  for (std::uint64_t groups = kMostGroups;; groups /= 2) {
    size.slots_per_table = groups * kSlotsPerGroup - 1;
    const double most = std::floor(kMostLoad * static_cast<double>(size.slots_per_table));
    size.keys_per_shard = static_cast<std::uint64_t>(most);
    const double usable = most - kSigmas * std::sqrt(most);
    size.shard_count = static_cast<std::uint64_t>(std::ceil(planned / usable));
    if (size.shard_count >= kShardsWanted || groups <= kFewestGroups) return size;
  }
}

ExactSet::ExactSet(std::uint64_t expected_keys, double /*false_positive_rate*/,
                   SteadyTime::duration window, SteadyTime now)
    : size_(size_exact(expected_keys)),
      shards_(std::make_unique<Shard[]>(size_.shard_count)),
      clock_(expected_keys, window, now) {
  static_assert(sizeof(Shard) == kShardBytes);
  for (std::uint64_t s = 0; s < size_.shard_count; ++s) {
    for (std::optional<Set>& set : shards_[s].sets) {
      set.emplace(CountingAllocator<std::uint64_t>(allocated_bytes_));
      set->reserve(size_.keys_per_shard);
    }
  }
}

ExactSet::~ExactSet() = default;

ExactSet::Shard& ExactSet::shard_of(const Fingerprint& key) const noexcept {
  __extension__ using Wide = unsigned __int128;
  return shards_[static_cast<std::uint64_t>((Wide{key.high} * size_.shard_count) >> 64U)];
}

Sighting ExactSet::sight(const Fingerprint& key) noexcept {
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  try {
    if (!shard.sets[shard.current]->insert(key.high).second) return Sighting::Repeat;
    clock_.add_mark(key.high);
  } catch (const std::bad_alloc&) {
    unplaced_.fetch_add(1, std::memory_order_relaxed);
  }
  return shard.sets[shard.current ^ 1U]->contains(key.high) ? Sighting::Repeat : Sighting::First;
}

Sighting ExactSet::peek(const Fingerprint& key) const noexcept {
  const Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  return shard.knows(key.high) ? Sighting::Repeat : Sighting::First;
}

bool ExactSet::forget(const Fingerprint& key) noexcept {
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  const bool in_current = shard.sets[shard.current]->erase(key.high) > 0;
  if (in_current) clock_.take_mark_back();
  return (shard.sets[shard.current ^ 1U]->erase(key.high) > 0) || in_current;
}

// Shard by shard: what a shard's `previous` holds was sighted before the last rotation was
// complete, a window ago, or before keys_per_generation marks.
void ExactSet::maintain(SteadyTime now) noexcept {
  const RotationCause cause = clock_.due(now);
  if (cause == RotationCause::None) return;
  for (std::uint64_t s = 0; s < size_.shard_count; ++s) {
    Shard& shard = shards_[s];
    const std::lock_guard lock(shard.mutex);
    Set& retired = *shard.sets[shard.current ^ 1U];
    retired.clear();
    if (retired.bucket_count() > size_.slots_per_table) {
      // Grown by a burst that is over. The smaller table comes after the larger one is gone.
      try {
        retired.rehash(0);
        retired.reserve(size_.keys_per_shard);
      } catch (const std::bad_alloc&) {  // it grows again when it is needed
      }
    }
    shard.current ^= 1U;
  }
  clock_.rotated(cause, now);
}

FilterStatus ExactSet::status(SteadyTime now) const noexcept {
  FilterStatus status;
  std::uint64_t in_current = 0;
  std::uint64_t in_previous = 0;
  for (std::uint64_t s = 0; s < size_.shard_count; ++s) {
    const Shard& shard = shards_[s];
    const std::lock_guard lock(shard.mutex);
    in_current += shard.sets[shard.current]->size();
    in_previous += shard.sets[shard.current ^ 1U]->size();
  }
  clock_.describe(status, now);
  status.memory_bytes =
      allocated_bytes_.load(std::memory_order_relaxed) + size_.shard_count * sizeof(Shard);
  const auto slots = static_cast<double>(size_.shard_count * size_.slots_per_table);
  status.fill = static_cast<double>(in_current) / slots;
  status.false_positive_rate = std::ldexp(static_cast<double>(in_current + in_previous), -64);
  return status;
}

FilterPrediction ExactSet::predict(std::uint64_t expected_keys, double /*rate*/) noexcept {
  const auto keys = static_cast<double>(expected_keys);
  return {size_exact(expected_keys).memory_bytes(),
          {std::ldexp(1.5 * keys, -64), std::ldexp(2 * keys, -64)}};
}

}  // namespace secondsight::admission
