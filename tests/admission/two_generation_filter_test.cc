#include "admission/two_generation_filter.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include "tests/admission/keys.h"

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;
using test::Keys;

constexpr auto kWindow = 1000s;
constexpr SteadyTime kStart{1h};
// Far below the planned fill: false repeats stay out of tests that are about something else.
constexpr FilterSize kRoomy{32768, 100'000};

// A filter under a clock that is moved by hand.
struct Timed {
  explicit Timed(const FilterSize& size = kRoomy, SteadyTime::duration window = kWindow)
      : filter(size, window, kStart) {}

  void pass(SteadyTime::duration time) { filter.maintain(now += time); }
  /// Calls maintain() at a standstill until no sweep is under way.
  void finish_sweep() {
    while (filter.sweeping()) filter.maintain(now);
  }
  /// One whole rotation by age.
  void rotate() {
    finish_sweep();
    const auto before = rotations();
    while (rotations() == before) pass(kWindow / 2);
    finish_sweep();
  }
  std::uint64_t rotations() const {
    const FilterStatus status = filter.status(now);
    return status.rotations_by_age + status.rotations_by_fill;
  }

  TwoGenerationFilter filter;
  SteadyTime now = kStart;
};

std::uint64_t count_repeats(const TwoGenerationFilter& filter, const Keys& keys,
                            std::uint64_t count) {
  std::uint64_t repeats = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    repeats += filter.peek(keys.at(i)) == Sighting::Repeat ? 1U : 0U;
  }
  return repeats;
}

TEST(TwoGenerationFilter, FirstThenRepeat) {
  Timed t;
  Keys keys(1);
  for (int i = 0; i < 1000; ++i) {
    const Fingerprint key = keys.next();
    EXPECT_EQ(t.filter.peek(key), Sighting::First);
    EXPECT_EQ(t.filter.sight(key), Sighting::First);
    EXPECT_EQ(t.filter.peek(key), Sighting::Repeat);
    EXPECT_EQ(t.filter.sight(key), Sighting::Repeat);
  }
  EXPECT_EQ(t.filter.status(t.now).marked_keys, 1000U);
}

TEST(TwoGenerationFilter, ExtremeHashesStayInside) {
  Timed t;
  for (const std::uint64_t hash : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    EXPECT_LT(FilterAddress::of(hash, kRoomy.line_count).line, kRoomy.line_count);
    t.filter.sight({hash, 0});
    EXPECT_EQ(t.filter.sight({hash, 0}), Sighting::Repeat);
  }
}

TEST(TwoGenerationFilter, OneRotationKeepsAndTheSecondForgets) {
  Timed t;
  Keys keys(2);
  for (int i = 0; i < 1000; ++i) t.filter.sight(keys.next());
  t.rotate();
  EXPECT_EQ(count_repeats(t.filter, keys, 1000), 1000U);
  EXPECT_EQ(t.filter.status(t.now).marked_keys, 0U) << "nothing is copied into the new generation";
  t.rotate();
  EXPECT_EQ(count_repeats(t.filter, keys, 1000), 0U);
}

TEST(TwoGenerationFilter, RepeatFoundInPreviousLivesOnInCurrent) {
  Timed t;
  Keys keys(3);
  for (int i = 0; i < 1000; ++i) t.filter.sight(keys.next());
  for (int rotation = 0; rotation < 5; ++rotation) {
    t.rotate();
    for (std::uint64_t i = 0; i < 1000; ++i) {
      ASSERT_EQ(t.filter.sight(keys.at(i)), Sighting::Repeat) << "rotation " << rotation;
    }
    EXPECT_EQ(t.filter.status(t.now).marked_keys, 1000U);
  }
}

TEST(TwoGenerationFilter, PeekRemembersNothing) {
  Timed t;
  Keys keys(4);
  t.filter.sight(keys.at(0));
  t.rotate();
  EXPECT_EQ(t.filter.peek(keys.at(0)), Sighting::Repeat);
  t.rotate();
  EXPECT_EQ(t.filter.peek(keys.at(0)), Sighting::First);
}

TEST(TwoGenerationFilter, RotatesByAgeAtTheWindowAndNotBefore) {
  Timed t;
  t.pass(kWindow - 1ns);
  EXPECT_EQ(t.rotations(), 0U);
  EXPECT_EQ(t.filter.status(t.now).window_age, kWindow - 1ns);
  t.pass(1ns);
  EXPECT_EQ(t.filter.status(t.now).rotations_by_age, 1U);
  EXPECT_EQ(t.filter.status(t.now).rotations_by_fill, 0U);
  EXPECT_EQ(t.filter.status(t.now).window_age, 0s);
  EXPECT_EQ(t.filter.status(t.now).last_generation, kWindow);
  t.finish_sweep();
  t.pass(0s);  // the first call after the sweep: the new generation's window starts here
  t.pass(kWindow - 1ns);
  EXPECT_EQ(t.rotations(), 1U);
  t.pass(1ns);
  EXPECT_EQ(t.rotations(), 2U);
}

TEST(TwoGenerationFilter, RotatesByFillAtTheExpectedKeysAndNotBefore) {
  Timed t;
  Keys keys(5);
  while (keys.taken() < kRoomy.keys_per_generation - 1) t.filter.sight(keys.next());
  t.pass(100s);
  EXPECT_EQ(t.rotations(), 0U);
  while (keys.taken() < kRoomy.keys_per_generation) t.filter.sight(keys.next());
  t.pass(0s);
  const FilterStatus status = t.filter.status(t.now);
  EXPECT_EQ(status.rotations_by_fill, 1U);
  EXPECT_EQ(status.rotations_by_age, 0U);
  EXPECT_EQ(status.last_generation, 100s) << "the shortened window is reported";
  t.finish_sweep();
  EXPECT_EQ(count_repeats(t.filter, keys, keys.taken()), keys.taken());
}

TEST(TwoGenerationFilter, RepeatsDoNotFillAGeneration) {
  Timed t(FilterSize{32768, 1000});
  Keys keys(6);
  for (int round = 0; round < 100; ++round) {
    for (std::uint64_t i = 0; i < 999; ++i) t.filter.sight(keys.at(i));
    t.pass(1s);
  }
  EXPECT_EQ(t.rotations(), 0U);
}

TEST(TwoGenerationFilter, SweepIsPacedByCalls) {
  Timed t(kRoomy, std::chrono::hours(100'000));
  t.pass(std::chrono::hours(100'000));
  std::uint64_t calls = 1;
  for (; t.filter.sweeping(); ++calls) t.pass(50ms);
  EXPECT_EQ(calls, TwoGenerationFilter::kSweepSteps);
}

TEST(TwoGenerationFilter, SweepTakesNoMoreThanA64thOfTheWindow) {
  Timed t;
  t.pass(kWindow);
  const SteadyTime began = t.now;
  while (t.filter.sweeping()) t.pass(1s);
  EXPECT_LE(t.now - began, kWindow / 64 + 1s);
}

TEST(TwoGenerationFilter, SweepKeepsUpWithMarks) {
  Timed t;
  t.pass(kWindow);
  ASSERT_TRUE(t.filter.sweeping());
  Keys keys(7);
  for (std::uint64_t i = 0; i < kRoomy.keys_per_generation / 64 + 1; ++i) {
    t.filter.sight(keys.next());
  }
  t.pass(0s);
  EXPECT_FALSE(t.filter.sweeping());
}

// A whole generation's worth of marks between two calls, in the middle of a sweep.
TEST(TwoGenerationFilter, RotationDueDuringASweepWaitsForItsEnd) {
  Timed t;
  Keys keys(8);
  t.pass(kWindow);
  ASSERT_TRUE(t.filter.sweeping());
  while (keys.taken() < kRoomy.keys_per_generation) t.filter.sight(keys.next());
  t.pass(0s);
  EXPECT_FALSE(t.filter.sweeping()) << "the sweep ends within the call";
  EXPECT_EQ(t.filter.status(t.now).rotations_by_fill, 0U);
  t.pass(0s);
  EXPECT_EQ(t.filter.status(t.now).rotations_by_fill, 0U)
      << "the marks are younger than a generation";
  EXPECT_EQ(count_repeats(t.filter, keys, keys.taken()), keys.taken());
  while (keys.taken() < 2 * kRoomy.keys_per_generation) t.filter.sight(keys.next());
  t.pass(0s);
  EXPECT_EQ(t.filter.status(t.now).rotations_by_fill, 1U);
}

// However rarely maintain() is called: a key outlives 31/32 of a generation's marks.
TEST(TwoGenerationFilter, NothingIsLostWithinAGenerationByFillAtAnyTick) {
  constexpr std::uint64_t kGeneration = 3200;
  for (const std::uint64_t marks_per_call : {7U, 50U, 500U, 3200U, 10'000U}) {
    Timed t(FilterSize{32768, kGeneration});
    Keys keys(20 + marks_per_call);
    constexpr std::uint64_t kGap = kGeneration / 32 * 31 - 1;
    std::uint64_t lost = 0;
    while (keys.taken() < 20 * std::max(kGeneration, marks_per_call)) {
      t.filter.sight(keys.next());
      if (keys.taken() % marks_per_call == 0) t.pass(0s);
      if (keys.taken() <= kGap) continue;
      lost += t.filter.peek(keys.at(keys.taken() - 1 - kGap)) == Sighting::First ? 1U : 0U;
    }
    EXPECT_EQ(lost, 0U) << marks_per_call << " marks between two calls";
    EXPECT_GE(t.rotations(), 4U);
  }
}

TEST(TwoGenerationFilter, NothingIsLostAtAnyPointOfASweep) {
  Timed t(kRoomy, std::chrono::hours(100'000));
  const auto window = std::chrono::hours(100'000);
  Keys keys(9);
  constexpr std::uint64_t kBatch = 50;
  for (int rotation = 0; rotation < 4; ++rotation) {
    // Marked in the generation that ends, and in every stage of the sweep that follows.
    std::vector<Fingerprint> marked;
    const auto mark = [&] {
      for (std::uint64_t i = 0; i < kBatch; ++i) {
        marked.push_back(keys.next());
        t.filter.sight(marked.back());
      }
    };
    const auto lost = [&] {
      return std::count_if(marked.begin(), marked.end(), [&](const Fingerprint& key) {
        return t.filter.peek(key) == Sighting::First;
      });
    };
    mark();
    t.pass(window);
    std::uint64_t stage = 0;
    for (; t.filter.sweeping(); ++stage) {
      mark();
      ASSERT_EQ(lost(), 0) << "rotation " << rotation << " stage " << stage;
      t.pass(0s);
    }
    EXPECT_GT(stage, 10U);
    // They outlive the whole next generation, up to the call that begins the rotation after it.
    t.pass(0s);
    t.pass(window - 1ns);
    ASSERT_EQ(lost(), 0) << "rotation " << rotation;
  }
}

// A line's retiring half is empty from the moment its marks could be mistaken for the new
// generation's.
TEST(TwoGenerationFilter, RetiredKeysAreForgottenLineByLine) {
  Timed t(kRoomy, std::chrono::hours(100'000));
  Keys keys(10);
  for (int i = 0; i < 20'000; ++i) t.filter.sight(keys.next());
  t.pass(std::chrono::hours(100'000));
  t.finish_sweep();
  t.pass(0s);
  t.pass(std::chrono::hours(100'000));  // the rotation that retires them: one stretch is swept
  for (std::uint64_t step = 1; step <= TwoGenerationFilter::kSweepSteps; ++step) {
    const double expected = 1 - static_cast<double>(step) / TwoGenerationFilter::kSweepSteps;
    EXPECT_NEAR(static_cast<double>(count_repeats(t.filter, keys, 20'000)) / 20'000, expected,
                0.02);
    t.pass(0s);
  }
  EXPECT_FALSE(t.filter.sweeping());
}

// A key sighted at a random moment of a period T is remembered for what is left of the generation
// and one generation more: at gap g the recall is 1 up to T, then 2 - g/T, and 0 from 2 T on.
TEST(TwoGenerationFilter, RecallAtAGapFollowsThePeriod) {
  constexpr int kTicks = 1000;  // in a window
  constexpr int kWindows = 20;
  constexpr std::uint64_t kKeysPerTick = 3;
  Timed t(FilterSize{32768, 1'000'000});
  Keys keys(11);
  struct Gap {
    double periods;
    std::uint64_t asked = 0;
    std::uint64_t known = 0;
  };
  std::vector<Gap> gaps{{0.1}, {0.5}, {0.9}, {1.0}, {1.1}, {1.25}, {1.5}, {1.75}, {1.9}, {2.2}};
  for (std::uint64_t tick = 0; tick < kTicks * kWindows; ++tick) {
    for (Gap& gap : gaps) {
      const auto back = static_cast<std::uint64_t>(gap.periods * kTicks);
      if (tick < back) continue;
      for (std::uint64_t i = 0; i < kKeysPerTick; ++i) {
        const Fingerprint key = keys.at((tick - back) * kKeysPerTick + i);
        ++gap.asked;
        gap.known += back > 0 && t.filter.peek(key) == Sighting::Repeat ? 1U : 0U;
      }
    }
    for (std::uint64_t i = 0; i < kKeysPerTick; ++i) {
      ASSERT_EQ(t.filter.sight(keys.next()), Sighting::First);
    }
    t.pass(kWindow / kTicks);
  }
  for (const Gap& gap : gaps) {
    const double recall = static_cast<double>(gap.known) / static_cast<double>(gap.asked);
    if (gap.periods <= 1) {
      EXPECT_EQ(gap.known, gap.asked) << "gap " << gap.periods << " T";
    } else {
      // The period is the window and the sweep, a 64th more.
      const double expected = std::max(0.0, 2 - gap.periods / (1 + 1.0 / 64));
      EXPECT_NEAR(recall, expected, 0.02) << "gap " << gap.periods << " T";
      EXPECT_NEAR(recall, std::max(0.0, 2 - gap.periods), 0.05) << "gap " << gap.periods << " T";
    }
  }
}

TEST(TwoGenerationFilter, StatusTellsFillAndRateOfBothGenerations) {
  const FilterSize size{65536, 10'000'000};
  Timed t(size);
  EXPECT_EQ(t.filter.status(t.now).fill, 0);
  EXPECT_EQ(t.filter.status(t.now).false_positive_rate, 0);
  EXPECT_EQ(t.filter.status(t.now).memory_bytes, 4U << 20U);
  constexpr double kPrevious = 30;
  constexpr double kCurrent = 20;
  const auto lines = static_cast<double>(size.line_count);
  Keys keys(12);
  while (static_cast<double>(keys.taken()) < kPrevious * lines) t.filter.sight(keys.next());
  EXPECT_NEAR(t.filter.status(t.now).fill / expected_fill(kPrevious), 1, 0.01);
  EXPECT_NEAR(t.filter.status(t.now).false_positive_rate / false_positive_rate(kPrevious), 1, 0.05);
  t.rotate();
  const std::uint64_t before = keys.taken();
  while (static_cast<double>(keys.taken() - before) < kCurrent * lines) t.filter.sight(keys.next());
  const FilterStatus status = t.filter.status(t.now);
  EXPECT_NEAR(status.fill / expected_fill(kCurrent), 1, 0.01);
  EXPECT_NEAR(status.false_positive_rate / combined_false_positive_rate(kPrevious, kCurrent), 1,
              0.05);
}

}  // namespace
}  // namespace secondsight::admission
