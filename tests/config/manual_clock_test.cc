#include "tests/support/manual_clock.h"

#include <gtest/gtest.h>

namespace secondsight::test {
namespace {

using std::chrono::seconds;

TEST(ManualClock, StandsStillUntilItIsTold) {
  ManualClock clock;
  const WallTime wall = clock.wall();
  const SteadyTime steady = clock.steady();
  EXPECT_EQ(wall, std::chrono::sys_days{std::chrono::year{2026} / 1 / 1});
  EXPECT_EQ(clock.wall(), wall);

  clock.advance(seconds{90});
  EXPECT_EQ(clock.wall() - wall, seconds{90});
  EXPECT_EQ(clock.steady() - steady, seconds{90});

  clock.set_wall(wall - seconds{10});
  EXPECT_EQ(clock.wall() - wall, seconds{-10});
  EXPECT_EQ(clock.steady() - steady, seconds{90});
}

}  // namespace
}  // namespace secondsight::test
