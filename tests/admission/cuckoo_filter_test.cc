// What only the cuckoo filter does: forgets one key, and can be full.
#include "admission/cuckoo_filter.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/admission/alternatives.h"

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;
using test::Keys;
using test::Timed;
using TimedCuckoo = Timed<CuckooFilter>;

TEST(CuckooFilter, ForgetsAKeyInBothGenerations) {
  TimedCuckoo t(100'000);
  Keys keys(1);
  for (std::uint64_t i = 0; i < 300; ++i) t.filter.sight(keys.next());
  t.rotate();
  for (std::uint64_t i = 100; i < 400; ++i) t.filter.sight(keys.at(i));  // 100..299 are in both
  for (std::uint64_t i = 50; i < 350; ++i) EXPECT_TRUE(t.filter.forget(keys.at(i)));
  EXPECT_EQ(t.count_repeats(keys, 0, 50), 50U);
  EXPECT_EQ(t.count_repeats(keys, 50, 350), 0U);
  EXPECT_EQ(t.count_repeats(keys, 350, 400), 50U);
  EXPECT_EQ(t.filter.status(t.now).marked_keys, 50U);
  EXPECT_FALSE(t.filter.forget(keys.at(100))) << "there is nothing left to forget";
  EXPECT_FALSE(t.filter.forget(keys.at(1000))) << "never sighted";
  EXPECT_EQ(t.filter.sight(keys.at(100)), Sighting::First);
}

// The price of forgetting, as documented: a stranger that looks like a marked key takes its tag.
TEST(CuckooFilter, ForgettingAFalsePositiveTakesAnothersTagAlong) {
  constexpr std::uint64_t kMarked = 200'000;
  TimedCuckoo t(kMarked + 1, 0.25);
  Keys keys(2);
  while (keys.taken() < kMarked) t.filter.sight(keys.next());
  ASSERT_EQ(t.count_repeats(keys, 0, kMarked), kMarked);
  const Keys strangers(3);
  std::uint64_t i = 0;
  while (t.filter.peek(strangers.at(i)) == Sighting::First) ++i;
  EXPECT_TRUE(t.filter.forget(strangers.at(i)));
  // Keys that share a tag and its buckets share one mark, so more than one may be gone.
  const std::uint64_t gone = kMarked - t.count_repeats(keys, 0, kMarked);
  EXPECT_GE(gone, 1U);
  EXPECT_LE(gone, 4U);
}

TEST(CuckooFilter, ForgottenKeysMakeRoom) {
  constexpr std::uint64_t kExpected = 1000;
  TimedCuckoo t(kExpected);
  Keys keys(4);
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t first = keys.taken();
    for (std::uint64_t i = 0; i < kExpected - 1; ++i) t.filter.sight(keys.next());
    t.pass(1s);
    for (std::uint64_t i = first; i < keys.taken(); ++i) t.filter.forget(keys.at(i));
    EXPECT_EQ(t.filter.status(t.now).fill, 0);
  }
  EXPECT_EQ(t.rotations(), 0U);
}

// Every width of tag, at the load it was sized for.
TEST(CuckooFilter, ThePlannedKeysFitWhateverTheRate) {
  constexpr std::uint64_t kExpected = 400'000;
  unsigned widths = 0;
  for (const double rate : {0.25, 0.1, 0.02, 0.005, 0.001, 0.0003}) {
    TimedCuckoo t(kExpected, rate);
    widths |= 1U << t.filter.size().tag_bits;
    EXPECT_LE(cuckoo_window_rates(t.filter.size().tag_bits, t.filter.size().load()).average, rate);
    Keys keys(5);
    // Strangers taken for repeats are no marks.
    while (t.filter.status(t.now).marked_keys < kExpected - 1) {
      for (std::uint64_t i = t.filter.status(t.now).marked_keys; i < kExpected - 1; ++i) {
        t.filter.sight(keys.next());
      }
      t.pass(0s);
    }
    EXPECT_EQ(t.rotations(), 0U) << "rate " << rate << ": full before its time";
    EXPECT_EQ(t.filter.unplaced_marks(), 0U) << "rate " << rate;
    EXPECT_EQ(t.count_repeats(keys, 0, keys.taken()), keys.taken()) << "rate " << rate;
  }
  EXPECT_EQ(widths, 1U << 6U | 1U << 8U | 1U << 10U | 1U << 12U | 1U << 14U | 1U << 16U);
}

// More keys than there is room for, without one call of maintain().
TEST(CuckooFilter, AFullTableKeepsEveryMarkAndEndsItsGenerationAtTheNextCall) {
  TimedCuckoo t(100'000, 0.001);
  const CuckooSize& size = t.filter.size();
  const std::uint64_t slots = size.shard_count * size.buckets_per_shard * kTagsPerBucket;
  Keys keys(6);
  while (t.filter.unplaced_marks() == 0) {
    ASSERT_LT(keys.taken(), 2 * slots);
    t.filter.sight(keys.next());
  }
  const std::uint64_t marked = keys.taken() - 1;  // the last one found no room
  EXPECT_GE(static_cast<double>(marked), 0.95 * static_cast<double>(slots));
  EXPECT_EQ(t.count_repeats(keys, 0, marked), marked);

  // Further marks are counted as they are refused, and push nobody out.
  while (keys.taken() < 3 * slots) t.filter.sight(keys.next());
  EXPECT_EQ(t.count_repeats(keys, 0, marked), marked);
  const std::uint64_t unknown = keys.taken() - t.count_repeats(keys, 0, keys.taken());
  EXPECT_EQ(unknown, t.filter.unplaced_marks());

  EXPECT_EQ(t.rotations(), 0U);
  t.pass(0s);
  EXPECT_EQ(t.filter.status(t.now).rotations_by_fill, 1U);
  EXPECT_EQ(t.count_repeats(keys, 0, marked), marked) << "they are in previous now";
  t.pass(0s);
  EXPECT_EQ(t.rotations(), 1U) << "the new generation is empty";
}

// A shard can be full before expected_keys are marked; only its generation ends sooner then.
TEST(CuckooFilter, AFullTableIsEmptyAgainAfterTwoRotations) {
  TimedCuckoo t(100'000, 0.001);
  Keys keys(7);
  while (t.filter.unplaced_marks() == 0) t.filter.sight(keys.next());
  t.pass(0s);
  t.rotate();
  const FilterStatus status = t.filter.status(t.now);
  EXPECT_EQ(status.fill, 0);
  EXPECT_EQ(status.false_positive_rate, 0);
  EXPECT_EQ(t.count_repeats(keys, 0, keys.taken()), 0U);
}

TEST(CuckooFilter, RatesThatItsTagsCannotKeepAreExplained) {
  EXPECT_EQ(explain_bad_cuckoo_rate(kLowestCuckooRate), std::nullopt);
  EXPECT_EQ(explain_bad_cuckoo_rate(0.01), std::nullopt);
  const auto fault = explain_bad_cuckoo_rate(0.00001);
  ASSERT_TRUE(fault.has_value());
  EXPECT_NE(fault->find("1e-05 is below 0.0001"), std::string::npos) << *fault;
}

// The definition, worked out the long way.
TEST(CuckooMath, WindowRateIsTheAverageOverTheFilling) {
  for (const unsigned bits : {6U, 10U, 16U}) {
    for (const double load : {0.1, 0.5, 0.93}) {
      const double miss = 1 - 1 / (std::exp2(bits) - 1);
      double sum = 0;
      constexpr int kSteps = 1000;
      for (int i = 0; i < kSteps; ++i) {
        sum += 1 - std::pow(miss, 8 * load * (1 + (i + 0.5) / kSteps));
      }
      const WindowRates rates = cuckoo_window_rates(bits, load);
      EXPECT_NEAR(rates.average / (sum / kSteps), 1, 1e-6);
      EXPECT_NEAR(rates.worst, 1 - std::pow(miss, 16 * load), 1e-12);
    }
  }
}

}  // namespace
}  // namespace secondsight::admission
