// What only the scalable filter does: grows.
#include "admission/scalable_filter.h"

#include <gtest/gtest.h>

#include "tests/admission/alternatives.h"

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;
using test::Keys;
using test::kWindow;
using test::Timed;
using TimedScalable = Timed<ScalableFilter>;

// Marks so many strangers, maintained often.
void mark(TimedScalable& t, Keys& keys, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i % 64 == 0) t.pass(0s);
    t.filter.sight(keys.next());
  }
  t.pass(0s);
}

// At four times the planned keys every other structure here forgets within a quarter of the window.
TEST(ScalableFilter, KeepsTheWholeWindowAtFourTimesThePlannedKeys) {
  constexpr std::uint64_t kExpected = 10'000;
  TimedScalable t(kExpected, 0.01);
  Keys keys(1);
  mark(t, keys, 4 * kExpected);
  t.pass(kWindow - 1ns);
  EXPECT_EQ(t.rotations(), 0U);
  EXPECT_EQ(t.count_repeats(keys, 0, keys.taken()), keys.taken());
  t.pass(1ns);
  EXPECT_EQ(t.filter.status(t.now).rotations_by_age, 1U);
  EXPECT_EQ(t.count_repeats(keys, 0, keys.taken()), keys.taken());
  t.pass(0s);
  t.pass(kWindow);
  EXPECT_LE(t.count_repeats(keys, 0, keys.taken()), keys.taken() / 50);
}

TEST(ScalableFilter, AddsASliceWhenTheNewestIsFullAndNotBefore) {
  constexpr std::uint64_t kExpected = 1500;  // slices of 1600, 3200, 6400 and 12800 keys
  TimedScalable t(kExpected, 0.0001);
  Keys keys(2);
  std::uint64_t taken = 0;
  for (std::size_t slices = 1; slices <= kScalableSlices; ++slices) {
    const std::uint64_t full = t.filter.size().keys(static_cast<unsigned>(slices));
    EXPECT_EQ(full, 1600 * ((1U << slices) - 1));
    while (keys.taken() < full - 1) t.filter.sight(keys.next());
    ASSERT_EQ(t.filter.status(t.now).marked_keys, full - 1) << "no stranger was taken for a repeat";
    t.pass(0s);
    EXPECT_EQ(t.filter.slice_count(), slices);
    EXPECT_EQ(t.rotations(), 0U);
    t.filter.sight(keys.next());
    t.pass(0s);
    taken = keys.taken();
  }
  EXPECT_EQ(taken, kScalableGrowth * kExpected);
  EXPECT_EQ(t.filter.status(t.now).rotations_by_fill, 1U) << "the bound of its growth";
  EXPECT_EQ(t.filter.slice_count(), 1U);
  EXPECT_EQ(t.count_repeats(keys, 0, taken), taken);
}

TEST(ScalableFilter, MemoryFollowsTheLoad) {
  constexpr std::uint64_t kExpected = 100'000;
  TimedScalable t(kExpected, 0.01);
  const ScalableSize size = t.filter.size();
  const auto memory = [&t] { return t.filter.status(t.now).memory_bytes; };
  EXPECT_EQ(memory(), size.memory_bytes(1));
  Keys keys(3);
  mark(t, keys, 8 * kExpected);
  ASSERT_EQ(t.filter.slice_count(), 4U);
  EXPECT_EQ(memory(), size.memory_bytes(4) / 2 + size.memory_bytes(1) / 2);
  t.rotate();
  mark(t, keys, 8 * kExpected);
  EXPECT_EQ(memory(), size.memory_bytes(4)) << "both generations have grown";
  t.rotate();
  t.rotate();
  EXPECT_EQ(memory(), size.memory_bytes(1)) << "and the load is over";
}

TEST(ScalableMath, TheRateIsKeptHoweverFarBothGenerationsGrow) {
  for (const double rate : {0.25, 0.1, 0.01, 0.001, 0.00001}) {
    for (const std::uint64_t expected : {1000U, 5'000'000U, 400'000'000U}) {
      const ScalableSize size = size_scalable(expected, rate);
      double before = scalable_planned_rates(size).average;
      for (unsigned slices = 1; slices <= kScalableSlices; ++slices) {
        const WindowRates rates = scalable_window_rates(size, slices);
        EXPECT_LE(rates.average, rate) << expected << " keys, " << slices << " slices";
        EXPECT_GE(rates.average, before) << expected << " keys, " << slices << " slices";
        EXPECT_GE(rates.worst, rates.average);
        before = rates.average;
      }
      // No memory is wasted on a rate far better than asked for, where huge pages do not force it.
      EXPECT_TRUE(expected < 400'000'000U || before >= 0.9 * rate) << rate << ": " << before;
    }
  }
}

}  // namespace
}  // namespace secondsight::admission
