// The formulas of bloom_math against filters of another kind: no fingerprint, no line of the real
// one, nothing but the definition. A line is 64 bits four times over for each generation, a key is
// a line and two bits of each word, all drawn by the standard library's generator.
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "admission/bloom_math.h"
#include "tests/admission/keys.h"

namespace secondsight::admission {
namespace {

constexpr std::uint64_t kLines = 8192;

class DefinedFilter {
 public:
  struct Key {
    std::size_t line;
    std::array<std::uint64_t, kWordsPerHalf> bits;
  };

  explicit DefinedFilter(std::uint64_t seed) : random_(seed) {}

  Key draw() {
    Key key{line_(random_), {}};
    for (std::uint64_t& word : key.bits) {
      for (unsigned probe = 0; probe < kProbesPerWord; ++probe) {
        word |= std::uint64_t{1} << bit_(random_);
      }
    }
    return key;
  }
  void mark(unsigned generation, const Key& key) {
    for (unsigned w = 0; w < kWordsPerHalf; ++w) lines_[generation][key.line][w] |= key.bits[w];
  }
  bool has(unsigned generation, const Key& key) const {
    for (unsigned w = 0; w < kWordsPerHalf; ++w) {
      if ((key.bits[w] & ~lines_[generation][key.line][w]) != 0) return false;
    }
    return true;
  }
  void fill(unsigned generation, std::uint64_t keys) {
    for (std::uint64_t i = 0; i < keys; ++i) mark(generation, draw());
  }
  bool meets_stranger() {
    const Key stranger = draw();
    return has(0, stranger) || has(1, stranger);
  }

 private:
  std::mt19937_64 random_;
  std::uniform_int_distribution<std::size_t> line_{0, kLines - 1};
  std::uniform_int_distribution<unsigned> bit_{0, 63};
  using Generation = std::vector<std::array<std::uint64_t, kWordsPerHalf>>;
  std::array<Generation, 2> lines_{Generation(kLines), Generation(kLines)};
};

/// The rate over independent filters, and its standard error from their scatter: lines of one
/// filter are a sample, too, which a count of strangers alone would not show.
struct Rate {
  double mean = 0;
  double error = 0;
};
Rate measure(std::uint64_t stream, const std::function<double(DefinedFilter&)>& rate_of_one) {
  constexpr unsigned kFilters = 40;
  double sum = 0;
  double squares = 0;
  for (unsigned i = 0; i < kFilters; ++i) {
    DefinedFilter filter(test::test_seed() + stream * kFilters + i);
    const double rate = rate_of_one(filter);
    sum += rate;
    squares += rate * rate;
  }
  const double mean = sum / kFilters;
  return {mean, std::sqrt((squares / kFilters - mean * mean) / (kFilters - 1))};
}

// 4.5 standard errors, with 39 degrees of freedom: one in fifteen thousand. The error must be small
// enough for the comparison to mean something.
void expect_formula(const Rate& measured, double formula, double precision) {
  EXPECT_LT(measured.error, precision * formula) << "too few strangers, seed " << test::test_seed();
  EXPECT_NEAR(measured.mean, formula, 4.5 * measured.error) << "seed " << test::test_seed();
}

std::uint64_t keys_for(double keys_per_line) {
  return static_cast<std::uint64_t>(std::llround(keys_per_line * static_cast<double>(kLines)));
}

TEST(BloomBruteForce, OneGenerationFull) {
  for (const double keys_per_line : {12.0, 23.6, 45.0}) {
    const Rate measured = measure(1, [&](DefinedFilter& filter) {
      constexpr int kStrangers = 100'000;
      filter.fill(0, keys_for(keys_per_line));
      int repeats = 0;
      for (int i = 0; i < kStrangers; ++i) repeats += filter.meets_stranger() ? 1 : 0;
      return static_cast<double>(repeats) / kStrangers;
    });
    SCOPED_TRACE(keys_per_line);
    expect_formula(measured, false_positive_rate(keys_per_line), keys_per_line < 20 ? 0.05 : 0.02);
  }
}

TEST(BloomBruteForce, BothGenerationsAtTheWorstInstant) {
  const double keys_per_line = keys_per_line_for(0.01);
  const Rate measured = measure(2, [&](DefinedFilter& filter) {
    constexpr int kStrangers = 100'000;
    filter.fill(0, keys_for(keys_per_line));
    filter.fill(1, keys_for(keys_per_line));
    int repeats = 0;
    for (int i = 0; i < kStrangers; ++i) repeats += filter.meets_stranger() ? 1 : 0;
    return static_cast<double>(repeats) / kStrangers;
  });
  expect_formula(measured, window_rates(keys_per_line).worst, 0.02);
}

// A whole window as it is used: every stranger is asked about, then marked, and one in a hundred of
// all that the window sees is taken for a repeat.
TEST(BloomBruteForce, AverageOverAWindowOfStrangers) {
  const double keys_per_line = keys_per_line_for(0.01);
  const Rate measured = measure(3, [&](DefinedFilter& filter) {
    const std::uint64_t keys = keys_for(keys_per_line);
    filter.fill(0, keys);
    std::uint64_t repeats = 0;
    for (std::uint64_t i = 0; i < keys; ++i) {
      const DefinedFilter::Key stranger = filter.draw();
      repeats += filter.has(0, stranger) || filter.has(1, stranger) ? 1U : 0U;
      filter.mark(1, stranger);
    }
    return static_cast<double>(repeats) / static_cast<double>(keys);
  });
  expect_formula(measured, 0.01, 0.02);
}

}  // namespace
}  // namespace secondsight::admission
