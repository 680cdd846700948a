#include "admission/classic_filter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>

#include "config/check.h"

// Why no mark is lost while its window lasts
// ------------------------------------------
// Rotation e zeroes array e mod 2, then publishes epoch e. In epoch e-1 that array was `previous`:
// what it held was marked by sightings that read the epoch e-2 or earlier, and so began before
// rotation e-1 was published. Rotation e begins a window after that (GenerationClock), or
// keys_per_generation marks after that. So the time of those keys is over, and a First for one of
// them, while the array is being zeroed, is right.
// A sighting that read the epoch e-1 before rotation e and marks after it marks array e-1 mod 2,
// which is `previous` by then and is zeroed by rotation e+1: a window after rotation e was
// complete, so more than a window after the sighting began. No array that is being zeroed takes
// marks, unless a thread sleeps for a window between two instructions; then the mark is over too.
// A sighting that sees all its bits in `current` of epoch e writes nothing. The bits are not left
// over from epoch e-2: the acquire load that saw epoch e makes the zeroes visible.
namespace secondsight::admission {
namespace {

constexpr unsigned kMostProbes = 32;
constexpr std::uint64_t kMostSampledWords = 16384;
__extension__ using Wide = unsigned __int128;

// The bit numbers of a key, by enhanced double hashing: a second hash is the step from one probe to
// the next, and the step changes too, each time by more, so that no step keeps the probes together.
// The numbers are fractions of 2^64 here, so what is one bit in the papers is one 2^64th of the
// golden ratio.
class ProbeSequence {
 public:
  ProbeSequence(std::uint64_t hash, std::uint64_t bits) noexcept
      : at_(hash), step_(remix(hash)), bits_(bits) {}

  std::uint64_t next() noexcept {
    // The upper half of the product: even over the bits, for any count, without a division.
    const auto bit = static_cast<std::uint64_t>((static_cast<Wide>(at_) * bits_) >> 64U);
    at_ += step_;
    step_ += ++taken_ * kGolden;
    return bit;
  }

 private:
  static constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15U;

  // The finaliser of MurmurHash3: every bit of the hash takes part in every bit of the step.
  static std::uint64_t remix(std::uint64_t x) noexcept {
    x = (x ^ (x >> 33U)) * 0xFF51AFD7ED558CCDU;
    x = (x ^ (x >> 33U)) * 0xC4CEB9FE1A85EC53U;
    return x ^ (x >> 33U);
  }

  std::uint64_t at_;
  std::uint64_t step_;
  std::uint64_t bits_;
  std::uint64_t taken_ = 0;
};

constexpr std::uint64_t mask_of(std::uint64_t bit) noexcept {
  return std::uint64_t{1} << (bit & 63U);
}

// The fewest bits per key with which so many probes keep the rate.
double bits_per_key_for(double rate, unsigned probes) noexcept {
  double low = 0.5;
  double high = 4096;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (classic_window_rates(middle, probes).average <= rate ? high : low) = middle;
  }
  return high;
}

}  // namespace

double classic_false_positive_rate(double bits_per_key, unsigned probes) noexcept {
  const double k = probes;
  return std::pow(-std::expm1(-k / bits_per_key), k);
}

WindowRates classic_window_rates(double bits_per_key, unsigned probes) noexcept {
  const double full = classic_false_positive_rate(bits_per_key, probes);
  // Simpson's rule over the filling, from nothing to full; smooth, so 32 intervals are plenty.
  constexpr int kIntervals = 32;
  double sum = full;
  for (int i = 1; i < kIntervals; ++i) {
    sum +=
        (i % 2 == 0 ? 2 : 4) * classic_false_positive_rate(bits_per_key * kIntervals / i, probes);
  }
  const double filling = sum / (3 * kIntervals);
  return {full + filling - full * filling, full + full - full * full};
}

ClassicSize size_classic(std::uint64_t expected_keys, double rate) noexcept {
  CHECK(expected_keys > 0);
  CHECK(rate > 0 && rate < 1);
  ClassicSize size;
  size.keys_per_generation = expected_keys;
  double bits_per_key = std::numeric_limits<double>::max();
  for (unsigned probes = 1; probes <= kMostProbes; ++probes) {
    const double bits = bits_per_key_for(rate, probes);
    if (bits >= bits_per_key) break;  // one minimum only: from here on it takes more
    bits_per_key = bits;
    size.probes = probes;
  }
  constexpr std::uint64_t kGranuleBits = kFilterGranuleBytes / 2 * 8;
  const double planned = static_cast<double>(expected_keys) * (1 + kSizingReserve);
  const auto bits = static_cast<std::uint64_t>(std::ceil(planned * bits_per_key));
  size.bits_per_generation = (bits + kGranuleBits - 1) / kGranuleBits * kGranuleBits;
  return size;
}

ClassicFilter::ClassicFilter(std::uint64_t expected_keys, double false_positive_rate,
                             SteadyTime::duration window, SteadyTime now)
    : size_(size_classic(expected_keys, false_positive_rate)),
      memory_(size_.memory_bytes()),
      words_(static_cast<Word*>(memory_.data())),
      clock_(expected_keys, window, now) {
  std::uninitialized_value_construct_n(words_, size_.memory_bytes() / sizeof(Word));
}

std::span<ClassicFilter::Word> ClassicFilter::generation(unsigned index) const noexcept {
  const std::uint64_t words = size_.bits_per_generation / 64;
  return {words_ + index * words, words};
}

void ClassicFilter::prefetch(const Fingerprint& key) const noexcept {
  ProbeSequence sequence(key.high, size_.bits_per_generation);
  const std::span<Word> even = generation(0);
  const std::span<Word> odd = generation(1);
  for (unsigned p = 0; p < size_.probes; ++p) {
    const std::uint64_t word = sequence.next() / 64;
    __builtin_prefetch(&even[word]);
    __builtin_prefetch(&odd[word]);
  }
  // g++ 12 takes a function that only prefetches for one without effect, and drops calls of it.
  asm volatile("" : : "r"(words_));
}

Sighting ClassicFilter::sight(const Fingerprint& key) noexcept {
  const auto current_index = static_cast<unsigned>(epoch_.load(std::memory_order_acquire) & 1U);
  const std::span<Word> current = generation(current_index);
  const std::span<Word> previous = generation(current_index ^ 1U);
  std::array<std::uint64_t, kMostProbes> bits;
  bool in_current = true;
  bool in_previous = true;
  // All loads before the first branch that hangs on one: the misses overlap.
  ProbeSequence sequence(key.high, size_.bits_per_generation);
  for (unsigned p = 0; p < size_.probes; ++p) {
    const std::uint64_t bit = bits[p] = sequence.next();
    const std::uint64_t mask = mask_of(bit);
    in_current &= (current[bit / 64].load(std::memory_order_relaxed) & mask) != 0;
    in_previous &= (previous[bit / 64].load(std::memory_order_relaxed) & mask) != 0;
  }
  if (in_current) return Sighting::Repeat;
  for (unsigned p = 0; p < size_.probes; ++p) {
    current[bits[p] / 64].fetch_or(mask_of(bits[p]), std::memory_order_relaxed);
  }
  clock_.add_mark(key.high);
  return in_previous ? Sighting::Repeat : Sighting::First;
}

Sighting ClassicFilter::peek(const Fingerprint& key) const noexcept {
  const std::span<Word> even = generation(0);
  const std::span<Word> odd = generation(1);
  bool in_even = true;
  bool in_odd = true;
  ProbeSequence sequence(key.high, size_.bits_per_generation);
  for (unsigned p = 0; p < size_.probes; ++p) {
    const std::uint64_t bit = sequence.next();
    in_even &= (even[bit / 64].load(std::memory_order_relaxed) & mask_of(bit)) != 0;
    in_odd &= (odd[bit / 64].load(std::memory_order_relaxed) & mask_of(bit)) != 0;
  }
  return in_even || in_odd ? Sighting::Repeat : Sighting::First;
}

void ClassicFilter::maintain(SteadyTime now) noexcept {
  const RotationCause cause = clock_.due(now);
  if (cause == RotationCause::None) return;
  const std::uint64_t epoch = epoch_.load(std::memory_order_relaxed) + 1;
  for (Word& word : generation(static_cast<unsigned>(epoch & 1U))) {
    word.store(0, std::memory_order_relaxed);
  }
  epoch_.store(epoch, std::memory_order_release);
  clock_.rotated(cause, now);
}

FilterStatus ClassicFilter::status(SteadyTime now) const noexcept {
  const auto current_index = static_cast<unsigned>(epoch_.load(std::memory_order_acquire) & 1U);
  const auto fill_of = [this](unsigned index) {
    const std::span<Word> words = generation(index);
    const std::uint64_t samples = std::min<std::uint64_t>(words.size(), kMostSampledWords);
    std::uint64_t set_bits = 0;
    for (std::uint64_t s = 0; s < samples; ++s) {
      const std::uint64_t word = words[words.size() / samples * s].load(std::memory_order_relaxed);
      set_bits += static_cast<unsigned>(std::popcount(word));
    }
    return static_cast<double>(set_bits) / static_cast<double>(samples * 64);
  };
  FilterStatus status;
  clock_.describe(status, now);
  status.memory_bytes = memory_.size_bytes();
  status.fill = fill_of(current_index);
  const double in_current = std::pow(status.fill, size_.probes);
  const double in_previous = std::pow(fill_of(current_index ^ 1U), size_.probes);
  status.false_positive_rate = in_current + in_previous - in_current * in_previous;
  return status;
}

FilterPrediction ClassicFilter::predict(std::uint64_t expected_keys, double rate) noexcept {
  const ClassicSize size = size_classic(expected_keys, rate);
  return {size.memory_bytes(), classic_window_rates(size.bits_per_key(), size.probes)};
}

}  // namespace secondsight::admission
