#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "admission/filter_prediction.h"
#include "admission/generation_clock.h"
#include "admission/huge_memory.h"
#include "admission/two_generation_filter.h"

namespace secondsight::admission {

/// A generation grows to this many times the expected keys at most, then it ends by fill.
inline constexpr std::uint64_t kScalableGrowth = 16;
/// Slices of 1, 2, 4 and 8 parts; so a part is 16/15 of the expected keys.
inline constexpr unsigned kScalableSlices = 4;
inline constexpr unsigned kScalableParts = (1U << kScalableSlices) - 1;
/// Each slice has this share of the rate of the one before.
inline constexpr double kScalableTightening = 0.5;

/// How a ScalableFilter is laid out and may grow.
struct ScalableSize {
  struct Slice {
    std::uint64_t half_line_count = 0;  // 32 bytes each, one for each key
    std::uint64_t keys = 0;             // marks after which the next slice is added
  };
  std::array<Slice, kScalableSlices> slices;
  std::uint64_t expected_keys = 0;

  /// Keys in one generation of so many slices, all full; 1..kScalableSlices.
  std::uint64_t keys(unsigned slice_count) const noexcept;
  /// Of two generations of so many slices each.
  std::uint64_t memory_bytes(unsigned slice_count) const noexcept;
};

/// The combined rate while `previous` has so many slices, all full, and `current` grows evenly from
/// empty to the same. Never above what the size was made for.
WindowRates scalable_window_rates(const ScalableSize& size, unsigned slice_count) noexcept;

/// ... while both generations take no more than the expected keys: the planned case.
WindowRates scalable_planned_rates(const ScalableSize& size) noexcept;

/// The smallest slices, in whole huge pages, whose combined rate over the window is at most `rate`
/// however far both generations have grown. For arguments that explain_bad_size() accepts.
ScalableSize size_scalable(std::uint64_t expected_keys, double rate) noexcept;

/// Remembers which fingerprints were sighted lately, in two generations that grow instead of
/// ending early: when a generation's newest slice is full, maintain() adds one of twice the keys
/// and half the rate, so that the window stays as configured and the rate within its bound, and
/// memory follows the load. P. S. Almeida, C. Baquero, N. Preguica and D. Hutchison, "Scalable
/// Bloom Filters", 2007. Each slice is a blocked Bloom filter: one half-line of 32 bytes for each
/// key.
///
/// Bound: a generation holds kScalableGrowth times the expected keys at most. Then, or when there
/// is no memory for the next slice, it ends by fill. A new generation starts with one slice.
///
/// Guarantee: a key is never answered First within one window after it was last sighted, unless its
/// generation or the next ended by fill; never within expected_keys further marks.
///
/// Threads: all from any thread, maintain() from one. Sightings share a lock that maintain() holds
/// alone for the moment in which a slice is added or the generations change places; it allocates,
/// clears and frees outside of that.
class ScalableFilter {
 public:
  /// Throws std::bad_alloc.
  ScalableFilter(std::uint64_t expected_keys, double false_positive_rate,
                 SteadyTime::duration window, SteadyTime now);
  ~ScalableFilter();
  ScalableFilter(const ScalableFilter&) = delete;
  ScalableFilter& operator=(const ScalableFilter&) = delete;

  /// Starts one memory access for each slice.
  void prefetch(const Fingerprint& key) const noexcept;
  Sighting sight(const Fingerprint& key) noexcept;
  Sighting peek(const Fingerprint& key) const noexcept;
  /// Adds a slice or rotates, when due.
  void maintain(SteadyTime now) noexcept;
  FilterStatus status(SteadyTime now) const noexcept;

  const ScalableSize& size() const noexcept { return size_; }
  /// Of the current generation.
  std::size_t slice_count() const noexcept;
  /// For the planned keys: one slice in each generation.
  static FilterPrediction predict(std::uint64_t expected_keys, double false_positive_rate) noexcept;

 private:
  struct Slice;
  using Generation = std::vector<std::unique_ptr<Slice>>;
  static bool knows(const Generation& generation, std::uint64_t hash) noexcept;

  bool grow() noexcept;
  void rotate() noexcept;

  const ScalableSize size_;
  mutable std::shared_mutex mutex_;  // guards the lists of slices, not the bits in them
  Generation current_;
  Generation previous_;
  GenerationClock clock_;
};

}  // namespace secondsight::admission
