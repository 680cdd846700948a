#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "admission/admission_policy.h"
#include "admission/bloom_math.h"
#include "admission/fingerprint.h"
#include "admission/huge_memory.h"
#include "admission/mark_ring.h"
#include "config/clock.h"

namespace secondsight::admission {

enum class Sighting : std::uint8_t { First, Repeat };
enum class Generation : std::uint8_t { Current, Previous };

/// Where a key lives in a filter of `line_count` lines: one line, two bits in each of four words.
/// Part of the on-disk contract (golden values in the tests): a mark is `Fingerprint::high` alone.
struct FilterAddress {
  std::uint64_t line = 0;
  std::array<std::uint64_t, kWordsPerHalf> masks{};

  static FilterAddress of(std::uint64_t hash, std::uint64_t line_count) noexcept;
};

/// Remembers which fingerprints were sighted lately, in two blocked Bloom filters that take turns
/// and lie side by side: one 64-byte line holds a 256-bit half for each generation. `current` takes
/// the marks, `previous` only answers; a rotation swaps the roles and clears what retires.
///
/// Guarantee: a key is never answered First within one generation after it was last sighted. A
/// generation lasts `window`, or less: until keys_per_generation keys were marked (and never fewer
/// than 31/32 of them after this sighting).
/// Error: Repeat for a key never sighted, on average over a window at most at the rate its size was
/// chosen for (size_filter()). Both guarantees are argued in two_generation_filter.cc.
///
/// Threads: prefetch(), sight(), peek() and status() from any thread, lock-free. maintain() from
/// one thread. What keeps sightings (replay() to merge_into_previous()) says its own rule.
class TwoGenerationFilter {
 public:
  /// Throws std::bad_alloc. All memory is touched here, so that no request pays for a page fault.
  TwoGenerationFilter(const FilterSize& size, SteadyTime::duration window, SteadyTime now);

  /// Starts the one memory access that sight() needs, and the thread's own for counting a mark,
  /// which is in a cache unless the request did much else.
  void prefetch(const Fingerprint& key) const noexcept;

  /// Says whether the key was sighted before, and remembers this sighting.
  Sighting sight(const Fingerprint& key) noexcept;

  /// What sight() would say, remembering nothing.
  Sighting peek(const Fingerprint& key) const noexcept;

  /// Rotates when due, or sweeps a stretch of lines while a rotation is under way. A sweep takes at
  /// most kSweepSteps calls, and ends sooner when a 64th of the window or of the keys of a
  /// generation has passed. A rotation that falls due during a sweep waits for its end.
  void maintain(SteadyTime now) noexcept;

  /// Sampled over at most 16384 lines, a few hundred microseconds.
  FilterStatus status(SteadyTime now) const noexcept;

  const FilterSize& size() const noexcept { return size_; }
  /// Whether lines of the last rotation are still to be cleared.
  bool sweeping() const noexcept;

  static constexpr std::uint64_t kSweepSteps = 64;

  // --- keeping sightings longer than the process (sighting_journal.h)
  /// Sights the marks of an earlier process, oldest first, and rotates at once whenever a
  /// generation is an eighth more than full. How often it did. Call before there is any other
  /// thread.
  std::uint64_t replay(std::span<const std::uint64_t> marks, SteadyTime now) noexcept;
  /// Ends the current generation now, without pacing. Call before there is any other thread.
  void rotate_at_once(SteadyTime now) noexcept;
  /// Marks since the current generation began. Any thread.
  std::uint64_t marks_in_generation() const noexcept;
  /// The current generation began then, whenever this process did. Likewise.
  void set_generation_start(SteadyTime began) noexcept;
  /// From here on marks are kept for take_marks(). Likewise. Throws std::bad_alloc.
  void keep_marks() { marks_.keep_marks(); }
  /// Appends the marks (Fingerprint::high) since the last call; how many were lost, because nobody
  /// took them in time. One thread. None of them is of a later epoch than epoch() tells afterwards.
  std::uint64_t take_marks(std::vector<std::uint64_t>& out) { return marks_.drain(out); }
  /// Changes with each rotation, when it begins. Any thread.
  std::uint64_t epoch() const noexcept {
    return state_.load(std::memory_order_acquire) >> kPositionBits;
  }
  /// When the current generation began. Any thread.
  SteadyTime generation_start() const noexcept;

  /// One generation is line_count * kWordsPerHalf words, line by line.
  std::size_t words_per_generation() const noexcept { return size_.line_count * kWordsPerHalf; }
  /// Any thread; what is marked meanwhile may be left out.
  void copy_generation(Generation which, std::span<std::uint64_t> words) const noexcept;

  struct Union {
    double false_positive_rate = 0;  // of `previous` alone with those bits
    std::uint64_t new_bits = 0;      // that `previous` did not have
    bool is_merged = false;
  };
  /// Sets the bits of another filter's generation, of the same size and seed, in `previous`: the
  /// union of two Bloom filters is their OR, only so. Nothing is set if that would bring new bits
  /// and a rate above `rate_max`. Empty: a sweep is under way, try again. Any thread but
  /// maintain()'s; a rotation that falls due meanwhile waits.
  std::optional<Union> merge_into_previous(std::span<const std::uint64_t> words,
                                           double rate_max) noexcept;

 private:
  using Half = std::array<std::atomic<std::uint64_t>, kWordsPerHalf>;
  struct alignas(kLineBytes) Line {
    std::array<Half, 2> halves{};
  };
  static_assert(sizeof(Line) == kLineBytes, "both generations of a key in one cache line");

  // Epoch in the upper 24 bits, sweep position in the lower 40: lines below the position are in the
  // epoch, the others still in the one before. A line's current half is its epoch's lowest bit.
  static constexpr unsigned kPositionBits = 40;
  static constexpr std::uint64_t position_of(std::uint64_t state) noexcept {
    return state & ((std::uint64_t{1} << kPositionBits) - 1);
  }
  static constexpr unsigned current_half(std::uint64_t state, std::uint64_t line) noexcept {
    const unsigned epoch_bit = static_cast<unsigned>(state >> kPositionBits) & 1U;
    return epoch_bit ^ (line >= position_of(state) ? 1U : 0U);
  }

  static constexpr std::uint64_t make_state(std::uint64_t epoch, std::uint64_t position) noexcept {
    return epoch << kPositionBits | position;
  }

  // A key's bits that are not set, over all words of a half: zero where the half knows the key.
  struct Missing {
    std::uint64_t in_current = 0;
    std::uint64_t in_previous = 0;
  };
  static Missing missing_bits(const Line& line, const FilterAddress& address,
                              unsigned current) noexcept;

  void rotate_if_due(SteadyTime now) noexcept;
  void clear_half(unsigned half, std::uint64_t first_line, std::uint64_t end_line) noexcept;
  void start_rotation(SteadyTime now) noexcept;
  void sweep(SteadyTime now) noexcept;

  // One cache line: what sight() reads of the filter besides the key's own line. prefetch() needs
  // the first of it, so the rest is there when sight() comes.
  alignas(64) const FilterSize size_;
  const SteadyTime::duration window_;
  HugeMemory memory_;
  Line* lines_;
  // Written by maintain(), release; read by sight(), acquire: who sees a line in its new epoch sees
  // its retired half cleared.
  std::atomic<std::uint64_t> state_;

  MarkRing marks_;
  std::mutex upkeep_;  // a merge and maintain() exclude each other

  // Written by maintain() only, relaxed: status() shows them, nothing is ordered by them.
  alignas(64) std::atomic<std::uint64_t> marks_at_rotation_{0};
  std::atomic<SteadyTime::rep> rotated_at_;  // the last rotation began
  std::atomic<SteadyTime::rep> swept_at_;    // ... and its sweep was seen to be complete
  std::atomic<SteadyTime::rep> last_generation_{0};
  std::atomic<std::uint64_t> rotations_by_age_{0};
  std::atomic<std::uint64_t> rotations_by_fill_{0};
  std::uint64_t marks_at_sweep_end_ = 0;  // maintain() only
  bool sweep_ended_ = false;  // maintain() only: a sweep is complete, its end not yet stamped
};

inline FilterAddress FilterAddress::of(std::uint64_t hash, std::uint64_t line_count) noexcept {
  __extension__ using Wide = unsigned __int128;
  // The line takes the hash's top bits, so the probes come from a remix of all of them: the top 48
  // bits of a product, six for each probe. Odd multiplier: 2^64 / golden ratio.
  const std::uint64_t mixed = hash * 0x9E3779B97F4A7C15U;
  FilterAddress address;
  // The upper half of the product: even over the lines, for any count, without a division.
  address.line = static_cast<std::uint64_t>((static_cast<Wide>(hash) * line_count) >> 64U);
  // Unrolled, as below: at -O2 g++ 12 leaves loops, with a branch before the last of the line's
  // words.
#pragma GCC unroll 4
  for (unsigned w = 0; w < kWordsPerHalf; ++w) {
    const unsigned shift = 58 - 12 * w;
    address.masks[w] = (std::uint64_t{1} << (mixed >> shift & 63U)) |
                       (std::uint64_t{1} << (mixed >> (shift - 6) & 63U));
  }
  return address;
}

[[gnu::always_inline]] inline void TwoGenerationFilter::prefetch(
    const Fingerprint& key) const noexcept {
  const Line* const line = lines_ + FilterAddress::of(key.high, size_.line_count).line;
  __builtin_prefetch(line);
  __builtin_prefetch(&marks_.stripe_of_thread());
  // g++ 12 takes a function that only prefetches for one without effect, and drops calls of it.
  asm volatile("" : : "r"(line));
}

inline TwoGenerationFilter::Missing TwoGenerationFilter::missing_bits(const Line& line,
                                                                      const FilterAddress& address,
                                                                      unsigned current) noexcept {
  Missing missing;
#pragma GCC unroll 4
  for (unsigned w = 0; w < kWordsPerHalf; ++w) {
    // Relaxed: a bit says all there is to say, no other data hangs on it.
    const std::uint64_t now = line.halves[current][w].load(std::memory_order_relaxed);
    const std::uint64_t before = line.halves[current ^ 1U][w].load(std::memory_order_relaxed);
    missing.in_current |= address.masks[w] & ~now;
    missing.in_previous |= address.masks[w] & ~before;
  }
  return missing;
}

inline Sighting TwoGenerationFilter::sight(const Fingerprint& key) noexcept {
  const FilterAddress address = FilterAddress::of(key.high, size_.line_count);
  Line& line = lines_[address.line];
  const unsigned current = current_half(state_.load(std::memory_order_acquire), address.line);
  const Missing missing = missing_bits(line, address, current);
  if (missing.in_current == 0) return Sighting::Repeat;
#pragma GCC unroll 4
  for (unsigned w = 0; w < kWordsPerHalf; ++w) {
    line.halves[current][w].fetch_or(address.masks[w], std::memory_order_relaxed);
  }
  marks_.add(key.high);
  return missing.in_previous == 0 ? Sighting::Repeat : Sighting::First;
}

inline Sighting TwoGenerationFilter::peek(const Fingerprint& key) const noexcept {
  const FilterAddress address = FilterAddress::of(key.high, size_.line_count);
  const Missing missing = missing_bits(lines_[address.line], address, 0);
  return missing.in_current == 0 || missing.in_previous == 0 ? Sighting::Repeat : Sighting::First;
}

}  // namespace secondsight::admission
