#include "loadtest/zipf.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace secondsight::loadtest {
namespace {

TEST(Zipf, SharesFollowTheLawWithinFourSigma) {
  for (const double exponent : {0.5, 0.8, 1.0, 1.2, 2.0}) {
    constexpr std::uint64_t kCount = 50;
    constexpr int kDraws = 200'000;
    constexpr std::uint64_t kSeed = 7;
    SCOPED_TRACE("exponent " + std::to_string(exponent) + ", seed 7");
    const Zipf zipf(kCount, exponent);
    Random random(kSeed);
    std::vector<double> seen(kCount + 1);
    for (int i = 0; i < kDraws; ++i) {
      const std::uint64_t rank = zipf.sample(random);
      ASSERT_GE(rank, 1u);
      ASSERT_LE(rank, kCount);
      seen[rank] += 1;
    }
    double sum = 0;
    for (std::uint64_t k = 1; k <= kCount; ++k) sum += std::pow(static_cast<double>(k), -exponent);
    for (std::uint64_t k = 1; k <= kCount; ++k) {
      const double p = std::pow(static_cast<double>(k), -exponent) / sum;
      const double sigma = std::sqrt(kDraws * p * (1 - p));
      EXPECT_NEAR(seen[k], kDraws * p, 4 * sigma + 1) << "rank " << k;
    }
  }
}

TEST(Zipf, OneObjectIsAlwaysItself) {
  const Zipf zipf(1, 0.9);
  Random random(3);
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(zipf.sample(random), 1u);
}

TEST(Zipf, HugeCatalogueStaysInRange) {
  constexpr std::uint64_t kCount = 10'000'000'000;
  const Zipf zipf(kCount, 0.7);
  Random random(5);
  std::uint64_t largest = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t rank = zipf.sample(random);
    ASSERT_GE(rank, 1u);
    ASSERT_LE(rank, kCount);
    largest = std::max(largest, rank);
  }
  EXPECT_GT(largest, kCount / 2) << "the far ranks are asked too";
}

}  // namespace
}  // namespace secondsight::loadtest
