#include "loadtest/zipf.h"

#include <algorithm>
#include <cmath>

#include "config/check.h"

namespace secondsight::loadtest {

Zipf::Zipf(std::uint64_t count, double exponent) : count_(count), exponent_(exponent) {
  CHECK(count >= 1 && exponent > 0);
  low_ = integral(1.5) - 1;
  high_ = integral(static_cast<double>(count) + 0.5);
  accepted_ = 2 - inverse_integral(integral(2.5) - density(2));
}

std::uint64_t Zipf::sample(Random& random) const noexcept {
  for (;;) {
    const double u = high_ + random.uniform() * (low_ - high_);
    const double x = inverse_integral(u);
    const double rank = std::clamp(std::round(x), 1.0, static_cast<double>(count_));
    if (rank - x <= accepted_ || u >= integral(rank + 0.5) - density(rank)) {
      return static_cast<std::uint64_t>(rank);
    }
  }
}

// expm1 and log1p keep the digits where the exponent is next to 1.
double Zipf::integral(double x) const noexcept {
  const double log_x = std::log(x);
  const double t = (1 - exponent_) * log_x;
  return std::abs(t) < 1e-8 ? log_x * (1 + t / 2) : log_x * std::expm1(t) / t;
}

double Zipf::inverse_integral(double y) const noexcept {
  const double t = std::max(-1.0, y * (1 - exponent_));
  return std::abs(t) < 1e-8 ? std::exp(y * (1 - t / 2)) : std::exp(y * std::log1p(t) / t);
}

double Zipf::density(double x) const noexcept {
  return std::exp(-exponent_ * std::log(x));
}

}  // namespace secondsight::loadtest
