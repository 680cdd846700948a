// Merging another filter's bits, and giving marks back.
#include <chrono>

#include <gtest/gtest.h>

#include "admission/bloom_math.h"
#include "admission/two_generation_filter.h"
#include "tests/admission/keys.h"

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;
using test::Keys;

constexpr FilterSize kSize{20'000, 1'000'000};
constexpr auto kWindow = 1000s;
constexpr double kAnyRate = 1;

std::vector<std::uint64_t> bits_of(const TwoGenerationFilter& filter, Generation which) {
  std::vector<std::uint64_t> words(filter.words_per_generation());
  filter.copy_generation(which, words);
  return words;
}

std::uint64_t known(const TwoGenerationFilter& filter, const Keys& keys, std::uint64_t count) {
  std::uint64_t repeats = 0;
  for (std::uint64_t i = 0; i < count; ++i)
    repeats += filter.peek(keys.at(i)) == Sighting::Repeat ? 1U : 0U;
  return repeats;
}

TwoGenerationFilter& sight(TwoGenerationFilter& filter, Keys& keys, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) filter.sight(keys.next());
  return filter;
}

// The union of two Bloom filters is the filter of the union of their sets, bit for bit.
TEST(FilterUnion, IsTheFilterOfAllKeys) {
  TwoGenerationFilter ours(kSize, kWindow, SteadyTime{});
  TwoGenerationFilter theirs(kSize, kWindow, SteadyTime{});
  TwoGenerationFilter both(kSize, kWindow, SteadyTime{});
  Keys a(1), b(2), a_again(1), b_again(2);
  sight(ours, a, 100'000).rotate_at_once(SteadyTime{});
  sight(theirs, b, 100'000);
  sight(sight(both, a_again, 100'000), b_again, 100'000);
  const auto merged = ours.merge_into_previous(bits_of(theirs, Generation::Current), kAnyRate);
  ASSERT_TRUE(merged && merged->is_merged);
  EXPECT_TRUE(bits_of(ours, Generation::Previous) == bits_of(both, Generation::Current));
  EXPECT_EQ(known(ours, a, 100'000), 100'000U);
  EXPECT_EQ(known(ours, b, 100'000), 100'000U);
}

TEST(FilterUnion, IsIdempotent) {
  TwoGenerationFilter ours(kSize, kWindow, SteadyTime{});
  TwoGenerationFilter theirs(kSize, kWindow, SteadyTime{});
  Keys b(2);
  sight(theirs, b, 100'000);
  const auto words = bits_of(theirs, Generation::Current);
  const auto first = ours.merge_into_previous(words, kAnyRate);
  ASSERT_TRUE(first);
  EXPECT_GT(first->new_bits, 0U);
  const auto before = bits_of(ours, Generation::Previous);
  const auto again = ours.merge_into_previous(words, kAnyRate);
  ASSERT_TRUE(again && again->is_merged);
  EXPECT_EQ(again->new_bits, 0U);
  EXPECT_TRUE(bits_of(ours, Generation::Previous) == before);
  // What brings nothing is no reason to refuse.
  EXPECT_TRUE(ours.merge_into_previous(words, 0)->is_merged);
}

TEST(FilterUnion, IsRefusedBeyondTheRateAndChangesNothing) {
  const FilterSize size = size_filter(1'000'000, 0.01);
  const double rate_max = false_positive_rate(keys_per_line_for(0.01));
  TwoGenerationFilter ours(size, kWindow, SteadyTime{});
  TwoGenerationFilter theirs(size, kWindow, SteadyTime{});
  Keys a(1), b(2);
  sight(ours, a, 900'000).rotate_at_once(SteadyTime{});
  sight(theirs, b, 900'000);
  const auto before = bits_of(ours, Generation::Previous);
  const auto merged = ours.merge_into_previous(bits_of(theirs, Generation::Current), rate_max);
  ASSERT_TRUE(merged);
  EXPECT_FALSE(merged->is_merged);
  const double keys_per_line = 1'800'000.0 / static_cast<double>(size.line_count);
  EXPECT_NEAR(merged->false_positive_rate / false_positive_rate(keys_per_line), 1, 0.03);
  EXPECT_GT(merged->false_positive_rate, rate_max);
  EXPECT_TRUE(bits_of(ours, Generation::Previous) == before);
}

// A full generation stays within the bound of what it was sized for.
TEST(FilterUnion, AFullGenerationIsTaken) {
  const FilterSize size = size_filter(1'000'000, 0.01);
  TwoGenerationFilter ours(size, kWindow, SteadyTime{});
  TwoGenerationFilter theirs(size, kWindow, SteadyTime{});
  Keys b(2);
  sight(theirs, b, 1'000'000);
  const auto merged = ours.merge_into_previous(bits_of(theirs, Generation::Current),
                                               false_positive_rate(keys_per_line_for(0.01)));
  EXPECT_TRUE(merged && merged->is_merged);
}

TEST(FilterUnion, WaitsForASweep) {
  TwoGenerationFilter ours(kSize, kWindow, SteadyTime{});
  ours.maintain(SteadyTime{} + kWindow);
  ASSERT_TRUE(ours.sweeping());
  const std::vector<std::uint64_t> words(ours.words_per_generation());
  EXPECT_FALSE(ours.merge_into_previous(words, kAnyRate));
}

TEST(FilterUnion, IsForgottenWithThePreviousGeneration) {
  TwoGenerationFilter ours(kSize, kWindow, SteadyTime{});
  TwoGenerationFilter theirs(kSize, kWindow, SteadyTime{});
  Keys b(2);
  sight(theirs, b, 1000);
  ASSERT_TRUE(ours.merge_into_previous(bits_of(theirs, Generation::Current), kAnyRate));
  ours.rotate_at_once(SteadyTime{});
  EXPECT_EQ(known(ours, b, 1000), 0U);
}

// During a sweep each line's generations are told apart.
TEST(FilterUnion, ACopyDuringASweepTakesEachLineAsItIs) {
  TwoGenerationFilter filter(kSize, kWindow, SteadyTime{});
  Keys a(1), b(2);
  sight(filter, a, 50'000);
  const auto first = bits_of(filter, Generation::Current);
  filter.maintain(SteadyTime{} + kWindow);
  ASSERT_TRUE(filter.sweeping());
  const auto current = bits_of(filter, Generation::Current);
  const auto previous = bits_of(filter, Generation::Previous);
  std::uint64_t swept = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(current[i] | previous[i], first[i]);
    swept += previous[i] == first[i] && first[i] != 0 ? 1U : 0U;
  }
  EXPECT_GT(swept, 0U);
}

TEST(FilterReplay, IsWhatSightingWouldHaveBeen) {
  TwoGenerationFilter sighted(kSize, kWindow, SteadyTime{});
  TwoGenerationFilter replayed(kSize, kWindow, SteadyTime{});
  Keys keys(1);
  sighted.keep_marks();
  sight(sighted, keys, 10'000);
  std::vector<std::uint64_t> marks;
  EXPECT_EQ(sighted.take_marks(marks), 0U);
  EXPECT_EQ(replayed.replay(marks, SteadyTime{}), 0U);
  EXPECT_TRUE(bits_of(replayed, Generation::Current) == bits_of(sighted, Generation::Current));
  EXPECT_EQ(replayed.status(SteadyTime{}).marked_keys, sighted.status(SteadyTime{}).marked_keys);
}

TEST(FilterReplay, RotatesWhereMoreCameThanAGenerationHolds) {
  constexpr FilterSize kSmall{20'000, 8000};
  TwoGenerationFilter filter(kSmall, kWindow, SteadyTime{});
  const Keys keys(1);
  std::vector<std::uint64_t> marks;
  for (std::uint64_t i = 0; i < 30'000; ++i) marks.push_back(keys.at(i).high);
  EXPECT_EQ(filter.replay(marks, SteadyTime{}), 3U);
  EXPECT_LE(filter.marks_in_generation(), 9256U);
  std::uint64_t latest = 0;
  for (std::uint64_t i = 22'000; i < 30'000; ++i)
    latest += filter.peek(keys.at(i)) == Sighting::Repeat ? 1U : 0U;
  EXPECT_EQ(latest, 8000U);
}

TEST(FilterReplay, AGenerationThatBeganEarlierEndsEarlier) {
  TwoGenerationFilter filter(kSize, kWindow, SteadyTime{} + 5000s);
  filter.set_generation_start(SteadyTime{} + 4500s);
  EXPECT_EQ(filter.status(SteadyTime{} + 5000s).window_age, 500s);
  filter.maintain(SteadyTime{} + 5499s);
  EXPECT_EQ(filter.epoch(), 0U);
  filter.maintain(SteadyTime{} + 5500s);
  EXPECT_EQ(filter.epoch(), 1U);
}

}  // namespace
}  // namespace secondsight::admission
