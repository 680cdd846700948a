#include "loadtest/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace secondsight::loadtest {

// Values below 64 have a bucket each. From there on the leading bit picks the group, the next six
// bits the bucket in it.
unsigned Histogram::bucket_of(std::uint64_t value) noexcept {
  if (value < (1u << kLinearBits)) return static_cast<unsigned>(value);
  const auto shift = static_cast<unsigned>(std::bit_width(value)) - 1 - kLinearBits;
  const auto within = static_cast<unsigned>(value >> shift) - (1u << kLinearBits);
  return ((shift + 1) << kLinearBits) + within;
}

std::uint64_t Histogram::upper_end(unsigned bucket) noexcept {
  if (bucket < (1u << kLinearBits)) return bucket;
  const unsigned shift = (bucket >> kLinearBits) - 1;
  const std::uint64_t within = bucket & ((1u << kLinearBits) - 1);
  const std::uint64_t base = ((std::uint64_t{1} << kLinearBits) + within) << shift;
  return base + ((std::uint64_t{1} << shift) - 1);
}

void Histogram::record(std::uint64_t value) noexcept {
  ++buckets_[bucket_of(value)];
  ++count_;
  max_ = std::max(max_, value);
  sum_ += static_cast<double>(value);
}

void Histogram::merge(const Histogram& other) noexcept {
  for (unsigned i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

double Histogram::mean() const noexcept {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

std::uint64_t Histogram::quantile(double q) const noexcept {
  if (count_ == 0) return 0;
  const auto wanted = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count_))));
  std::uint64_t seen = 0;
  for (unsigned i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= wanted) return std::min(upper_end(i), max_);
  }
  return max_;
}

}  // namespace secondsight::loadtest
