// What only the exact set does: errs never, forgets one key, and takes more keys than planned.
#include "admission/exact_set.h"

#include <gtest/gtest.h>

#include "tests/admission/alternatives.h"

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;
using test::Keys;
using test::Timed;
using TimedExact = Timed<ExactSet>;

TEST(ExactSet, TakesNoStrangerForARepeat) {
  constexpr std::uint64_t kExpected = 200'000;
  TimedExact t(kExpected);
  Keys keys(1);
  while (keys.taken() < 10 * kExpected) {
    ASSERT_EQ(t.filter.sight(keys.next()), Sighting::First) << "key " << keys.taken();
    if (keys.taken() % 1000 == 0) t.pass(0s);
  }
  EXPECT_EQ(t.filter.status(t.now).rotations_by_fill, 10U);
  EXPECT_EQ(t.filter.unplaced_marks(), 0U);
}

TEST(ExactSet, ForgetsAKeyInBothGenerations) {
  TimedExact t(100'000);
  Keys keys(2);
  for (std::uint64_t i = 0; i < 300; ++i) t.filter.sight(keys.next());
  t.rotate();
  for (std::uint64_t i = 100; i < 400; ++i) t.filter.sight(keys.at(i));  // 100..299 are in both
  for (std::uint64_t i = 50; i < 350; ++i) EXPECT_TRUE(t.filter.forget(keys.at(i)));
  EXPECT_EQ(t.count_repeats(keys, 0, 50), 50U);
  EXPECT_EQ(t.count_repeats(keys, 50, 350), 0U);
  EXPECT_EQ(t.count_repeats(keys, 350, 400), 50U);
  EXPECT_EQ(t.filter.status(t.now).marked_keys, 50U);
  EXPECT_FALSE(t.filter.forget(keys.at(100))) << "there is nothing left to forget";
  EXPECT_EQ(t.filter.sight(keys.at(100)), Sighting::First);
}

// The reservation holds the planned keys in every shard, so that no sighting waits for a rehash.
TEST(ExactSet, ThePlannedKeysFitWithoutARehash) {
  for (const std::uint64_t expected : {50U, 1000U, 100'000U, 4'000'000U}) {
    TimedExact t(expected);
    const std::uint64_t memory = t.filter.status(t.now).memory_bytes;
    Keys keys(3);
    while (keys.taken() < expected) t.filter.sight(keys.next());
    EXPECT_EQ(t.filter.status(t.now).memory_bytes, memory) << expected << " keys";
  }
}

TEST(ExactSet, ABurstTakesMemoryAndGivesItBack) {
  constexpr std::uint64_t kExpected = 100'000;
  TimedExact t(kExpected);
  const std::uint64_t memory = t.filter.status(t.now).memory_bytes;
  Keys keys(4);
  while (keys.taken() < 4 * kExpected) t.filter.sight(keys.next());  // between two calls
  EXPECT_GT(t.filter.status(t.now).memory_bytes, memory * 3 / 2);
  EXPECT_EQ(t.count_repeats(keys, 0, keys.taken()), keys.taken());
  t.pass(0s);
  t.rotate();
  EXPECT_EQ(t.filter.status(t.now).memory_bytes, memory);
}

}  // namespace
}  // namespace secondsight::admission
