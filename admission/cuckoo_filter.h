#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "admission/filter_prediction.h"
#include "admission/generation_clock.h"
#include "admission/huge_memory.h"
#include "admission/two_generation_filter.h"

namespace secondsight::admission {

inline constexpr unsigned kTagsPerBucket = 4;
/// Below it, tags of 16 bits would stand in tables that are mostly empty.
inline constexpr double kLowestCuckooRate = 1e-4;

/// How a CuckooFilter is laid out: shards, each a small cuckoo filter of its own for both
/// generations.
struct CuckooSize {
  unsigned tag_bits = 0;  // even: four tags are whole bytes
  std::uint64_t shard_count = 0;
  std::uint64_t buckets_per_shard = 0;  // in each generation
  std::uint64_t keys_per_generation = 0;

  std::uint64_t memory_bytes() const noexcept;
  /// Share of slots in use when a generation is full.
  double load() const noexcept;
};

/// The combined rate while `previous` is full and `current` fills up from empty at an even pace: a
/// stranger's tag is compared with those in two buckets of each generation.
WindowRates cuckoo_window_rates(unsigned tag_bits, double load) noexcept;

/// The smallest tables, in whole huge pages, whose combined rate over the window is at most `rate`:
/// narrow tags in roomy tables or wide tags in full ones, whichever is smaller. For arguments that
/// explain_bad_size() and explain_bad_cuckoo_rate() accept.
CuckooSize size_cuckoo(std::uint64_t expected_keys, double rate) noexcept;

/// Why no sensible cuckoo filter has this rate; empty when it has.
std::optional<std::string> explain_bad_cuckoo_rate(double rate);

/// Remembers which fingerprints were sighted lately, as tags of a few bits in two cuckoo tables
/// that take turns. Unlike a Bloom filter it can forget one key. B. Fan, D. Andersen, M. Kaminsky
/// and M. Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom", 2014. A bucket holds four
/// tags; a key's second bucket is H(tag) minus its first, modulo their number, which leads back the
/// same way and works for any number of buckets. The buckets of both generations lie side by side.
///
/// Guarantee: a key is never answered First within one generation after it was last sighted (see
/// GenerationClock for when that ends), with two exceptions. forget() of another key whose tag and
/// buckets are the same takes this one's tag along. A mark that finds no room (unplaced_marks()) is
/// not remembered: its key stays a First. No mark ever pushes out another one. Room ends only when
/// a generation takes far more than the planned keys between two calls of maintain(): a table that
/// is full ends the generation, by fill, at the next call, and keeps what is pushed out until then.
///
/// Threads: all from any thread, maintain() from one. A shard has one mutex, held for one look-up
/// or insertion in both generations, or while maintain() empties one table (tens of microseconds).
class CuckooFilter {
 public:
  /// Throws std::bad_alloc.
  CuckooFilter(std::uint64_t expected_keys, double false_positive_rate, SteadyTime::duration window,
               SteadyTime now);
  ~CuckooFilter();
  CuckooFilter(const CuckooFilter&) = delete;
  CuckooFilter& operator=(const CuckooFilter&) = delete;

  /// Starts both memory accesses that sight() will need.
  void prefetch(const Fingerprint& key) const noexcept;
  Sighting sight(const Fingerprint& key) noexcept;
  Sighting peek(const Fingerprint& key) const noexcept;
  /// Removes the key's tag from both generations: the next sighting is a First (but for false
  /// positives). Says whether there was one. Where the key itself was never marked and only looked
  /// as if it had been, this removes the mark of another key.
  bool forget(const Fingerprint& key) noexcept;
  void maintain(SteadyTime now) noexcept;
  FilterStatus status(SteadyTime now) const noexcept;

  const CuckooSize& size() const noexcept { return size_; }
  /// Marks that found no room, since the filter was made.
  std::uint64_t unplaced_marks() const noexcept {
    return unplaced_.load(std::memory_order_relaxed);
  }
  static FilterPrediction predict(std::uint64_t expected_keys, double false_positive_rate) noexcept;

 private:
  struct Shard;
  struct Address;
  Address address_of(const Fingerprint& key) const noexcept;

  const CuckooSize size_;
  HugeMemory memory_;
  std::unique_ptr<Shard[]> shards_;
  GenerationClock clock_;
  std::atomic<bool> full_{false};           // relaxed: asks maintain() for a rotation
  std::atomic<std::uint64_t> unplaced_{0};  // relaxed: a counter
};

}  // namespace secondsight::admission
