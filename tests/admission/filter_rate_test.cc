// The measured rate of false repeats against the formula.
#include <array>
#include <cmath>
#include <iostream>

#include <gtest/gtest.h>

#include "admission/bloom_math.h"
#include "admission/two_generation_filter.h"
#include "tests/admission/keys.h"

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;
using test::Keys;

constexpr SteadyTime kStart{1h};
constexpr auto kWindow = 1000s;
// The smallest filter, one that is no power of two, and one that no second-level cache holds, which
// takes its time and is tried at the planned fill only.
constexpr std::array<std::uint64_t, 3> kLineCounts{32768, 50'001, 400'003};
constexpr double kPlanned = 23.6;  // keys per line: 1 % on average over the window
bool is_tried(std::uint64_t lines, double keys_per_line) {
  return lines != kLineCounts.back() || keys_per_line == kPlanned;
}

void mark(TwoGenerationFilter& filter, Keys& keys, double keys_per_line) {
  const auto count = static_cast<std::uint64_t>(
      std::llround(keys_per_line * static_cast<double>(filter.size().line_count)));
  std::array<Fingerprint, 16> batch;
  for (std::uint64_t i = 0; i < count; i += batch.size()) {
    for (Fingerprint& key : batch) filter.prefetch(key = keys.next());
    for (const Fingerprint& key : batch) filter.sight(key);
  }
}

void rotate(TwoGenerationFilter& filter) {
  filter.maintain(kStart + kWindow);
  ASSERT_TRUE(filter.sweeping());
  while (filter.sweeping()) filter.maintain(kStart + kWindow);
}

struct Measured {
  double rate;
  double sigma;  // one standard deviation of rate / formula
};

// Asks strangers until the count of false repeats is precise enough for the bound.
Measured measure(const TwoGenerationFilter& filter, Keys& strangers, double formula, double sigma) {
  const auto asked = static_cast<std::uint64_t>(1 / (formula * sigma * sigma));
  std::uint64_t repeats = 0;
  for (std::uint64_t i = 0; i < asked; ++i) {
    repeats += filter.peek(strangers.next()) == Sighting::Repeat ? 1U : 0U;
  }
  // The lines themselves are a sample: their own rates scatter about as much as their mean.
  const double lines = static_cast<double>(filter.size().line_count);
  return {static_cast<double>(repeats) / static_cast<double>(asked),
          std::sqrt(sigma * sigma + 1.5 / lines)};
}

TEST(FilterRate, OneGenerationIsWithinThreePercentOfTheFormula) {
  RecordProperty("seed", std::to_string(test::test_seed()));
  std::uint64_t stream = 100;
  for (const std::uint64_t lines : kLineCounts) {
    for (const double keys_per_line : {18.0, kPlanned, 32.0, 45.0}) {
      if (!is_tried(lines, keys_per_line)) continue;
      TwoGenerationFilter filter({lines, 1'000'000'000}, kWindow, kStart);
      Keys keys(++stream);
      mark(filter, keys, keys_per_line);
      const double formula = false_positive_rate(keys_per_line);
      Keys strangers(++stream);
      const Measured measured = measure(filter, strangers, formula, 0.006);
      const double off = std::abs(measured.rate / formula - 1);
      EXPECT_LE(off, std::min(0.03, 4 * measured.sigma))
          << lines << " lines, " << keys_per_line << " keys each: measured " << measured.rate
          << ", formula " << formula << ", seed " << test::test_seed();
    }
  }
}

TEST(FilterRate, BothGenerationsAreWithinFivePercentOfTheFormula) {
  struct Case {
    double previous;
    double current;
  };
  std::uint64_t stream = 200;
  for (const std::uint64_t lines : kLineCounts) {
    for (const Case c :
         {Case{kPlanned, 0}, Case{kPlanned, 11.8}, Case{kPlanned, kPlanned}, Case{45, 30}}) {
      if (!is_tried(lines, c.current)) continue;
      TwoGenerationFilter filter({lines, 1'000'000'000}, kWindow, kStart);
      Keys keys(++stream);
      mark(filter, keys, c.previous);
      rotate(filter);
      mark(filter, keys, c.current);
      const double formula = combined_false_positive_rate(c.previous, c.current);
      Keys strangers(++stream);
      const Measured measured = measure(filter, strangers, formula, 0.008);
      const double off = std::abs(measured.rate / formula - 1);
      EXPECT_LE(off, std::min(0.05, 4 * measured.sigma))
          << lines << " lines, " << c.previous << "+" << c.current << " keys each: measured "
          << measured.rate << ", formula " << formula << ", seed " << test::test_seed();
    }
  }
}

// As in use: strangers only, rotation by fill, maintenance 200 times in a generation. Every
// stranger is a probe of the state the filter has just then, so the share of repeats is the average
// over windows.
TEST(FilterRate, AverageOverWholeWindowsKeepsTheConfiguredRate) {
  constexpr std::uint64_t kKeys = 2'000'000;
  constexpr double kRate = 0.01;
  const FilterSize size = size_filter(kKeys, kRate);
  TwoGenerationFilter filter(size, kWindow, kStart);
  Keys keys(300);
  const auto rotations = [&] { return filter.status(kStart).rotations_by_fill; };
  const auto run_to_rotation = [&](std::uint64_t count) {
    std::uint64_t repeats = 0;
    while (rotations() < count) {
      for (std::uint64_t i = 0; i < kKeys / 200; ++i) {
        repeats += filter.sight(keys.next()) == Sighting::Repeat ? 1U : 0U;
      }
      filter.maintain(kStart);
    }
    return repeats;
  };
  run_to_rotation(1);
  const std::uint64_t before = keys.taken();
  const std::uint64_t repeats = run_to_rotation(3);
  const double average = static_cast<double>(repeats) / static_cast<double>(keys.taken() - before);
  const double formula = window_rates(size.keys_per_line()).average;
  EXPECT_LE(average, kRate);
  EXPECT_NEAR(average / formula, 1, 0.05) << "measured " << average << ", formula " << formula;
}

// Twice the planned traffic: the window halves, the rate stays.
TEST(FilterRate, OverloadShortensTheWindowInsteadOfRaisingTheRate) {
  constexpr std::uint64_t kKeys = 770'000;
  const FilterSize size = size_filter(kKeys, 0.01);
  for (const int factor : {2, 10}) {
    TwoGenerationFilter filter(size, kWindow, kStart);
    Keys keys(400 + static_cast<std::uint64_t>(factor));
    constexpr int kTicks = 2000;  // calls of maintain() in a window
    std::uint64_t repeats = 0;
    for (int tick = 1; tick <= kTicks; ++tick) {
      for (std::uint64_t i = 0; i < kKeys * static_cast<std::uint64_t>(factor) / kTicks; ++i) {
        repeats += filter.sight(keys.next()) == Sighting::Repeat ? 1U : 0U;
      }
      filter.maintain(kStart + kWindow * tick / kTicks);
    }
    const FilterStatus status = filter.status(kStart + kWindow);
    const double rate = static_cast<double>(repeats) / static_cast<double>(keys.taken());
    EXPECT_LE(rate, 0.01) << factor << " times the planned keys";
    EXPECT_EQ(status.rotations_by_age, 0U);
    EXPECT_GE(status.rotations_by_fill, static_cast<std::uint64_t>(factor - 1));
    EXPECT_NEAR(std::chrono::duration<double>(status.last_generation).count(), 1000.0 / factor,
                20.0 / factor);
  }
}

}  // namespace
}  // namespace secondsight::admission
