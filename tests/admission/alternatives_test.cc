// What holds for every structure that can stand in for the two-generation filter.
#include "tests/admission/alternatives.h"

#include <algorithm>
#include <deque>
#include <random>

#include <gtest/gtest.h>

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;
using test::Keys;
using test::kWindow;
using test::Timed;

// So few keys for so much room that no key is taken for another: at most one in 5000 strangers at
// a hundredth of the planned keys.
constexpr std::uint64_t kRoomy = 200'000;
constexpr std::uint64_t kFew = 1000;

template <typename T>
class Alternative : public testing::Test {};
TYPED_TEST_SUITE(Alternative, test::Alternatives, test::AlternativeNames);

TYPED_TEST(Alternative, FirstThenRepeat) {
  Timed<TypeParam> t(kRoomy);
  Keys keys(1);
  for (std::uint64_t i = 0; i < kFew; ++i) {
    const Fingerprint key = keys.next();
    t.filter.prefetch(key);
    EXPECT_EQ(t.filter.peek(key), Sighting::First);
    EXPECT_EQ(t.filter.sight(key), Sighting::First);
    EXPECT_EQ(t.filter.peek(key), Sighting::Repeat);
    EXPECT_EQ(t.filter.sight(key), Sighting::Repeat);
  }
  EXPECT_EQ(t.filter.status(t.now).marked_keys, kFew) << "a repeat is no further mark";
}

TYPED_TEST(Alternative, ExtremeHashesStayInside) {
  Timed<TypeParam> t(kRoomy);
  for (const std::uint64_t hash : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    EXPECT_EQ(t.filter.sight({hash, 0}), Sighting::First);
    EXPECT_EQ(t.filter.sight({hash, 0}), Sighting::Repeat);
  }
}

// A journal's mark is Fingerprint::high alone: who is replayed from there is the same key.
TYPED_TEST(Alternative, OnlyTheFingerprintsUpperHalfCounts) {
  Timed<TypeParam> t(kRoomy);
  const Fingerprint key = Keys(2).at(0);
  t.filter.sight({key.high, 0});
  EXPECT_EQ(t.filter.peek(key), Sighting::Repeat);
}

TYPED_TEST(Alternative, OneRotationKeepsAndTheSecondForgets) {
  Timed<TypeParam> t(kRoomy);
  Keys keys(3);
  for (std::uint64_t i = 0; i < kFew; ++i) t.filter.sight(keys.next());
  t.rotate();
  EXPECT_EQ(t.count_repeats(keys, 0, kFew), kFew);
  EXPECT_EQ(t.filter.status(t.now).marked_keys, 0U) << "nothing is copied into the new generation";
  t.rotate();
  EXPECT_EQ(t.count_repeats(keys, 0, kFew), 0U);
}

TYPED_TEST(Alternative, RepeatFoundInPreviousLivesOnInCurrent) {
  Timed<TypeParam> t(kRoomy);
  Keys keys(4);
  for (std::uint64_t i = 0; i < kFew; ++i) t.filter.sight(keys.next());
  for (int rotation = 0; rotation < 5; ++rotation) {
    t.rotate();
    for (std::uint64_t i = 0; i < kFew; ++i) {
      ASSERT_EQ(t.filter.sight(keys.at(i)), Sighting::Repeat) << "rotation " << rotation;
    }
    EXPECT_EQ(t.filter.status(t.now).marked_keys, kFew);
  }
}

TYPED_TEST(Alternative, PeekRemembersNothing) {
  Timed<TypeParam> t(kRoomy);
  const Fingerprint key = Keys(5).at(0);
  t.filter.sight(key);
  t.rotate();
  EXPECT_EQ(t.filter.peek(key), Sighting::Repeat);
  t.rotate();
  EXPECT_EQ(t.filter.peek(key), Sighting::First);
}

TYPED_TEST(Alternative, RotatesByAgeAtTheWindowAndNotBefore) {
  Timed<TypeParam> t(kRoomy);
  t.pass(kWindow - 1ns);
  EXPECT_EQ(t.rotations(), 0U);
  EXPECT_EQ(t.filter.status(t.now).window_age, kWindow - 1ns);
  t.pass(1ns);
  EXPECT_EQ(t.filter.status(t.now).rotations_by_age, 1U);
  EXPECT_EQ(t.filter.status(t.now).rotations_by_fill, 0U);
  EXPECT_EQ(t.filter.status(t.now).window_age, 0s);
  EXPECT_EQ(t.filter.status(t.now).last_generation, kWindow);
  t.pass(3s);  // the first call after the rotation: the new generation's window starts here
  t.pass(kWindow - 1ns);
  EXPECT_EQ(t.rotations(), 1U);
  t.pass(1ns);
  EXPECT_EQ(t.rotations(), 2U);
}

TYPED_TEST(Alternative, RotatesByFillAtItsKeysAndNotBefore) {
  constexpr std::uint64_t kExpected = 2000;
  constexpr std::uint64_t kFull = test::keys_until_full<TypeParam>(kExpected);
  Timed<TypeParam> t(kExpected);
  Keys keys(6);
  std::uint64_t marks = 0;
  const auto mark_up_to = [&](std::uint64_t wanted) {
    while (marks < wanted) {
      if (keys.taken() % 100 == 0) t.pass(0s);
      // A stranger taken for a repeat is no mark.
      marks += t.filter.sight(keys.next()) == Sighting::First ? 1U : 0U;
    }
  };
  mark_up_to(kFull - 1);
  t.pass(100s);
  EXPECT_EQ(t.rotations(), 0U);
  mark_up_to(kFull);
  const std::uint64_t marked = keys.taken();
  t.pass(0s);
  const FilterStatus status = t.filter.status(t.now);
  EXPECT_EQ(status.rotations_by_fill, 1U);
  EXPECT_EQ(status.rotations_by_age, 0U);
  EXPECT_EQ(status.last_generation, 100s) << "the shortened window is reported";
  EXPECT_EQ(t.count_repeats(keys, 0, marked), marked);
}

TYPED_TEST(Alternative, RepeatsDoNotFillAGeneration) {
  Timed<TypeParam> t(kFew + 1);
  Keys keys(7);
  for (int round = 0; round < 100; ++round) {
    for (std::uint64_t i = 0; i < kFew; ++i) t.filter.sight(keys.at(i));
    t.pass(1s);
  }
  EXPECT_EQ(t.rotations(), 0U);
}

// However rarely maintain() is called: a key outlives a generation's marks.
TYPED_TEST(Alternative, NothingIsLostWithinAGenerationByFillAtAnyTick) {
  constexpr std::uint64_t kExpected = 3200;
  constexpr std::uint64_t kGap = kExpected - 1;  // marks in between
  for (const std::uint64_t marks_per_call : {7U, 50U, 500U, 3200U}) {
    Timed<TypeParam> t(kExpected);
    Keys keys(20 + marks_per_call);
    std::uint64_t lost = 0;
    while (keys.taken() < 5 * test::keys_until_full<TypeParam>(kExpected)) {
      t.filter.sight(keys.next());
      if (keys.taken() % marks_per_call == 0) t.pass(0s);
      if (keys.taken() <= kGap) continue;
      lost += t.filter.peek(keys.at(keys.taken() - 1 - kGap)) == Sighting::First ? 1U : 0U;
    }
    EXPECT_EQ(lost, 0U) << marks_per_call << " marks between two calls";
    EXPECT_GE(t.rotations(), 4U);
  }
}

// Random traffic under random ticks, against what the contract says: within a window known, after
// two windows and two ticks forgotten. Few enough keys that all rotations are by age.
TYPED_TEST(Alternative, RemembersAWindowAndForgetsAfterTwo) {
  constexpr auto kLongestTick = kWindow / 5;
  struct Sighted {
    std::uint64_t number;
    SteadyTime at;
  };
  std::mt19937_64 random(test::test_seed());
  Timed<TypeParam> t(kRoomy);
  Keys keys(8);
  std::deque<Sighted> sighted;
  std::uint64_t within = 0, lost = 0, expired = 0, kept = 0;
  for (int tick = 0; tick < 400; ++tick) {
    for (std::uint64_t i = random() % 8; i > 0; --i) {
      sighted.push_back({keys.taken(), t.now});
      t.filter.sight(keys.next());
    }
    t.pass(kLongestTick * static_cast<int>(random() % 1000) / 1000);
    for (const Sighted& s : sighted) {
      const bool known = t.filter.peek(keys.at(s.number)) == Sighting::Repeat;
      if (t.now - s.at < kWindow) {
        ++within;
        lost += known ? 0U : 1U;
      } else if (t.now - s.at > 2 * kWindow + 4 * kLongestTick) {
        ++expired;
        kept += known ? 1U : 0U;
      }
    }
  }
  EXPECT_EQ(lost, 0U) << "of " << within << ", seed " << test::test_seed();
  EXPECT_LE(kept, expired / 500) << "of " << expired << ", seed " << test::test_seed();
  EXPECT_GE(t.filter.status(t.now).rotations_by_age, 20U);
  EXPECT_EQ(t.filter.status(t.now).rotations_by_fill, 0U);
}

TYPED_TEST(Alternative, MemoryIsWhatWasPredicted) {
  for (const std::uint64_t expected : {1000U, 100'000U, 3'000'000U}) {
    Timed<TypeParam> t(expected, 0.01);
    const auto predicted = static_cast<double>(TypeParam::predict(expected, 0.01).memory_bytes);
    const auto is = static_cast<double>(t.filter.status(t.now).memory_bytes);
    EXPECT_NEAR(is / predicted, 1, 0.05) << expected << " keys: " << is << " bytes";
  }
}

}  // namespace
}  // namespace secondsight::admission
