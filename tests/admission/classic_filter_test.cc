// The arithmetic of the textbook Bloom filter.
#include "admission/classic_filter.h"

#include <cmath>

#include <gtest/gtest.h>

namespace secondsight::admission {
namespace {

// Tables of the literature give these for m/n bits per key (Broder and Mitzenmacher, "Network
// Applications of Bloom Filters", 2004: 0.0216 for 8 bits, 0.0082 for 10).
TEST(ClassicMath, RateOfOneGenerationIsTheTextbooks) {
  EXPECT_NEAR(classic_false_positive_rate(8, 6), 0.0216, 0.00005);
  EXPECT_NEAR(classic_false_positive_rate(8, 5), 0.0217, 0.00005);
  EXPECT_NEAR(classic_false_positive_rate(10, 7), 0.00819, 0.000005);
}

// The definition, worked out the long way.
TEST(ClassicMath, WindowRateIsTheAverageOverTheFilling) {
  for (const double bits_per_key : {4.0, 10.0, 20.0}) {
    for (const unsigned probes : {1U, 7U, 14U}) {
      const double full = classic_false_positive_rate(bits_per_key, probes);
      double sum = 0;
      constexpr int kSteps = 10'000;
      for (int i = 0; i < kSteps; ++i) {
        const double filled =
            classic_false_positive_rate(bits_per_key * kSteps / (i + 0.5), probes);
        sum += full + filled - full * filled;
      }
      const WindowRates rates = classic_window_rates(bits_per_key, probes);
      EXPECT_NEAR(rates.average / (sum / kSteps), 1, 1e-4) << bits_per_key << " " << probes;
      EXPECT_NEAR(rates.worst, 1 - (1 - full) * (1 - full), 1e-12);
    }
  }
}

TEST(ClassicMath, SizeKeepsTheRateWithTheBestNumberOfProbes) {
  for (const double rate : {0.25, 0.1, 0.01, 0.001, 0.00001}) {
    for (const std::uint64_t expected : {1000U, 50'000'000U, 2'000'000'000U}) {
      const ClassicSize size = size_classic(expected, rate);
      const double average = classic_window_rates(size.bits_per_key(), size.probes).average;
      EXPECT_LE(average, rate) << expected << " keys";
      if (expected < 50'000'000U) continue;
      EXPECT_GE(average, 0.8 * rate) << "more than the reserve and a huge page too much";
      EXPECT_LE(average, classic_window_rates(size.bits_per_key(), size.probes + 1).average);
      if (size.probes == 1) continue;
      EXPECT_LE(average, classic_window_rates(size.bits_per_key(), size.probes - 1).average);
    }
  }
}

}  // namespace
}  // namespace secondsight::admission
