#include "admission/admission_policy.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/admission/keys.h"

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;
using test::Keys;

constexpr SteadyTime kStart{1h};

AdmissionSettings settings_of(PolicyName policy) {
  AdmissionSettings settings;
  settings.policy = policy;
  settings.expected_keys = 1000;
  settings.window = 10s;
  return settings;
}

TEST(AdmissionPolicy, VerdictsByPolicyAndSighting) {
  struct Case {
    PolicyName policy;
    Verdict first;
    Verdict second;
    bool first_admitted;
    bool second_admitted;
  };
  for (const Case& c : {
           Case{PolicyName::SecondSighting, Verdict::FirstSighting, Verdict::Repeat, false, true},
           Case{PolicyName::Always, Verdict::Always, Verdict::Always, true, true},
           Case{PolicyName::Never, Verdict::Never, Verdict::Never, false, false},
       }) {
    const auto policy = make_policy(settings_of(c.policy), kStart);
    Keys keys(1);
    for (int i = 0; i < 100; ++i) {
      const Fingerprint key = keys.next();
      policy->prefetch(key);
      EXPECT_EQ(policy->peek(key), c.first);
      EXPECT_EQ(policy->peek(key), c.first) << "a look is no sighting";
      const Verdict first = policy->sight(key);
      EXPECT_EQ(policy->peek(key), c.second);
      const Verdict second = policy->sight(key);
      EXPECT_EQ(first, c.first);
      EXPECT_EQ(second, c.second);
      EXPECT_EQ(admits(first), c.first_admitted);
      EXPECT_EQ(admits(second), c.second_admitted);
    }
  }
}

TEST(AdmissionPolicy, SecondSightingForgetsAfterTwoWindows) {
  const auto policy = make_policy(settings_of(PolicyName::SecondSighting), kStart);
  const Fingerprint key = Keys(2).at(0);
  SteadyTime now = kStart;
  const auto run = [&](SteadyTime::duration time) {
    for (const SteadyTime end = now + time; now < end;) policy->maintain(now += 50ms);
  };
  EXPECT_EQ(policy->sight(key), Verdict::FirstSighting);
  run(10s);
  EXPECT_EQ(policy->sight(key), Verdict::Repeat);
  run(21s);
  EXPECT_EQ(policy->sight(key), Verdict::FirstSighting);
  EXPECT_EQ(policy->status(now).rotations_by_age, 3U);
}

TEST(AdmissionPolicy, OnlyTheFilterHasAStatus) {
  EXPECT_EQ(make_policy(settings_of(PolicyName::Always), kStart)->status(kStart).memory_bytes, 0U);
  EXPECT_EQ(make_policy(settings_of(PolicyName::Never), kStart)->status(kStart).memory_bytes, 0U);
  const auto policy = make_policy(settings_of(PolicyName::SecondSighting), kStart);
  policy->sight(Keys(3).at(0));
  const FilterStatus status = policy->status(kStart + 3s);
  EXPECT_EQ(status.memory_bytes, 2U << 20U);
  EXPECT_EQ(status.marked_keys, 1U);
  EXPECT_GT(status.fill, 0);
  EXPECT_EQ(status.window_age, 3s);
}

TEST(AdmissionPolicy, SenselessSettingsAreRefusedWithTheReason) {
  AdmissionSettings settings = settings_of(PolicyName::SecondSighting);
  settings.false_positive_rate = 1e-9;
  EXPECT_THROW(make_policy(settings, kStart), std::invalid_argument);
  settings = settings_of(PolicyName::SecondSighting);
  settings.expected_keys = 0;
  EXPECT_THROW(make_policy(settings, kStart), std::invalid_argument);
  settings = settings_of(PolicyName::SecondSighting);
  settings.window = 0ms;
  EXPECT_THROW(make_policy(settings, kStart), std::invalid_argument);
  settings.window = std::chrono::milliseconds::max();
  EXPECT_THROW(make_policy(settings, kStart), std::invalid_argument);
}

TEST(AdmissionPolicy, AFilterThatDoesNotFitIsBadAlloc) {
  AdmissionSettings settings = settings_of(PolicyName::SecondSighting);
  settings.expected_keys = std::uint64_t{1} << 40U;  // petabytes at this rate
  settings.false_positive_rate = 1e-5;
  EXPECT_THROW(make_policy(settings, kStart), std::bad_alloc);
}

}  // namespace
}  // namespace secondsight::admission
