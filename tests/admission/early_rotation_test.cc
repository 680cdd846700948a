#include "admission/early_rotation.h"

#include <gtest/gtest.h>

#include "admission/two_generation_filter.h"
#include "tests/admission/keys.h"

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;

constexpr SteadyTime kStart{1h};

AdmissionSettings settings() {
  AdmissionSettings admission;
  admission.expected_keys = 1'000'000;
  admission.window = 24h;
  return admission;
}

FilterStatus after(std::uint64_t rotations_by_fill, SteadyTime::duration last_generation) {
  FilterStatus status;
  status.rotations_by_fill = rotations_by_fill;
  status.last_generation = last_generation;
  return status;
}

TEST(EarlyRotation, TellsHowLongAGenerationLastedAndWhatWouldFit) {
  EarlyRotationWatch watch(settings());
  EXPECT_FALSE(watch.look(after(0, 0h), kStart));
  const auto early = watch.look(after(1, 6h), kStart + 6h);
  ASSERT_TRUE(early);
  EXPECT_EQ(early->lasted, 6h);
  EXPECT_EQ(early->expected_keys, 4'000'000U);
  EXPECT_EQ(early->rotations, 1U);
  EXPECT_FALSE(watch.look(after(1, 6h), kStart + 12h)) << "told already";
}

TEST(EarlyRotation, TellsOnceAnHourAndCountsWhatCameBetween) {
  EarlyRotationWatch watch(settings());
  EXPECT_FALSE(watch.look(after(0, 0h), kStart));
  EXPECT_TRUE(watch.look(after(1, 10min), kStart + 10min));
  for (std::uint64_t i = 2; i < 7; ++i) {
    EXPECT_FALSE(watch.look(after(i, 10min), kStart + i * 10min)) << i;
  }
  const auto early = watch.look(after(7, 10min), kStart + 70min);
  ASSERT_TRUE(early);
  EXPECT_EQ(early->rotations, 6U);
}

TEST(EarlyRotation, IsSilentWhereThePlanWasAboutRight) {
  EarlyRotationWatch watch(settings());
  EXPECT_FALSE(watch.look(after(0, 0h), kStart));
  EXPECT_FALSE(watch.look(after(1, 18h + 1s), kStart + 18h + 1s));
  EXPECT_TRUE(watch.look(after(2, 18h), kStart + 36h)) << "three quarters";
}

TEST(EarlyRotation, TakesWhatARestartBroughtForOld) {
  EarlyRotationWatch watch(settings());
  EXPECT_FALSE(watch.look(after(3, 1h), kStart));
  EXPECT_FALSE(watch.look(after(3, 1h), kStart + 1h));
  EXPECT_FALSE(watch.look(after(4, 0h), kStart + 2h)) << "no time that could be told";
  EXPECT_TRUE(watch.look(after(5, 1ns), kStart + 3h));
}

TEST(EarlyRotation, FollowsARealFilterUnderFourTimesThePlannedKeys) {
  const AdmissionSettings plan = [] {
    AdmissionSettings small = settings();
    small.expected_keys = 20'000;
    return small;
  }();
  TwoGenerationFilter filter(size_filter(plan.expected_keys, 0.01), plan.window, kStart);
  EarlyRotationWatch watch(plan);
  test::Keys keys(600);
  std::optional<EarlyRotation> told;
  for (SteadyTime now = kStart; now < kStart + 24h && !told; now += 1min) {
    for (int i = 0; i < 56; ++i) filter.sight(keys.next());  // 80,640 a day
    filter.maintain(now);
    told = watch.look(filter.status(now), now);
  }
  ASSERT_TRUE(told);
  EXPECT_NEAR(static_cast<double>(told->expected_keys), 80'640, 1'000);
}

}  // namespace
}  // namespace secondsight::admission
