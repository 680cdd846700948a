#include "admission/filter_report.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "admission/bloom_math.h"
#include "admission/two_generation_filter.h"
#include "config/units.h"

namespace secondsight::admission {
namespace {

using std::chrono::milliseconds;

// What a rotation takes at its slowest: kSweepSteps calls of maintain().
constexpr milliseconds kWindowMin = TwoGenerationFilter::kSweepSteps * kMaintenanceInterval;
constexpr std::chrono::hours kWindowMax{24 * 365 * 10};  // the filter's own bound
constexpr std::chrono::minutes kShortWindow{1};
// One key in four is asked for again, or fewer: a store with less room than this for each key that
// a generation remembers turns over many times before the generation ends.
constexpr std::uint64_t kStoreBytesPerKey = 1_KiB;
constexpr double kThriftyRate = 0.001;  // below it full lines dominate, and memory grows fast
constexpr double kUsualRate = 0.01;
constexpr double kSpareWorthTelling = 1.1;

template <class... Arguments>
std::string formatted(const char* pattern, Arguments... arguments) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), pattern, arguments...);
  return text.data();
}

/// "0.91 %", "15.1 %", "0.0042 %".
std::string percent(double share) {
  const double value = share * 100;
  constexpr double kLeastTold = 1e-6;  // one in a hundred million
  if (value > 0 && value < kLeastTold) return "less than 0.000001 %";
  if (value > 0 && value < 0.001) return formatted("%.6f %%", value);
  if (value > 0 && value < 0.1) return formatted("%.2g %%", value);
  return formatted(value < 10 ? "%.2f %%" : "%.1f %%", value);
}

/// A share of a window as a person would say it: without milliseconds from a minute on, without
/// seconds from an hour on.
std::string share_of(milliseconds window, double share) {
  const double exact = static_cast<double>(window.count()) * share;
  constexpr double kMinute = 60'000;
  constexpr double kHour = 60 * kMinute;
  const double grain = exact >= kHour ? kMinute : exact >= kMinute ? 1000 : 1;
  return format_duration(milliseconds(std::llround(exact / grain) * std::llround(grain)));
}

std::string keys_text(std::uint64_t keys) {
  return std::to_string(keys) + (keys == 1 ? " key" : " keys");
}

std::string overload_line(const AdmissionSettings& settings, const FilterSize& size,
                          double traffic) {
  const double calls = std::chrono::duration<double>(settings.window) / kMaintenanceInterval;
  const OverloadRates rates = overload_rates(size, traffic, calls);
  return formatted("at %g times the planned keys", traffic) + " a generation lasts " +
         share_of(settings.window, rates.generation_share) + ", and the rate stays within " +
         percent(rates.bound.average) + " (" + percent(rates.bound.worst) +
         "); rotation by age alone would reach " + percent(rates.by_age_alone.average);
}

}  // namespace

std::string summarise_filter(const AdmissionSettings& settings) {
  const FilterSize size = size_filter(settings.expected_keys, settings.false_positive_rate);
  const WindowRates rates = window_rates(size.keys_per_line());
  return format_bytes(size.memory_bytes()) + " for " + keys_text(settings.expected_keys) +
         " in each of two generations; new keys taken for known ones: " + percent(rates.average) +
         " on average over the window, " + percent(rates.worst) + " at the worst instant";
}

std::string describe_filter(const AdmissionSettings& settings, std::string_view label,
                            std::span<const double> traffic) {
  const FilterSize size = size_filter(settings.expected_keys, settings.false_positive_rate);
  const WindowRates rates = window_rates(size.keys_per_line());
  const auto keys = static_cast<double>(settings.expected_keys);
  const double bits = static_cast<double>(size.memory_bytes()) * 8 / 2 / keys;
  const std::string planned = keys_text(settings.expected_keys);
  std::vector<std::string> lines{
      format_bytes(size.memory_bytes()) + " for " + planned + " in each of two generations: " +
          formatted(bits < 1000 ? "%.3g bytes per key, %.4g bits per key and generation"
                                : "%.0f bytes per key, %.0f bits per key and generation",
                    bits * 2 / 8, bits),
      "new keys taken for known ones: " + percent(rates.average) + " on average over the window, " +
          percent(rates.worst) + " at the worst instant, just before a rotation",
      "a generation ends after " + format_duration(settings.window) + " or " + planned +
          ", whichever comes first; a sighting is remembered for one to two generations"};
  for (const double times : traffic) lines.push_back(overload_line(settings, size, times));
  const std::uint64_t fit = keys_that_fit(size.line_count, settings.false_positive_rate);
  if (static_cast<double>(fit) >= keys * kSpareWorthTelling) {
    lines.push_back("to spare: these " + format_bytes(size.memory_bytes()) +
                    " (whole huge pages of 2 MiB) hold " + keys_text(fit) + " at a rate of " +
                    percent(settings.false_positive_rate) +
                    "; expected_keys up to there cost nothing");
  }
  std::string text(label);
  for (const std::string& line : lines) {
    if (&line != &lines.front()) text.append(label.size(), ' ');
    text += line + '\n';
  }
  return text;
}

std::optional<std::string> explain_bad_window(milliseconds window) {
  if (window > kWindowMax) {
    return "window is longer than ten years: it is how long a first sighting is remembered, such "
           "as \"24h\"";
  }
  if (window < kWindowMin) {
    return "window = " + format_duration(window) + " is shorter than the " +
           format_duration(kWindowMin) +
           " that a rotation takes to clear a generation: it is how long a first sighting is "
           "remembered, such as \"24h\"";
  }
  return std::nullopt;
}

std::vector<std::string> warn_of_filter(const AdmissionSettings& settings,
                                        const FilterSurroundings& around) {
  const FilterSize size = size_filter(settings.expected_keys, settings.false_positive_rate);
  const std::uint64_t bytes = size.memory_bytes();
  std::vector<std::string> warnings;
  if (bytes + around.memory_bytes > around.machine_bytes) {
    warnings.push_back("the filter (" + format_bytes(bytes) + ") and cache.memory (" +
                       format_bytes(around.memory_bytes) + ") together are more than the " +
                       format_bytes(around.machine_bytes) + " of memory that there are");
  }
  const std::uint64_t store_bytes = around.disk_bytes + around.memory_bytes;
  if (bytes > kFilterGranuleBytes && store_bytes / kStoreBytesPerKey < settings.expected_keys) {
    warnings.push_back(
        "the cache has room for " + format_bytes(store_bytes / settings.expected_keys) +
        " of each key that a generation remembers: what comes back late in the window is written "
        "and evicted again; lower expected_keys, or shorten the window, to what the cache holds");
  }
  if (bytes > kFilterGranuleBytes && settings.false_positive_rate < kThriftyRate) {
    const FilterSize usual = size_filter(settings.expected_keys, kUsualRate);
    warnings.push_back(formatted("false_positive_rate = %g costs ", settings.false_positive_rate) +
                       format_bytes(bytes) + ", where " + formatted("%g", kUsualRate) + " needs " +
                       format_bytes(usual.memory_bytes()) +
                       ": a false repeat is no more than one write too early");
  }
  if (settings.window < kShortWindow) {
    warnings.push_back("window = " + format_duration(settings.window) +
                       ": what is asked for again after more than two of it is never written");
  }
  return warnings;
}

}  // namespace secondsight::admission
