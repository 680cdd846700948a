#pragma once
#include <cstdint>

#include "loadtest/random.h"

namespace secondsight::loadtest {

/// Draws ranks 1..count with probability proportional to rank^-exponent, in constant time and
/// memory for any count: rejection-inversion, Hoermann and Derflinger 1996. Immutable, so
/// thread-safe.
class Zipf {
 public:
  /// count >= 1, exponent > 0.
  Zipf(std::uint64_t count, double exponent);

  std::uint64_t sample(Random& random) const noexcept;
  std::uint64_t count() const noexcept { return count_; }
  double exponent() const noexcept { return exponent_; }

 private:
  double integral(double x) const noexcept;  // of the density, from 1 to x
  double inverse_integral(double y) const noexcept;
  double density(double x) const noexcept;

  std::uint64_t count_;
  double exponent_;
  double low_;       // integral at the left edge of rank 1's bar
  double high_;      // and at the right edge of the last bar
  double accepted_;  // distance from a rank within which a draw needs no test
};

}  // namespace secondsight::loadtest
