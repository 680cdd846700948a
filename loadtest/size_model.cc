#include "loadtest/size_model.h"

#include <algorithm>
#include <cmath>

#include <boost/math/special_functions/erf.hpp>

#include "config/check.h"
#include "loadtest/random.h"

namespace secondsight::loadtest {
namespace {

/// The standard normal's quantile.
double probit(double q) {
  return -std::sqrt(2.0) * boost::math::erfc_inv(2 * q);
}

}  // namespace

double SizeModel::quantile(double q) const {
  const auto lognormal = [this](double p) { return median_bytes * std::exp(sigma * probit(p)); };
  const double tail_starts = 1 - tail_share;
  constexpr double kSmallest = 1e-12;  // probit(0) is minus infinity
  const double bytes =
      q < tail_starts ? lognormal(std::max(q, kSmallest))
                      : lognormal(tail_starts) * std::pow(tail_share / (1 - q), 1 / tail_exponent);
  return std::clamp(bytes, static_cast<double>(min_bytes), static_cast<double>(max_bytes));
}

std::uint64_t SizeModel::size_for(std::uint64_t bits) const {
  return static_cast<std::uint64_t>(std::llround(quantile(Random::to_unit(bits))));
}

std::uint64_t quantile_of(std::span<const std::uint64_t> sorted, double q) {
  CHECK(!sorted.empty());
  const auto index = static_cast<std::size_t>(q * static_cast<double>(sorted.size()));
  return sorted[std::min(index, sorted.size() - 1)];
}

SizeModel fit_sizes(std::span<const std::uint64_t> sorted) {
  CHECK(sorted.size() >= 20 && sorted.front() > 0);
  SizeModel model;
  model.median_bytes = static_cast<double>(quantile_of(sorted, 0.5));
  const auto tail_from = static_cast<double>(quantile_of(sorted, 1 - model.tail_share));
  model.sigma = std::log(tail_from / model.median_bytes) / probit(1 - model.tail_share);

  const auto tail = sorted.last(sorted.size() / 10);
  double logs = 0;
  for (const std::uint64_t size : tail) logs += std::log(static_cast<double>(size) / tail_from);
  // Sizes that are all equal have no tail: an exponent this steep says so without dividing by zero.
  constexpr double kNoTail = 100;
  const auto count = static_cast<double>(tail.size());
  model.tail_exponent = logs > count / kNoTail ? count / logs : kNoTail;
  return model;
}

}  // namespace secondsight::loadtest
