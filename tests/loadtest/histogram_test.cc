#include "loadtest/histogram.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "loadtest/random.h"

namespace secondsight::loadtest {
namespace {

TEST(Histogram, QuantilesAreAtMostTwoPercentAboveTheSampleOnes) {
  Random random(17);
  for (const double spread : {1.0, 4.0, 20.0}) {
    Histogram histogram;
    std::vector<std::uint64_t> sample;
    for (int i = 0; i < 50'000; ++i) {
      const auto value = static_cast<std::uint64_t>(std::exp(random.uniform() * spread) * 1'000);
      histogram.record(value);
      sample.push_back(value);
    }
    std::sort(sample.begin(), sample.end());
    for (const double q : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const auto index = static_cast<std::size_t>(std::ceil(q * 50'000)) - 1;
      const auto exact = static_cast<double>(sample[index]);
      const auto measured = static_cast<double>(histogram.quantile(q));
      EXPECT_GE(measured, exact) << spread << ' ' << q;
      EXPECT_LE(measured, exact * 1.016 + 1) << spread << ' ' << q;
    }
    EXPECT_EQ(histogram.max(), sample.back());
    EXPECT_EQ(histogram.count(), 50'000u);
  }
}

TEST(Histogram, ExtremesHaveABucket) {
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{63}, std::uint64_t{64},
                                    std::uint64_t{1} << 63, UINT64_MAX}) {
    Histogram histogram;
    histogram.record(value);
    EXPECT_EQ(histogram.quantile(0), value);
    EXPECT_EQ(histogram.quantile(1), value);
  }
}

TEST(Histogram, EmptyIsZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.quantile(0.5), 0u);
  EXPECT_EQ(histogram.mean(), 0);
}

TEST(Histogram, MergeIsRecordingBoth) {
  Histogram one, two, both;
  for (std::uint64_t v = 0; v < 1'000; ++v) {
    (v % 3 == 0 ? one : two).record(v * v);
    both.record(v * v);
  }
  one.merge(two);
  for (const double q : {0.1, 0.5, 0.99}) EXPECT_EQ(one.quantile(q), both.quantile(q));
  EXPECT_EQ(one.count(), both.count());
  EXPECT_EQ(one.max(), both.max());
  EXPECT_DOUBLE_EQ(one.mean(), both.mean());
}

}  // namespace
}  // namespace secondsight::loadtest
