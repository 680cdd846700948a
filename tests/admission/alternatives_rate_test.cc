// The measured rates of false repeats against the formulas, for every alternative structure.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/admission/alternatives.h"

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;
using test::Keys;
using test::kWindow;
using test::Timed;

// Not far from filling its whole huge pages in each structure: the rates are high enough to
// measure.
constexpr std::uint64_t kExpected = 1'500'000;

/// Within 5 %, which is five standard deviations of a count of 10,000.
void expect_rate(std::uint64_t repeats, std::uint64_t asked, double formula) {
  const double expected = formula * static_cast<double>(asked);
  ASSERT_GE(expected, 9'900) << "too few to tell 5 %";
  EXPECT_NEAR(static_cast<double>(repeats) / expected, 1, 0.05)
      << "measured " << static_cast<double>(repeats) / static_cast<double>(asked) << ", formula "
      << formula << ", seed " << test::test_seed();
}

template <typename T>
void expect_peeks(const Timed<T>& t, const Keys& strangers, double formula) {
  const auto asked = static_cast<std::uint64_t>(10'000 / formula);
  expect_rate(t.count_repeats(strangers, 0, asked), asked, formula);
}

template <typename T>
class AlternativeRate : public testing::Test {};
// The exact set has no rate to measure: ExactSet.TakesNoStrangerForARepeat.
using Filters = testing::Types<ClassicFilter, ScalableFilter, CuckooFilter>;
TYPED_TEST_SUITE(AlternativeRate, Filters, test::AlternativeNames);

// As in use: strangers only, rotation by age, maintained 200 times in a generation of exactly the
// planned keys. Every stranger is a probe of the state the filter has just then, so the share of
// repeats is the average over windows.
TYPED_TEST(AlternativeRate, AverageOverWholeWindowsIsTheFormulas) {
  constexpr int kTicks = 200;
  constexpr std::uint64_t kPerTick = kExpected / (kTicks + 1);  // the window starts one tick late
  const double configured = 0.05;
  const WindowRates formula = TypeParam::predict(kExpected, configured).rates;
  EXPECT_LE(formula.average, configured);
  Timed<TypeParam> t(kExpected, configured);
  Keys keys(1);
  const auto run_a_generation = [&] {
    std::uint64_t repeats = 0;
    for (const std::uint64_t before = t.rotations(); t.rotations() == before;) {
      for (std::uint64_t i = 0; i < kPerTick; ++i) {
        repeats += t.filter.sight(keys.next()) == Sighting::Repeat ? 1U : 0U;
      }
      t.pass(kWindow / kTicks);
    }
    return repeats;
  };
  run_a_generation();  // with an empty previous
  const std::uint64_t before = keys.taken();
  std::uint64_t repeats = 0;
  while (static_cast<double>(keys.taken() - before) * formula.average < 10'000) {
    repeats += run_a_generation();
  }
  EXPECT_EQ(t.filter.status(t.now).rotations_by_fill, 0U);
  expect_rate(repeats, keys.taken() - before, formula.average);
}

TYPED_TEST(AlternativeRate, WorstInstantIsTheFormulas) {
  for (const double configured : {0.2, 0.05}) {
    Timed<TypeParam> t(kExpected, configured);
    Keys keys(2);
    while (keys.taken() < kExpected) t.filter.sight(keys.next());
    t.rotate();
    while (keys.taken() < 2 * kExpected) t.filter.sight(keys.next());
    const double formula = TypeParam::predict(kExpected, configured).rates.worst;
    expect_peeks(t, Keys(3), formula);
    // What status() reads from its sample of lines scatters by a percent itself.
    EXPECT_NEAR(t.filter.status(t.now).false_positive_rate / formula, 1, 0.06);
  }
}

// Cuckoo: one generation at several loads and widths of tag.
TEST(CuckooRate, OneGenerationFollowsItsLoad) {
  for (const double configured : {0.1, 0.03, 0.01}) {
    Timed<CuckooFilter> t(kExpected, configured);
    const CuckooSize& size = t.filter.size();
    Keys keys(4);
    for (const double share : {0.5, 1.0}) {
      while (static_cast<double>(keys.taken()) < share * static_cast<double>(kExpected)) {
        t.filter.sight(keys.next());
      }
      // Full against nothing is the worst instant at half the load.
      const double formula = cuckoo_window_rates(size.tag_bits, share * size.load() / 2).worst;
      expect_peeks(t, Keys(5), formula);
    }
  }
}

// Scalable: 7 times the planned keys in each generation.
TEST(ScalableRate, KeepsItsRateWhenBothGenerationsHaveGrown) {
  constexpr std::uint64_t kFew = 400'000;
  constexpr double kConfigured = 0.2;
  constexpr unsigned kSlices = 3;
  const ScalableSize size = size_scalable(kFew, kConfigured);
  Timed<ScalableFilter> t(kFew, kConfigured);
  Keys keys(6);
  for (int generation = 0; generation < 2; ++generation) {
    t.rotate();
    const std::uint64_t full = keys.taken() + size.keys(kSlices) - 1;
    while (keys.taken() < full) {
      t.filter.sight(keys.next());
      if (keys.taken() % 256 == 0) t.pass(0s);
    }
    ASSERT_EQ(t.filter.slice_count(), kSlices);
  }
  const WindowRates formula = scalable_window_rates(size, kSlices);
  EXPECT_LE(formula.average, kConfigured);
  expect_peeks(t, Keys(7), formula.worst);
  EXPECT_EQ(t.filter.status(t.now).rotations_by_fill, 0U);
}

}  // namespace
}  // namespace secondsight::admission
