#include "admission/nth_sighting.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/admission/keys.h"

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;
using test::Keys;
using test::test_seed;

constexpr SteadyTime kStart{1h};
constexpr SteadyTime::duration kWindow = 10s;
// So roomy that a false answer among the keys of a test is out of question: 1e-12 and less.
constexpr FilterSize kRoomy{.line_count = 1U << 14U, .keys_per_generation = 1U << 13U};

NthSighting roomy(unsigned sightings) {
  return {kRoomy, kWindow, kStart, sightings};
}

/// What the i-th of `n` sightings is told, from 1.
Verdict expected(unsigned i, unsigned n) {
  if (i == 1) return Verdict::FirstSighting;
  return i < n ? Verdict::FewSightings : Verdict::Repeat;
}

TEST(NthSighting, AdmitsTheNthAndWhateverComesAfter) {
  for (unsigned n = 2; n <= 8; ++n) {
    NthSighting policy = roomy(n);
    EXPECT_EQ(policy.sightings_needed(), n);
    Keys keys(n);
    for (int k = 0; k < 100; ++k) {
      const Fingerprint key = keys.next();
      policy.prefetch(key);
      for (unsigned i = 1; i <= n + 2; ++i) {
        EXPECT_EQ(policy.peek(key, 5), expected(i, n));
        EXPECT_EQ(policy.peek(key, std::nullopt), expected(i, n)) << "a look is no sighting";
        EXPECT_EQ(policy.sight(key, std::nullopt), expected(i, n)) << i << " of " << n;
      }
    }
  }
}

TEST(NthSighting, WhatIsInMemoryIsOneSightingOnly) {
  EXPECT_TRUE(roomy(2).admits_known(Verdict::FirstSighting));
  EXPECT_FALSE(roomy(3).admits_known(Verdict::FirstSighting));
  EXPECT_FALSE(roomy(3).admits_known(Verdict::FewSightings));
  EXPECT_TRUE(roomy(3).admits_known(Verdict::Repeat));
}

TEST(NthSighting, TellsTheMemoryAndTheRotationsOfAllFilters) {
  const FilterStatus one = roomy(2).status(kStart);
  NthSighting policy = roomy(4);
  EXPECT_EQ(policy.status(kStart).memory_bytes, 3 * one.memory_bytes);
  policy.sight(Keys(1).at(0), std::nullopt);
  policy.sight(Keys(1).at(0), std::nullopt);
  EXPECT_EQ(policy.status(kStart).marked_keys, 1U) << "of the first filter";
  for (SteadyTime now = kStart; now <= kStart + kWindow + 1s; now += 50ms) policy.maintain(now);
  EXPECT_EQ(policy.status(kStart + kWindow + 1s).rotations_by_age, 3U);
}

/// Gaps up to the window, rotations by age and by fill at any time between: never a refusal that
/// comes too late.
TEST(NthSighting, NoKeyIsRefusedAtItsNthSighting) {
  constexpr unsigned kSightings = 4;
  constexpr auto kTick = 50ms;
  constexpr std::uint64_t kStrangersInATick = 100;  // so that the first filter rotates by fill too
  struct Follower {
    Fingerprint key;
    unsigned sightings = 0;
    SteadyTime due;
  };
  std::mt19937_64 random(test_seed());
  // A generation ends by fill too, and may then end a mark's window early: by age alone the gap may
  // be the whole window, by fill as many ticks as 31/32 of its keys take.
  for (const bool by_fill : {false, true}) {
    const FilterSize size{.line_count = kRoomy.line_count,
                          .keys_per_generation = by_fill ? 4'000 : std::uint64_t{1} << 40U};
    NthSighting policy(size, kWindow, kStart, kSightings);
    const auto ticks_max = static_cast<std::uint64_t>(by_fill ? 30 : kWindow / kTick);
    Keys strangers(by_fill ? 2 : 3);
    Keys own(4);
    std::vector<Follower> followers(20);
    for (Follower& follower : followers) follower = {own.next(), 0, kStart};
    std::uint64_t admitted = 0;
    for (SteadyTime now = kStart; now < kStart + 200s; now += kTick) {
      policy.maintain(now);
      for (std::uint64_t i = 0; by_fill && i < kStrangersInATick; ++i)
        policy.sight(strangers.next(), std::nullopt);
      for (Follower& follower : followers) {
        if (now < follower.due) continue;
        const Verdict verdict = policy.sight(follower.key, std::nullopt);
        ++follower.sightings;
        if (follower.sightings == kSightings) {
          ASSERT_EQ(verdict, Verdict::Repeat) << "seed " << test_seed();
          ++admitted;
          follower = {own.next(), 0, now};
        }
        follower.due = now + kTick * (random() % (ticks_max + 1));
      }
    }
    const FilterStatus status = policy.status(kStart + 200s);
    EXPECT_GT(admitted, 100U);
    EXPECT_GT(by_fill ? status.rotations_by_fill : status.rotations_by_age, 10U);
  }
}

TEST(NthSighting, ForgetsWhatIsNotSeenForTwoWindows) {
  NthSighting policy = roomy(3);
  const Fingerprint key = Keys(5).at(0);
  policy.sight(key, std::nullopt);
  EXPECT_EQ(policy.sight(key, std::nullopt), Verdict::FewSightings);
  for (SteadyTime now = kStart; now < kStart + 2 * kWindow + 2s; now += 50ms) policy.maintain(now);
  EXPECT_EQ(policy.sight(key, std::nullopt), Verdict::FirstSighting);
  EXPECT_EQ(policy.sight(key, std::nullopt), Verdict::FewSightings);
  EXPECT_EQ(policy.sight(key, std::nullopt), Verdict::Repeat);
}

/// A stranger needs a false answer of each filter, a key seen once of all but the first; and these
/// are independent. With one hash for all filters the second answer would follow from the first.
TEST(NthSighting, TheRatesOfFalseAnswersMultiply) {
  constexpr FilterSize kFull{.line_count = 1U << 12U, .keys_per_generation = 1U << 30U};
  constexpr std::uint64_t kKeysPerLine = 48;
  NthSighting policy(kFull, kWindow, kStart, 3);
  Keys keys(6);
  for (std::uint64_t i = 0; i < kKeysPerLine * kFull.line_count; ++i) {
    const Fingerprint key = keys.next();
    for (int sighting = 0; sighting < 3; ++sighting) policy.sight(key, std::nullopt);
  }
  const double rate = false_positive_rate(kKeysPerLine);
  ASSERT_GT(rate, 0.02);
  // Within 5 sigma, and 5 % for how unevenly these very keys fill the lines.
  const auto expect_rate = [](std::uint64_t count, std::uint64_t of, double expected) {
    const auto n = static_cast<double>(of);
    EXPECT_NEAR(static_cast<double>(count) / n, expected,
                5 * std::sqrt(expected / n) + 0.05 * expected)
        << "seed " << test_seed();
  };
  constexpr std::uint64_t kStrangers = 1'000'000;
  Keys strangers(7);
  std::uint64_t admitted = 0;
  std::uint64_t known = 0;
  for (std::uint64_t i = 0; i < kStrangers; ++i) {
    const Verdict verdict = policy.peek(strangers.next(), std::nullopt);
    admitted += verdict == Verdict::Repeat ? 1U : 0U;
    known += verdict != Verdict::FirstSighting ? 1U : 0U;
  }
  expect_rate(known, kStrangers, rate);
  expect_rate(admitted, kStrangers, rate * rate);
  EXPECT_NEAR(policy.status(kStart).false_positive_rate, rate * rate, 0.1 * rate * rate);

  constexpr std::uint64_t kOnce = 4'000;  // few, so that the filters stay as full as they are
  Keys once(8);
  std::uint64_t early = 0;
  for (std::uint64_t i = 0; i < kOnce; ++i) {
    const Fingerprint key = once.next();
    if (policy.sight(key, std::nullopt) != Verdict::FirstSighting) continue;
    early += policy.peek(key, std::nullopt) == Verdict::Repeat ? 1U : 0U;
  }
  expect_rate(early, kOnce, rate);
}

}  // namespace
}  // namespace secondsight::admission
