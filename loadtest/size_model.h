#pragma once
#include <cstdint>
#include <span>

namespace secondsight::loadtest {

/// Sizes of objects in bytes: a lognormal body whose largest `tail_share` is replaced by a Pareto
/// tail, as web objects have it. Continuous where the two meet.
struct SizeModel {
  double median_bytes = 2741;
  double sigma = 1.387;        // of ln(size) in the body
  double tail_share = 0.1;     // of objects
  double tail_exponent = 1.6;  // Pareto's alpha; the mean is infinite at 1 and below
  std::uint64_t min_bytes = 1;
  std::uint64_t max_bytes = 64u << 20;

  /// The size below which a share `q` in [0, 1) of objects lies.
  double quantile(double q) const;
  /// One object's size: a pure function of its 64 random bits.
  std::uint64_t size_for(std::uint64_t bits) const;
};

/// The model with the median, the 90 % quantile and the tail exponent (Hill 1975, over the largest
/// tenth) of these sizes. `sorted` ascending, at least 20, none 0.
SizeModel fit_sizes(std::span<const std::uint64_t> sorted);

/// The exact quantile of ascending numbers: the value at floor(q * count).
std::uint64_t quantile_of(std::span<const std::uint64_t> sorted, double q);

}  // namespace secondsight::loadtest
