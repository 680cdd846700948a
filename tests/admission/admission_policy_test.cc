#include "admission/admission_policy.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "admission/two_generation_filter.h"
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
    std::vector<Verdict> verdicts;  // of the first sightings of a key; the last one's stays
  };
  using enum Verdict;
  const std::vector<Case> cases{
      {PolicyName::SecondSighting, {FirstSighting, Repeat}},
      {PolicyName::Always, {Always}},
      {PolicyName::Never, {Never}},
      {PolicyName::Probability, {Chance}},  // with a chance of 1
      {PolicyName::SizeProbability, {NotChosen}},
      {PolicyName::NthSighting, {FirstSighting, FewSightings, Repeat}},
      {PolicyName::ClassicBloom, {FirstSighting, Repeat}},
      {PolicyName::ScalableBloom, {FirstSighting, Repeat}},
      {PolicyName::Cuckoo, {FirstSighting, Repeat}},
      {PolicyName::Exact, {FirstSighting, Repeat}},
  };
  ASSERT_EQ(cases.size(), kPolicyNames.size());
  for (const Case& c : cases) {
    SCOPED_TRACE(to_string(c.policy));
    AdmissionSettings settings = settings_of(c.policy);
    settings.probability = 1;
    constexpr std::uint64_t kHuge = std::uint64_t{1} << 40U;  // of which none is drawn
    const auto policy = make_policy(settings, kStart);
    Keys keys(1);
    for (int i = 0; i < 100; ++i) {
      const Fingerprint key = keys.next();
      policy->prefetch(key);
      for (std::size_t sighting = 0; sighting < 4; ++sighting) {
        const Verdict expected = c.verdicts[std::min(sighting, c.verdicts.size() - 1)];
        EXPECT_EQ(policy->peek(key, kHuge), expected);
        EXPECT_EQ(policy->peek(key, kHuge), expected) << "a look is no sighting";
        EXPECT_EQ(policy->sight(key, kHuge), expected);
      }
    }
  }
}

TEST(AdmissionPolicy, VerdictsThatAdmitAndTheirNames) {
  struct Row {
    Verdict verdict;
    std::string_view name;
    bool is_admitted;
  };
  using enum Verdict;
  for (const Row& row :
       {Row{Always, "always", true}, Row{Repeat, "repeat", true}, Row{Chance, "chance", true},
        Row{FirstSighting, "first-sighting", false}, Row{FewSightings, "few-sightings", false},
        Row{NotChosen, "not-chosen", false}, Row{Never, "never", false},
        Row{Undecided, "by-chance", false}}) {
    EXPECT_EQ(to_string(row.verdict), row.name);
    EXPECT_EQ(admits(row.verdict), row.is_admitted) << row.name;
  }
}

TEST(AdmissionPolicy, OnlyTheFilterWhoseMarksOutliveTheProcessIsGivenOut) {
  for (const PolicyName name : kPolicyNames) {
    const auto policy = make_policy(settings_of(name), kStart);
    EXPECT_EQ(policy->filter() != nullptr, name == PolicyName::SecondSighting) << to_string(name);
  }
  const auto policy = make_policy(settings_of(PolicyName::SecondSighting), kStart);
  policy->filter()->sight(Keys(4).at(0));
  EXPECT_EQ(policy->peek(Keys(4).at(0), std::nullopt), Verdict::Repeat) << "it is the policy's own";
}

TEST(AdmissionPolicy, CuckooAndExactForgetWhatIsPurged) {
  for (const PolicyName name : kPolicyNames) {
    if (!remembers_sightings(name) || name == PolicyName::NthSighting) continue;
    const auto policy = make_policy(settings_of(name), kStart);
    const Fingerprint key = Keys(5).at(0);
    policy->sight(key, std::nullopt);
    policy->forget(key);
    const bool forgets = name == PolicyName::Cuckoo || name == PolicyName::Exact;
    EXPECT_EQ(policy->sight(key, std::nullopt), forgets ? Verdict::FirstSighting : Verdict::Repeat)
        << to_string(name);
  }
}

TEST(AdmissionPolicy, DrawsAreThoseOfTheSeed) {
  AdmissionSettings settings = settings_of(PolicyName::Probability);
  settings.probability = 0.5;
  const auto draws_of = [&](std::optional<std::uint64_t> seed) {
    const auto policy = make_policy(settings, kStart, seed);
    std::vector<Verdict> draws;
    for (int i = 0; i < 200; ++i) draws.push_back(policy->sight({}, std::nullopt));
    return draws;
  };
  EXPECT_EQ(draws_of(1), draws_of(1));
  EXPECT_NE(draws_of(1), draws_of(2));
  EXPECT_NE(draws_of(std::nullopt), draws_of(std::nullopt)) << "alike once in 2^200";
}

TEST(AdmissionPolicy, SecondSightingForgetsAfterTwoWindows) {
  const auto policy = make_policy(settings_of(PolicyName::SecondSighting), kStart);
  const Fingerprint key = Keys(2).at(0);
  SteadyTime now = kStart;
  const auto run = [&](SteadyTime::duration time) {
    for (const SteadyTime end = now + time; now < end;) policy->maintain(now += 50ms);
  };
  EXPECT_EQ(policy->sight(key, std::nullopt), Verdict::FirstSighting);
  run(10s);
  EXPECT_EQ(policy->sight(key, std::nullopt), Verdict::Repeat);
  run(21s);
  EXPECT_EQ(policy->sight(key, std::nullopt), Verdict::FirstSighting);
  EXPECT_EQ(policy->status(now).rotations_by_age, 3U);
}

TEST(AdmissionPolicy, OnlyWhatRemembersHasAStatus) {
  for (const PolicyName name : kPolicyNames) {
    const auto policy = make_policy(settings_of(name), kStart);
    policy->sight(Keys(3).at(0), std::nullopt);
    const FilterStatus status = policy->status(kStart + 3s);
    const bool remembers = remembers_sightings(name);
    EXPECT_EQ(status.memory_bytes > 0, remembers) << to_string(name);
    EXPECT_EQ(status.marked_keys, remembers ? 1U : 0U) << to_string(name);
  }
  const auto policy = make_policy(settings_of(PolicyName::SecondSighting), kStart);
  policy->sight(Keys(3).at(0), std::nullopt);
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
  for (const double probability : {0.0, -0.1, 1.1, std::nan("")}) {
    settings = settings_of(PolicyName::Probability);
    settings.probability = probability;
    EXPECT_THROW(make_policy(settings, kStart), std::invalid_argument) << probability;
  }
  settings = settings_of(PolicyName::SizeProbability);
  settings.size_scale_bytes = 0;
  EXPECT_THROW(make_policy(settings, kStart), std::invalid_argument);
  for (const unsigned sightings : {0U, 1U, 9U}) {
    settings = settings_of(PolicyName::NthSighting);
    settings.sightings = sightings;
    EXPECT_THROW(make_policy(settings, kStart), std::invalid_argument) << sightings;
  }
}

TEST(AdmissionPolicy, AFilterThatDoesNotFitIsBadAlloc) {
  AdmissionSettings settings = settings_of(PolicyName::SecondSighting);
  settings.expected_keys = std::uint64_t{1} << 40U;  // petabytes at this rate
  settings.false_positive_rate = 1e-5;
  EXPECT_THROW(make_policy(settings, kStart), std::bad_alloc);
}

}  // namespace
}  // namespace secondsight::admission
