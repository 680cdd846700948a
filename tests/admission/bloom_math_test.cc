#include "admission/bloom_math.h"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

namespace secondsight::admission {
namespace {

// The definition, worked out the long way: the chance of each number of keys in a line, and for a
// single word the exact distribution of its set bits after 2m draws (a Markov chain), of which a
// stranger's two draws must both hit one: (b/64)^2. Four words are independent given m.
double rate_from_the_definition(double keys_per_line) {
  std::array<double, 65> bits{1};  // bits[b]: chance that b bits of a word are set
  double chance = std::exp(-keys_per_line);
  double rate = 0;
  for (int m = 0; m < 400; ++m) {
    double word = 0;
    for (int b = 0; b <= 64; ++b) word += bits[static_cast<std::size_t>(b)] * b * b / (64.0 * 64.0);
    rate += chance * std::pow(word, 4);
    chance *= keys_per_line / (m + 1);
    for (int draw = 0; draw < 2; ++draw) {
      for (std::size_t b = 64; b > 0; --b) {
        const auto set = static_cast<double>(b);
        bits[b] = bits[b] * set / 64 + bits[b - 1] * (65 - set) / 64;
      }
      bits[0] = 0;
    }
  }
  return rate;
}

TEST(BloomMath, RateIsThePoissonMixtureOfItsDefinition) {
  for (const double keys : {0.1, 1.0, 5.0, 11.8, 23.6, 40.0, 80.0}) {
    const double expected = rate_from_the_definition(keys);
    EXPECT_NEAR(false_positive_rate(keys) / expected, 1, 1e-9) << keys << " keys per line";
  }
}

TEST(BloomMath, EmptyNeverMatchesAndFullAlwaysDoes) {
  EXPECT_EQ(false_positive_rate(0), 0);
  EXPECT_EQ(combined_false_positive_rate(0, 0), 0);
  EXPECT_EQ(expected_fill(0), 0);
  EXPECT_NEAR(false_positive_rate(600), 1, 1e-3);
  EXPECT_NEAR(expected_fill(600), 1, 1e-6);
}

TEST(BloomMath, CombinedRateIsSymmetricAndBetweenTheLargerAndTheSum) {
  for (const double previous : {0.0, 3.0, 11.8, 23.6, 50.0}) {
    for (const double current : {0.0, 3.0, 11.8, 23.6, 50.0}) {
      const double a = false_positive_rate(previous);
      const double b = false_positive_rate(current);
      const double either = combined_false_positive_rate(previous, current);
      EXPECT_NEAR(either, combined_false_positive_rate(current, previous), 1e-15);
      EXPECT_GE(either, std::max(a, b) - 1e-15);
      EXPECT_LE(either, a + b + 1e-15);
      // Coinciding probes make the two generations' answers lean the same way.
      EXPECT_LE(either, a + b - a * b + 1e-15);
    }
  }
}

TEST(BloomMath, WindowAverageIsTheIntegralOverTheFilling) {
  for (const double keys : {1.0, 11.8, 23.6, 40.0}) {
    constexpr int kSteps = 2000;  // midpoint rule
    double sum = 0;
    for (int i = 0; i < kSteps; ++i) {
      sum += combined_false_positive_rate(keys, keys * (i + 0.5) / kSteps);
    }
    EXPECT_NEAR(window_rates(keys).average / (sum / kSteps), 1, 1e-5) << keys;
    EXPECT_NEAR(window_rates(keys).worst, combined_false_positive_rate(keys, keys), 1e-15);
  }
}

TEST(BloomMath, OnePercentCostsElevenBitsPerKeyAndGeneration) {
  const double keys = keys_per_line_for(0.01);
  EXPECT_NEAR(kHalfLineBits / keys, 10.84, 0.005);
  EXPECT_NEAR(window_rates(keys).average, 0.01, 1e-9);
  EXPECT_NEAR(window_rates(keys).worst, 0.0170, 5e-5);
  EXPECT_NEAR(expected_fill(keys), 0.519, 5e-4);
  // What a filter without rotation by fill comes to at twice the planned keys.
  EXPECT_NEAR(window_rates(2 * keys).average, 0.1625, 5e-4);
}

TEST(BloomMath, FiftyMillionKeysAtOnePercentTakeAtMost140MB) {
  const FilterSize size = size_filter(50'000'000, 0.01);
  EXPECT_LE(size.memory_bytes(), 140'000'000U);
  EXPECT_LE(window_rates(size.keys_per_line()).average, 0.01);
  EXPECT_EQ(size.keys_per_generation, 50'000'000U);
}

TEST(BloomMath, EverySizeKeepsItsRateWithReserveAndNoSmallerOneWould) {
  for (const double rate : {1e-5, 1e-3, 0.01, 0.05, 0.25}) {
    for (const std::uint64_t keys : {1U, 1000U, 1'000'000U, 12'345'678U, 200'000'000U}) {
      const FilterSize size = size_filter(keys, rate);
      EXPECT_EQ(size.memory_bytes() % kFilterGranuleBytes, 0U);
      EXPECT_LE(window_rates(size.keys_per_line() * (1 + kSizingReserve)).average,
                rate * (1 + 1e-9))
          << keys << " keys at " << rate;
      if (size.memory_bytes() == kFilterGranuleBytes) continue;
      const auto fewer = static_cast<double>(size.line_count - kFilterGranuleBytes / kLineBytes);
      EXPECT_GT(window_rates(static_cast<double>(keys) * (1 + kSizingReserve) / fewer).average,
                rate)
          << keys << " keys at " << rate;
    }
  }
}

TEST(BloomMath, AsManyKeysFitAsDoNotNeedAnotherHugePage) {
  for (const double rate : {1e-4, 0.01, 0.1}) {
    for (const std::uint64_t keys : {1U, 1'000'000U, 50'000'000U}) {
      const std::uint64_t lines = size_filter(keys, rate).line_count;
      const std::uint64_t fit = keys_that_fit(lines, rate);
      EXPECT_GE(fit, keys);
      EXPECT_EQ(size_filter(fit, rate).line_count, lines) << keys << " keys at " << rate;
      EXPECT_GT(size_filter(fit + 2, rate).line_count, lines) << keys << " keys at " << rate;
    }
  }
}

// Issue: at twice the planned keys a plain filter would reach 15 %, ours stays within twice its
// rate.
TEST(BloomMath, OverloadShortensGenerationsAndKeepsTheRateNearThePlan) {
  constexpr double kCallsADay = 24 * 3600 * 50;
  const FilterSize size = size_filter(50'000'000, 0.01);
  const double planned = window_rates(size.keys_per_line()).average;
  for (const double traffic : {2.0, 10.0}) {
    const OverloadRates rates = overload_rates(size, traffic, kCallsADay);
    EXPECT_DOUBLE_EQ(rates.generation_share, 1 / traffic);
    EXPECT_GT(rates.bound.average, planned);
    EXPECT_LE(rates.bound.average, 0.01);
    EXPECT_LE(rates.bound.worst, 0.02);
  }
  EXPECT_NEAR(overload_rates(size, 2, kCallsADay).by_age_alone.average, 0.152, 5e-4);
  EXPECT_NEAR(overload_rates(size, 10, kCallsADay).by_age_alone.average, 0.998, 5e-4);

  const OverloadRates below = overload_rates(size, 0.5, kCallsADay);
  EXPECT_DOUBLE_EQ(below.generation_share, 1) << "by age";
  EXPECT_DOUBLE_EQ(below.bound.average, window_rates(size.keys_per_line() / 2).average);
  // Few calls in a window: each may be a large share of the planned keys late.
  EXPECT_GT(overload_rates(size, 10, 100).bound.average, 0.01);
}

TEST(BloomMath, BadSizesAreExplained) {
  struct Case {
    std::uint64_t keys;
    double rate;
    std::uint64_t memory_limit_bytes;
    std::string expected;  // a part of the explanation; empty: accepted
  };
  constexpr std::uint64_t kMiB = 1 << 20;
  const std::vector<Case> cases{
      {1, 0.01, 2 * kMiB, ""},
      {50'000'000, 0.01, 140 * kMiB, ""},
      {1'000'000, 1e-5, 100 * kMiB, ""},
      {1'000'000, 0.25, 100 * kMiB, ""},
      {0, 0.01, 100 * kMiB, "expected_keys = 0"},
      {1000, 0, 100 * kMiB, "no rate"},
      {1000, -0.5, 100 * kMiB, "no rate"},
      {1000, 1, 100 * kMiB, "no rate"},
      {1000, std::nan(""), 100 * kMiB, "no rate"},
      {1000, 1e-6, 100 * kMiB, "wastes memory"},
      {1000, 0.26, 100 * kMiB, "defeats the filter"},
      {std::uint64_t{1} << 50U, 0.01, ~std::uint64_t{0}, "more than a filter can address"},
      {50'000'000, 0.01, 100 * kMiB, "would need 132 MiB and may take 100 MiB"},
  };
  for (const Case& c : cases) {
    const auto text = explain_bad_size(c.keys, c.rate, c.memory_limit_bytes);
    const std::string got = text.value_or("");
    EXPECT_EQ(got.empty(), c.expected.empty()) << c.keys << " keys at " << c.rate << ": " << got;
    EXPECT_NE(got.find(c.expected), std::string::npos) << got;
  }
}

}  // namespace
}  // namespace secondsight::admission
