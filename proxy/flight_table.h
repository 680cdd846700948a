#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include <boost/unordered/unordered_flat_map.hpp>

#include "admission/fingerprint.h"
#include "cache/cache.h"
#include "config/clock.h"
#include "proxy/recent_keys.h"

namespace secondsight::proxy {

class Flight;

/// The flights under way, one per key in the whole process, and what goes with sharing them: which
/// keys turned out uncacheable or failed lately, and how much memory whole bodies may take
/// together. Thread-safe.
class FlightTable {
 public:
  /// Bytes that all Whole flights may hold together, before they are in the memory tier.
  static constexpr std::uint64_t kWholeBytesMax = 24U << 20;
  /// How long a key is remembered as uncacheable, so that its requests are not lined up.
  static constexpr std::chrono::seconds kUncacheableMemory{10};
  /// How long a key for which the origin failed is answered stale without asking.
  static constexpr std::chrono::seconds kFailingMemory{5};

  /// The flight of that key, or `fresh` (made by the caller), which is then the one.
  std::shared_ptr<Flight> find_or_add(const admission::Fingerprint& key,
                                      const std::shared_ptr<Flight>& fresh);
  /// Only if it is that flight.
  void remove(const admission::Fingerprint& key, const Flight& flight);
  bool contains(const admission::Fingerprint& key) const;
  std::uint64_t count() const;

  void note_uncacheable(const admission::Fingerprint& key, SteadyTime now) noexcept {
    uncacheable_.note(key, now, kUncacheableMemory);
  }
  void note_cacheable(const admission::Fingerprint& key) noexcept { uncacheable_.forget(key); }
  bool is_uncacheable(const admission::Fingerprint& key, SteadyTime now) const noexcept {
    return uncacheable_.contains(key, now);
  }

  /// The origin failed for that key, and a stale response stood in: for a while it is not asked
  /// again.
  void note_failing(const admission::Fingerprint& key, SteadyTime now) noexcept {
    failing_.note(key, now, kFailingMemory);
  }
  bool is_failing(const admission::Fingerprint& key, SteadyTime now) const noexcept {
    return failing_.contains(key, now);
  }

  /// The resource of that primary key changed, so that what is stored under `key` (the primary key
  /// itself, or a variant's) is not used again, nor of any variant where `marker` is given. Whoever
  /// asked the cache before finds that it is outdated when it wants to publish().
  void forget(cache::Cache& cache, const admission::Fingerprint& primary,
              const cache::CacheKey& key, const cache::ObjectPtr& marker, WallTime now) {
    const std::lock_guard lock(publication(primary));
    cache.invalidate(key, marker, now);
    // After it: who sees the new count has not seen what was there.
    ++invalidations_[primary.low % kInvalidationSlots];
  }
  /// Puts something into the cache by calling `put`, unless the primary key was forgotten since
  /// `seen` was read: false. The two never overlap, so that nothing comes back.
  template <class Put>
  bool publish(const admission::Fingerprint& primary, std::uint32_t seen, const Put& put) {
    const std::lock_guard lock(publication(primary));
    if (invalidations(primary) != seen) return false;
    put();
    return true;
  }
  /// Changes when the primary key is forgotten (and, rarely, when another is). To be read before
  /// the cache is asked.
  std::uint32_t invalidations(const admission::Fingerprint& primary) const noexcept {
    return invalidations_[primary.low % kInvalidationSlots];
  }

  bool reserve_whole(std::uint64_t bytes) noexcept;
  void release_whole(std::uint64_t bytes) noexcept;

 private:
  static constexpr std::size_t kPublications = 64;
  std::mutex& publication(const admission::Fingerprint& primary) noexcept {
    return publications_[primary.low % kPublications];
  }

  static constexpr std::size_t kShards = 64;
  static constexpr std::size_t kInvalidationSlots = 8192;
  using Map = boost::unordered_flat_map<admission::Fingerprint, std::shared_ptr<Flight>,
                                        admission::FingerprintHash>;
  struct alignas(64) Shard {
    mutable std::mutex mutex;
    Map flights;
  };
  std::array<Shard, kShards> shards_;
  RecentKeys uncacheable_;  // a lost one costs one line-up, a false one a fetch that is not shared
  RecentKeys failing_;
  /// Keys that share a slot cost each other one response that is not kept.
  std::array<std::atomic<std::uint32_t>, kInvalidationSlots> invalidations_{};
  std::array<std::mutex, kPublications> publications_;
  std::atomic<std::uint64_t> whole_bytes_{0};  // relaxed: a bound
};

}  // namespace secondsight::proxy
