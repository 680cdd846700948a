#include "proxy/origin_choice.h"

#include <vector>

#include <gtest/gtest.h>

namespace secondsight::proxy {
namespace {

using std::chrono::seconds;

const SteadyTime kStart{std::chrono::hours(1)};

std::size_t pick(OriginChoice& choice, SteadyTime now, std::vector<bool> tried) {
  return choice.pick(tried, now).value_or(99);
}

TEST(OriginChoice, GoesRound) {
  OriginChoice choice(3);
  const std::vector<bool> none(3);
  std::vector<std::size_t> order;
  for (int i = 0; i < 6; ++i) order.push_back(pick(choice, kStart, none));
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 0, 1, 2}));
}

TEST(OriginChoice, TriesEachOnce) {
  OriginChoice choice(3);
  EXPECT_EQ(pick(choice, kStart, {true, false, true}), 1U);
  EXPECT_EQ(pick(choice, kStart, {true, true, true}), 99U);
}

TEST(OriginChoice, SkipsOneThatBacksOff) {
  OriginChoice choice(2);
  choice.failed(0, kStart);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(pick(choice, kStart, {false, false}), 1U);
  // Only when no other is left.
  EXPECT_EQ(pick(choice, kStart, {false, true}), 0U);
  EXPECT_EQ(pick(choice, kStart + seconds(1), {false, false}), 1U);
  EXPECT_EQ(pick(choice, kStart + seconds(1), {false, false}), 0U);
}

TEST(OriginChoice, UsesAllWhenAllBackOff) {
  OriginChoice choice(2);
  choice.failed(0, kStart);
  choice.failed(1, kStart);
  EXPECT_EQ(pick(choice, kStart, {false, false}), 0U);
  EXPECT_EQ(pick(choice, kStart, {false, false}), 1U);
}

TEST(OriginChoice, IsDownWhileAllBackOffButForOneWhoTries) {
  OriginChoice choice(2);
  EXPECT_FALSE(choice.is_down(kStart));
  choice.failed(0, kStart);
  EXPECT_FALSE(choice.is_down(kStart)) << "the other may do";
  choice.failed(1, kStart);
  EXPECT_TRUE(choice.is_down(kStart));
  const SteadyTime later = kStart + seconds(1);
  EXPECT_FALSE(choice.is_down(later)) << "one tries the first";
  EXPECT_FALSE(choice.is_down(later)) << "one tries the second";
  EXPECT_TRUE(choice.is_down(later)) << "the others wait for what they find";
  choice.failed(0, later);
  choice.failed(1, later);
  EXPECT_TRUE(choice.is_down(later + seconds(1))) << "twice as long now";
  choice.reached(1);
  EXPECT_FALSE(choice.is_down(later));
}

TEST(OriginChoice, BacksOffTwiceAsLongUpToALimit) {
  OriginChoice choice(2);
  SteadyTime now = kStart;
  for (const int expected : {1, 2, 4, 8, 16, 30, 30}) {
    choice.failed(0, now);
    choice.failed(0, now);  // together with the first: no longer for it
    const auto last_moment = now + seconds(expected) - std::chrono::milliseconds(1);
    EXPECT_EQ(pick(choice, last_moment, {false, false}), 1U) << expected;
    EXPECT_EQ(pick(choice, last_moment, {false, false}), 1U) << expected;
    now += seconds(expected);
    EXPECT_EQ(pick(choice, now, {false, false}), 0U) << expected;
  }
  choice.reached(0);
  choice.failed(0, now);
  EXPECT_EQ(pick(choice, now + seconds(1), {false, true}), 0U);
}

}  // namespace
}  // namespace secondsight::proxy
