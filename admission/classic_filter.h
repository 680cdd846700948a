#pragma once
#include <atomic>
#include <cstdint>
#include <span>

#include "admission/filter_prediction.h"
#include "admission/generation_clock.h"
#include "admission/huge_memory.h"
#include "admission/two_generation_filter.h"

namespace secondsight::admission {

/// How a ClassicFilter is laid out.
struct ClassicSize {
  std::uint64_t bits_per_generation = 0;  // a multiple of 64
  unsigned probes = 0;                    // k, the same in both generations
  std::uint64_t keys_per_generation = 0;

  std::uint64_t memory_bytes() const noexcept { return bits_per_generation / 8 * 2; }
  double bits_per_key() const noexcept {
    return static_cast<double>(bits_per_generation) / static_cast<double>(keys_per_generation);
  }
};

/// Chance that a key never marked matches one bit array that holds one key for every
/// `bits_per_key` of its bits: (1 - exp(-k n / m))^k.
double classic_false_positive_rate(double bits_per_key, unsigned probes) noexcept;

/// The combined rate while `previous` is full and `current` fills up from empty at an even pace.
WindowRates classic_window_rates(double bits_per_key, unsigned probes) noexcept;

/// The smallest filter, in whole huge pages, whose combined rate over the window is at most `rate`,
/// with the number of probes that makes it so. For arguments that explain_bad_size() accepts.
ClassicSize size_classic(std::uint64_t expected_keys, double rate) noexcept;

/// Remembers which fingerprints were sighted lately, in two textbook Bloom filters that take turns:
/// k probes anywhere in one big bit array. The fewest bits a Bloom filter can do with, and k cache
/// misses for each generation.
///
/// The probes come from `Fingerprint::high` alone, as everywhere (a journal's mark is that half),
/// by enhanced double hashing: Kirsch and Mitzenmacher, "Less Hashing, Same Performance", 2006;
/// Dillinger and Manolios, "Bloom Filters in Probabilistic Verification", 2004.
///
/// Guarantee: a key is never answered First within one generation after it was last sighted; see
/// GenerationClock for when that ends, and classic_filter.cc for the argument.
///
/// Threads: all from any thread, lock-free; maintain() from one.
class ClassicFilter {
 public:
  /// Throws std::bad_alloc. All memory is touched here.
  ClassicFilter(std::uint64_t expected_keys, double false_positive_rate,
                SteadyTime::duration window, SteadyTime now);

  /// Starts all the memory accesses that sight() will need, in both generations.
  void prefetch(const Fingerprint& key) const noexcept;
  Sighting sight(const Fingerprint& key) noexcept;
  Sighting peek(const Fingerprint& key) const noexcept;
  /// Clears one whole bit array when a rotation is due; nobody waits for it.
  void maintain(SteadyTime now) noexcept;
  FilterStatus status(SteadyTime now) const noexcept;

  const ClassicSize& size() const noexcept { return size_; }
  static FilterPrediction predict(std::uint64_t expected_keys, double false_positive_rate) noexcept;

 private:
  using Word = std::atomic<std::uint64_t>;
  std::span<Word> generation(unsigned index) const noexcept;

  const ClassicSize size_;
  HugeMemory memory_;
  Word* words_;  // one generation behind the other

  // Its lowest bit is the index of `current`. Written by maintain(), release, after the array was
  // cleared; read by sight(), acquire: who sees the new epoch sees the array empty.
  alignas(64) std::atomic<std::uint64_t> epoch_{0};
  GenerationClock clock_;
};

}  // namespace secondsight::admission
