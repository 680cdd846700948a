#include "loadtest/size_model.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "loadtest/random.h"

namespace secondsight::loadtest {
namespace {

std::vector<std::uint64_t> draw(const SizeModel& model, std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::uint64_t> sizes(count);
  for (auto& size : sizes) size = model.size_for(random.next());
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

TEST(SizeModel, QuantilesOfDrawsAreTheModels) {
  const SizeModel model;
  const auto sizes = draw(model, 200'000, 11);
  for (const double q : {0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99}) {
    const double expected = model.quantile(q);
    EXPECT_NEAR(static_cast<double>(quantile_of(sizes, q)), expected, 0.05 * expected) << q;
  }
  EXPECT_NEAR(model.quantile(0.5), model.median_bytes, 1);
}

TEST(SizeModel, IsContinuousAndRisingWhereTheTailBegins) {
  const SizeModel model;
  double before = 0;
  for (double q = 0; q < 1; q += 0.001) {
    const double size = model.quantile(q);
    EXPECT_GE(size, before) << q;
    before = size;
  }
  const double edge = 1 - model.tail_share;
  EXPECT_NEAR(model.quantile(edge - 1e-9) / model.quantile(edge + 1e-9), 1, 1e-6);
}

TEST(SizeModel, StaysWithinItsBounds) {
  SizeModel model;
  model.min_bytes = 1'000;
  model.max_bytes = 5'000;
  const auto sizes = draw(model, 10'000, 12);
  EXPECT_EQ(sizes.front(), 1'000u);
  EXPECT_EQ(sizes.back(), 5'000u);
  EXPECT_EQ(model.size_for(0), 1'000u);
  EXPECT_EQ(model.size_for(UINT64_MAX), 5'000u);
}

TEST(SizeModel, FitFindsTheModelAgain) {
  SizeModel model;
  model.median_bytes = 9'000;
  model.sigma = 1.1;
  model.tail_exponent = 1.3;
  model.max_bytes = UINT64_MAX / 2;
  const SizeModel fitted = fit_sizes(draw(model, 200'000, 13));
  EXPECT_NEAR(fitted.median_bytes, 9'000, 200);
  EXPECT_NEAR(fitted.sigma, 1.1, 0.03);
  EXPECT_NEAR(fitted.tail_exponent, 1.3, 0.05);
}

TEST(SizeModel, FitOfEqualSizesIsThatSize) {
  const std::vector<std::uint64_t> sizes(100, 16'384);
  const SizeModel fitted = fit_sizes(sizes);
  EXPECT_EQ(fitted.size_for(UINT64_MAX / 2), 16'384u);
  EXPECT_NEAR(fitted.quantile(0.95), 16'384, 200);
}

}  // namespace
}  // namespace secondsight::loadtest
