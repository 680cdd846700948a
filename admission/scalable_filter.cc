#include "admission/scalable_filter.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <mutex>
#include <new>
#include <utility>

#include "config/check.h"

namespace secondsight::admission {
namespace {

constexpr std::uint64_t kMostSampledHalfLines = 16384;

using HalfLine = std::array<std::atomic<std::uint64_t>, kWordsPerHalf>;
constexpr std::uint64_t kHalfLineBytes = kHalfLineBits / 8;
static_assert(sizeof(HalfLine) == kHalfLineBytes);

double keys_per_half_line(const ScalableSize::Slice& slice, double keys) noexcept {
  return keys / static_cast<double>(slice.half_line_count);
}

double full_rate(const ScalableSize::Slice& slice) noexcept {
  return false_positive_rate(keys_per_half_line(slice, static_cast<double>(slice.keys)));
}

// Averaged over an even filling from nothing to `keys`, by Simpson's rule: the rate is smooth.
double filling_rate(const ScalableSize::Slice& slice, double keys) noexcept {
  constexpr int kIntervals = 8;
  const double most = keys_per_half_line(slice, keys);
  double sum = false_positive_rate(most);
  for (int i = 1; i < kIntervals; ++i) {
    sum += (i % 2 == 0 ? 2 : 4) * false_positive_rate(most * i / kIntervals);
  }
  return sum / (3 * kIntervals);
}

// The fullest half-lines that keep one generation's rate.
double keys_per_half_line_for(double rate) noexcept {
  double low = 0;
  double high = 80;  // a rate of more than a half
  for (int step = 0; step < 40; ++step) {
    const double middle = (low + high) / 2;
    (false_positive_rate(middle) <= rate ? low : high) = middle;
  }
  return low;
}

// With `first_rate` for the first slice and the tightened ones for the others.
ScalableSize size_with(std::uint64_t expected_keys, double first_rate) noexcept {
  ScalableSize size;
  size.expected_keys = expected_keys;
  const double part =
      static_cast<double>(expected_keys * kScalableGrowth) / static_cast<double>(kScalableParts);
  double rate = first_rate;
  for (unsigned i = 0; i < kScalableSlices; ++i) {
    ScalableSize::Slice& slice = size.slices[i];
    const double keys = std::ceil(part * static_cast<double>(1U << i));
    slice.keys = static_cast<std::uint64_t>(keys);
    const double half_lines = std::ceil(keys * (1 + kSizingReserve) / keys_per_half_line_for(rate));
    constexpr std::uint64_t kGranule = kFilterGranuleBytes / kHalfLineBytes;
    slice.half_line_count =
        (static_cast<std::uint64_t>(half_lines) + kGranule - 1) / kGranule * kGranule;
    rate *= kScalableTightening;
  }
  return size;
}

}  // namespace

std::uint64_t ScalableSize::keys(unsigned slice_count) const noexcept {
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < slice_count; ++i) sum += slices[i].keys;
  return sum;
}

std::uint64_t ScalableSize::memory_bytes(unsigned slice_count) const noexcept {
  std::uint64_t half_lines = 0;
  for (unsigned i = 0; i < slice_count; ++i) half_lines += slices[i].half_line_count;
  return 2 * half_lines * kHalfLineBytes;
}

WindowRates scalable_window_rates(const ScalableSize& size, unsigned slice_count) noexcept {
  CHECK(slice_count >= 1 && slice_count <= kScalableSlices);
  double passed_by_full = 1;   // a stranger is known to none of the slices before
  double passed_by_grown = 0;  // ... averaged over the growth of `current`
  for (unsigned i = 0; i < slice_count; ++i) {
    const ScalableSize::Slice& slice = size.slices[i];
    const auto keys = static_cast<double>(slice.keys);
    // The share of the window in which this slice is the newest.
    const double share = keys / static_cast<double>(size.keys(slice_count));
    passed_by_grown += share * passed_by_full * (1 - filling_rate(slice, keys));
    passed_by_full *= 1 - full_rate(slice);
  }
  return {1 - passed_by_full * passed_by_grown, 1 - passed_by_full * passed_by_full};
}

WindowRates scalable_planned_rates(const ScalableSize& size) noexcept {
  const ScalableSize::Slice& slice = size.slices[0];
  const auto keys = static_cast<double>(size.expected_keys);
  const double full = false_positive_rate(keys_per_half_line(slice, keys));
  const double filling = filling_rate(slice, keys);
  return {full + filling - full * filling, full + full - full * full};
}

ScalableSize size_scalable(std::uint64_t expected_keys, double rate) noexcept {
  CHECK(expected_keys > 0);
  CHECK(rate > 0 && rate < 1);
  // The rate over the window is nearly proportional to the first slice's: a few steps get there.
  // Without the rounding to huge pages, which would hide the target from small filters.
  constexpr std::uint64_t kManyKeys = std::uint64_t{1} << 34;
  double first_rate = rate * (1 - kScalableTightening) / 2;
  for (int step = 0; step < 6; ++step) {
    const double average =
        scalable_window_rates(size_with(kManyKeys, first_rate), kScalableSlices).average;
    first_rate *= rate / average;
  }
  return size_with(expected_keys, first_rate);
}

struct ScalableFilter::Slice {
  explicit Slice(const ScalableSize::Slice& slice)
      : size(slice),
        memory(slice.half_line_count * kHalfLineBytes),
        half_lines(static_cast<HalfLine*>(memory.data())) {
    std::uninitialized_value_construct_n(half_lines, slice.half_line_count);
  }

  void clear() noexcept {
    for (std::uint64_t i = 0; i < size.half_line_count; ++i) {
      for (std::atomic<std::uint64_t>& word : half_lines[i]) {
        word.store(0, std::memory_order_relaxed);
      }
    }
  }
  FilterAddress address_of(std::uint64_t hash) const noexcept {
    return FilterAddress::of(hash, size.half_line_count);
  }
  /// Relaxed as in the two-generation filter: a bit says all there is to say.
  bool knows(std::uint64_t hash) const noexcept {
    const FilterAddress address = address_of(hash);
    const HalfLine& words = half_lines[address.line];
    std::uint64_t missing = 0;
    for (unsigned w = 0; w < kWordsPerHalf; ++w) {
      missing |= address.masks[w] & ~words[w].load(std::memory_order_relaxed);
    }
    return missing == 0;
  }
  void mark(std::uint64_t hash) noexcept {
    const FilterAddress address = address_of(hash);
    HalfLine& words = half_lines[address.line];
    for (unsigned w = 0; w < kWordsPerHalf; ++w) {
      words[w].fetch_or(address.masks[w], std::memory_order_relaxed);
    }
  }
  struct Sample {
    double fill = 0;   // share of set bits
    double match = 0;  // chance that a stranger is known
  };
  Sample sample() const noexcept {
    const std::uint64_t samples = std::min(size.half_line_count, kMostSampledHalfLines);
    Sample sum;
    for (std::uint64_t s = 0; s < samples; ++s) {
      double match = 1;
      for (const std::atomic<std::uint64_t>& word :
           half_lines[size.half_line_count / samples * s]) {
        const double share = std::popcount(word.load(std::memory_order_relaxed)) / 64.0;
        sum.fill += share / kWordsPerHalf;
        match *= share * share;
      }
      sum.match += match;
    }
    const auto count = static_cast<double>(samples);
    return {sum.fill / count, sum.match / count};
  }

  const ScalableSize::Slice size;
  HugeMemory memory;
  HalfLine* half_lines;
};

ScalableFilter::ScalableFilter(std::uint64_t expected_keys, double false_positive_rate,
                               SteadyTime::duration window, SteadyTime now)
    : size_(size_scalable(expected_keys, false_positive_rate)),
      clock_(size_.keys(kScalableSlices), window, now) {
  for (Generation* const generation : {&current_, &previous_}) {
    generation->reserve(
        kScalableSlices);  // so that adding a slice allocates nothing under the lock
    generation->push_back(std::make_unique<Slice>(size_.slices[0]));
  }
}

ScalableFilter::~ScalableFilter() = default;

bool ScalableFilter::knows(const Generation& generation, std::uint64_t hash) noexcept {
  // Without a branch in between, so that the slices' memory accesses overlap.
  bool known = false;
  for (const std::unique_ptr<Slice>& slice : generation) known |= slice->knows(hash);
  return known;
}

void ScalableFilter::prefetch(const Fingerprint& key) const noexcept {
  const std::shared_lock lock(mutex_);
  for (const Generation* const generation : {&current_, &previous_}) {
    for (const std::unique_ptr<Slice>& slice : *generation) {
      __builtin_prefetch(&slice->half_lines[slice->address_of(key.high).line]);
    }
  }
}

Sighting ScalableFilter::sight(const Fingerprint& key) noexcept {
  const std::shared_lock lock(mutex_);
  const bool in_previous = knows(previous_, key.high);
  if (knows(current_, key.high)) return Sighting::Repeat;
  current_.back()->mark(key.high);
  clock_.add_mark(key.high);
  return in_previous ? Sighting::Repeat : Sighting::First;
}

Sighting ScalableFilter::peek(const Fingerprint& key) const noexcept {
  const std::shared_lock lock(mutex_);
  return knows(current_, key.high) || knows(previous_, key.high) ? Sighting::Repeat
                                                                 : Sighting::First;
}

void ScalableFilter::maintain(SteadyTime now) noexcept {
  RotationCause cause = clock_.due(now);
  const auto slices = static_cast<unsigned>(current_.size());
  const bool newest_is_full = slices < kScalableSlices && clock_.marks() >= size_.keys(slices);
  if (cause == RotationCause::None && newest_is_full && !grow()) cause = RotationCause::Fill;
  if (cause == RotationCause::None) return;
  rotate();
  clock_.rotated(cause, now);
}

// The lists change in the thread of maintain() only, which may read them without the lock.
bool ScalableFilter::grow() noexcept {
  try {
    auto slice = std::make_unique<Slice>(size_.slices[current_.size()]);
    const std::unique_lock lock(mutex_);
    current_.push_back(std::move(slice));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// Nothing is allocated, so a rotation never fails: the new generation starts with the first slice
// of the one whose time is over.
void ScalableFilter::rotate() noexcept {
  Generation retired;
  {
    const std::unique_lock lock(mutex_);
    retired.swap(previous_);
  }
  retired.resize(1);
  retired[0]->clear();
  const std::unique_lock lock(mutex_);
  previous_.swap(current_);
  current_.swap(retired);
}

std::size_t ScalableFilter::slice_count() const noexcept {
  const std::shared_lock lock(mutex_);
  return current_.size();
}

FilterStatus ScalableFilter::status(SteadyTime now) const noexcept {
  FilterStatus status;
  clock_.describe(status, now);
  const std::shared_lock lock(mutex_);
  double passed = 1;  // a stranger is known to no slice
  double bits = 0;
  double set_bits = 0;
  const auto look_at = [&](const Slice& slice) {
    const Slice::Sample sample = slice.sample();
    status.memory_bytes += slice.memory.size_bytes();
    passed *= 1 - sample.match;
    return sample.fill;
  };
  for (const std::unique_ptr<Slice>& slice : current_) {
    const auto slice_bits = static_cast<double>(slice->size.half_line_count);
    set_bits += look_at(*slice) * slice_bits;
    bits += slice_bits;
  }
  for (const std::unique_ptr<Slice>& slice : previous_) look_at(*slice);
  status.fill = set_bits / bits;
  status.false_positive_rate = 1 - passed;
  return status;
}

FilterPrediction ScalableFilter::predict(std::uint64_t expected_keys, double rate) noexcept {
  const ScalableSize size = size_scalable(expected_keys, rate);
  return {size.memory_bytes(1), scalable_planned_rates(size)};
}

}  // namespace secondsight::admission
