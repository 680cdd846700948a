#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "admission/filter_prediction.h"
#include "admission/generation_clock.h"
#include "admission/two_generation_filter.h"

namespace secondsight::admission {

/// How an ExactSet is laid out: shards small enough that one lock is held for nanoseconds, and just
/// so many that their hash tables are nearly full at the planned keys.
struct ExactSize {
  std::uint64_t shard_count = 0;
  std::uint64_t keys_per_shard = 0;   // reserved; more are taken, at the price of a rehash
  std::uint64_t slots_per_table = 0;  // of the table with this reservation
  std::uint64_t keys_per_generation = 0;

  std::uint64_t memory_bytes() const noexcept;
};
ExactSize size_exact(std::uint64_t expected_keys) noexcept;

/// Remembers which fingerprints were sighted lately, as two sets of 64-bit hashes that take turns.
/// Wrong only where two keys share all 64 bits of `Fingerprint::high`: with n keys a stranger is
/// taken for a repeat with chance n / 2^64. The yardstick for every filter.
///
/// Guarantee: a key is never answered First within one generation after it was last sighted (see
/// GenerationClock for when that ends), unless it was forgotten by forget(), or its mark could not
/// be placed because memory ran out (unplaced_marks()).
///
/// Threads: all from any thread, maintain() from one. A shard has one mutex, held for one look-up
/// in both generations, or while maintain() empties one table (tens of microseconds).
class ExactSet {
 public:
  /// `false_positive_rate` changes nothing; it stands for the constructor all structures share.
  /// Throws std::bad_alloc.
  ExactSet(std::uint64_t expected_keys, double false_positive_rate, SteadyTime::duration window,
           SteadyTime now);
  ~ExactSet();
  ExactSet(const ExactSet&) = delete;
  ExactSet& operator=(const ExactSet&) = delete;

  /// Does nothing: where a hash table looks is not known without its lock.
  void prefetch(const Fingerprint&) const noexcept {}
  Sighting sight(const Fingerprint& key) noexcept;
  Sighting peek(const Fingerprint& key) const noexcept;
  /// The next sighting of the key is a First. Says whether the key was known.
  bool forget(const Fingerprint& key) noexcept;
  void maintain(SteadyTime now) noexcept;
  FilterStatus status(SteadyTime now) const noexcept;

  /// Marks that found no memory. The next sighting of such a key is a First again.
  std::uint64_t unplaced_marks() const noexcept {
    return unplaced_.load(std::memory_order_relaxed);
  }

  static FilterPrediction predict(std::uint64_t expected_keys, double false_positive_rate) noexcept;

 private:
  struct Shard;
  Shard& shard_of(const Fingerprint& key) const noexcept;

  const ExactSize size_;
  std::atomic<std::uint64_t> allocated_bytes_{0};  // relaxed: a gauge; outlives the shards
  std::unique_ptr<Shard[]> shards_;
  GenerationClock clock_;
  std::atomic<std::uint64_t> unplaced_{0};  // relaxed: a counter
};

}  // namespace secondsight::admission
