#include "admission/bloom_math.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "config/check.h"

namespace secondsight::admission {
namespace {

constexpr double kWordBits = 64;
constexpr double kLowestRate = 1e-5;   // below it each tenfold costs another 60 % of memory or more
constexpr double kHighestRate = 0.25;  // above it every fourth stranger is written at once
constexpr double kMostKeysPerLine = 600;  // exp(-600) is still a normal double
constexpr double kLeapShare = 1.0 / 64;   // of a generation's keys, marked while a sweep clears
constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 40;

// The two probes of a stranger in one word are the same bit with chance 1/64. Both generations are
// asked about the same bits, so a stranger with coinciding probes is an easy one for both: the
// generations are independent only once the number of coinciding words (0..4) is given.
using ByCoincidence = std::array<double, kWordsPerHalf + 1>;

// Chance of each number of coinciding words: Binomial(4, 1/64).
ByCoincidence coincidence_chances() noexcept {
  constexpr std::array<double, kWordsPerHalf + 1> kChoose{1, 4, 6, 4, 1};
  ByCoincidence chances{};
  for (unsigned c = 0; c <= kWordsPerHalf; ++c) {
    chances[c] =
        kChoose[c] * std::pow(1 / kWordBits, c) * std::pow(1 - 1 / kWordBits, kWordsPerHalf - c);
  }
  return chances;
}

// Chance that a stranger matches a half-line that holds `keys` keys. Each key draws two of a word's
// 64 bits, with repetition; the words are independent of each other.
ByCoincidence match_chances(double keys) noexcept {
  const double draws = kProbesPerWord * keys;
  const double one_clear = std::pow(1 - 1 / kWordBits, draws);
  const double both_clear = std::pow(1 - 2 / kWordBits, draws);
  const double same_bit_set = 1 - one_clear;
  const double two_bits_set = std::max(0.0, 1 - 2 * one_clear + both_clear);
  ByCoincidence chances{};
  for (unsigned c = 0; c <= kWordsPerHalf; ++c) {
    chances[c] = std::pow(same_bit_set, c) * std::pow(two_bits_set, kWordsPerHalf - c);
  }
  return chances;
}

struct Mixture {
  ByCoincidence full{};     // with keys_per_line keys per line
  ByCoincidence filling{};  // averaged from empty to keys_per_line
};

// Keys per line are Poisson. Averaged over an even filling from 0 to x the weight of m keys is
//   (1/x) * integral over t from 0 to x of exp(-t) t^m / m!  =  P(Poisson(x) > m) / x.
Mixture mix(double keys_per_line) noexcept {
  const double mean = std::clamp(keys_per_line, 0.0, kMostKeysPerLine);
  if (mean <= 0) return {};
  Mixture mixture;
  double chance = std::exp(-mean);  // of exactly m keys
  double more = 1 - chance;         // of more than m keys
  const auto last = static_cast<unsigned>(mean + 12 * std::sqrt(mean) + 30);
  for (unsigned count = 0; count <= last; ++count) {
    const double m = count;
    const ByCoincidence match = match_chances(m);
    for (unsigned c = 0; c <= kWordsPerHalf; ++c) {
      mixture.full[c] += chance * match[c];
      mixture.filling[c] += more / mean * match[c];
    }
    chance *= mean / (m + 1);
    more = std::max(0.0, more - chance);
  }
  return mixture;
}

double either(const ByCoincidence& previous, const ByCoincidence& current) noexcept {
  const ByCoincidence chances = coincidence_chances();
  double sum = 0;
  for (unsigned c = 0; c <= kWordsPerHalf; ++c) {
    sum += chances[c] * (previous[c] + current[c] - previous[c] * current[c]);
  }
  return sum;
}

std::string format(const char* pattern, double a, double b) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), pattern, a, b);
  return text.data();
}

}  // namespace

double false_positive_rate(double keys_per_line) noexcept {
  return either(mix(keys_per_line).full, {});
}

double combined_false_positive_rate(double previous_keys_per_line,
                                    double current_keys_per_line) noexcept {
  return either(mix(previous_keys_per_line).full, mix(current_keys_per_line).full);
}

double expected_fill(double keys_per_line) noexcept {
  const double clear_after_one_key = std::pow(1 - 1 / kWordBits, kProbesPerWord);
  return -std::expm1(-keys_per_line * (1 - clear_after_one_key));
}

WindowRates window_rates(double keys_per_line) noexcept {
  const Mixture mixture = mix(keys_per_line);
  return {either(mixture.full, mixture.filling), either(mixture.full, mixture.full)};
}

double keys_per_line_for(double rate) noexcept {
  double low = 0;
  double high = kMostKeysPerLine;
  for (int step = 0; step < 60; ++step) {  // halves 600 to far below one part in 10^15
    const double middle = (low + high) / 2;
    (window_rates(middle).average <= rate ? low : high) = middle;
  }
  return low;
}

FilterSize size_filter(std::uint64_t expected_keys, double rate) noexcept {
  CHECK(expected_keys > 0 && expected_keys <= kMostKeys);
  CHECK(rate >= kLowestRate && rate <= kHighestRate);
  constexpr std::uint64_t kGranule = kFilterGranuleBytes / kLineBytes;
  const double planned = static_cast<double>(expected_keys) * (1 + kSizingReserve);
  const double lines = std::ceil(planned / keys_per_line_for(rate));
  const std::uint64_t granules = (static_cast<std::uint64_t>(lines) + kGranule - 1) / kGranule;
  return {granules * kGranule, expected_keys};
}

std::uint64_t keys_that_fit(std::uint64_t line_count, double rate) noexcept {
  CHECK(rate >= kLowestRate && rate <= kHighestRate);
  const double planned = static_cast<double>(line_count) * keys_per_line_for(rate);
  return static_cast<std::uint64_t>(planned / (1 + kSizingReserve));
}

OverloadRates overload_rates(const FilterSize& size, double traffic,
                             double calls_per_window) noexcept {
  CHECK(traffic > 0 && calls_per_window > 0);
  const double planned = size.keys_per_line();
  OverloadRates rates;
  rates.by_age_alone = window_rates(planned * traffic);
  rates.bound = rates.by_age_alone;
  if (traffic > 1) {
    rates.generation_share = 1 / traffic;
    const double late = 2 * traffic / calls_per_window;
    rates.bound = window_rates(planned * (1 + kLeapShare + late));
  }
  return rates;
}

std::optional<std::string> explain_bad_size(std::uint64_t expected_keys, double rate,
                                            std::uint64_t memory_limit_bytes) {
  if (expected_keys == 0) {
    return "expected_keys = 0 would end a generation at once: give the number of distinct "
           "storable URLs asked for within one window";
  }
  if (!(rate > 0 && rate < 1)) {
    return format(
        "false_positive_rate = %g is no rate a filter can have: give a share between "
        "%g and 0.25, for instance 0.01",
        rate, kLowestRate);
  }
  if (rate < kLowestRate) {
    return format(
        "false_positive_rate = %g wastes memory: at %g at most one first sighting in a "
        "hundred thousand is already written early; 0.01 is enough for almost everyone",
        rate, kLowestRate);
  }
  if (rate > kHighestRate) {
    return format(
        "false_positive_rate = %g defeats the filter: more than one first sighting in "
        "four would be written; %g saves most of the writes for a few bits more per key",
        rate, 0.01);
  }
  if (expected_keys > kMostKeys) {
    return format("expected_keys = %.0f is more than a filter can address: at most %.0f",
                  static_cast<double>(expected_keys), static_cast<double>(kMostKeys));
  }
  const std::uint64_t needed = size_filter(expected_keys, rate).memory_bytes();
  if (needed > memory_limit_bytes) {
    constexpr double kMiB = 1 << 20;
    return format(
        "the filter would need %.0f MiB and may take %.0f MiB: lower expected_keys or "
        "shorten the window, or accept a higher false_positive_rate",
        static_cast<double>(needed) / kMiB, static_cast<double>(memory_limit_bytes) / kMiB);
  }
  return std::nullopt;
}

}  // namespace secondsight::admission
