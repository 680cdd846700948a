#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace secondsight::admission {

// The geometry every formula below is exact for. A line is one 64-byte cache line; each of its two
// halves belongs to one generation.
inline constexpr unsigned kLineBytes = 64;
inline constexpr unsigned kWordsPerHalf = 4;   // 64-bit words of one generation in one line
inline constexpr unsigned kProbesPerWord = 2;  // drawn independently: they may coincide
inline constexpr unsigned kHalfLineBits = kWordsPerHalf * 64;

/// A filter is a whole number of huge pages. A smaller one would save nothing, and the spare lines
/// keep the rate of small filters far below the configured one.
inline constexpr std::uint64_t kFilterGranuleBytes = std::uint64_t{2} << 20;

/// Sizing plans for this share of keys on top of the expected ones: a generation ends at the first
/// maintenance call after `expected_keys` marks, not at the mark itself, and a stranger that is
/// taken for a repeat fills the filter's model without being counted as a mark.
inline constexpr double kSizingReserve = 0.01;

/// Chance that a key never marked matches one generation whose lines hold `keys_per_line` keys on
/// average. Blocked filters mix full and empty lines, so this is the Poisson mixture over the keys
/// of one line, not the textbook rate of one big bit array. In 0..1; keys_per_line up to 600.
double false_positive_rate(double keys_per_line) noexcept;

/// Chance that a key never marked matches at least one of two generations that share no key (the
/// worst case: keys marked in both make it smaller).
double combined_false_positive_rate(double previous_keys_per_line,
                                    double current_keys_per_line) noexcept;

/// Share of set bits in one generation.
double expected_fill(double keys_per_line) noexcept;

/// The combined rate while `previous` is full and `current` fills up from empty at an even pace.
struct WindowRates {
  double average = 0;  // over the whole window: what `false_positive_rate` in the settings means
  double worst = 0;    // at the last instant before a rotation, both generations full
};
WindowRates window_rates(double keys_per_line) noexcept;

/// The fullest lines that keep WindowRates::average at or below `rate`, in keys per line and
/// generation. `rate` within the bounds that explain_bad_size() accepts.
double keys_per_line_for(double rate) noexcept;

/// What a filter is built with.
struct FilterSize {
  std::uint64_t line_count = 0;
  std::uint64_t keys_per_generation = 0;  // marks after which a generation ends

  std::uint64_t memory_bytes() const noexcept { return line_count * kLineBytes; }
  /// Keys per line when a generation is full.
  double keys_per_line() const noexcept {
    return static_cast<double>(keys_per_generation) / static_cast<double>(line_count);
  }
};

/// The smallest filter, in whole huge pages, whose combined rate over the window is at most `rate`
/// for `expected_keys` distinct keys per generation. Only for arguments that explain_bad_size()
/// accepts.
FilterSize size_filter(std::uint64_t expected_keys, double rate) noexcept;

/// How many keys per generation `line_count` lines hold at `rate`: the largest `expected_keys` that
/// size_filter() would give no more lines. Whole huge pages leave small filters much to spare.
std::uint64_t keys_that_fit(std::uint64_t line_count, double rate) noexcept;

/// What `traffic` times the planned keys do to a filter. Above 1 its generations end by fill.
struct OverloadRates {
  double generation_share = 1;  // of the window, that a generation lasts
  WindowRates bound;            // what the rates stay within
  WindowRates by_age_alone;     // what the same lines would reach without rotation by fill
};
/// `calls_per_window`: of maintain(). A generation by fill takes the marks between two calls more
/// than planned, twice if a sweep's end binds, and once a 64th when the load leaps
/// (two_generation_filter.cc); the bound has room for both. `traffic` above 0.
OverloadRates overload_rates(const FilterSize& size, double traffic,
                             double calls_per_window) noexcept;

/// Why no sensible filter has this size, and what would be right; empty when all is well.
/// `memory_limit_bytes`: what the filter may take, for instance the machine's memory.
std::optional<std::string> explain_bad_size(std::uint64_t expected_keys, double rate,
                                            std::uint64_t memory_limit_bytes);

}  // namespace secondsight::admission
