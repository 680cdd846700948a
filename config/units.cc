#include "config/units.h"

#include <array>
#include <cstdio>
#include <limits>

namespace secondsight {
namespace {

struct ByteUnit {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array kByteUnits{
    ByteUnit{"B", 1},
    ByteUnit{"kB", 1'000},
    ByteUnit{"KB", 1'000},
    ByteUnit{"MB", 1'000'000},
    ByteUnit{"GB", 1'000'000'000},
    ByteUnit{"TB", 1'000'000'000'000},
    ByteUnit{"KiB", 1_KiB},
    ByteUnit{"MiB", 1_MiB},
    ByteUnit{"GiB", 1_GiB},
    ByteUnit{"TiB", 1024 * 1_GiB},
};

struct DurationUnit {
  std::string_view name;
  std::int64_t milliseconds;
};
constexpr std::array kDurationUnits{
    DurationUnit{"ms", 1},        DurationUnit{"s", 1'000},      DurationUnit{"m", 60'000},
    DurationUnit{"h", 3'600'000}, DurationUnit{"d", 86'400'000},
};

// Six digits times the largest unit stay below 2^64, so the fraction needs no wider arithmetic.
constexpr std::size_t kMaxFractionDigits = 6;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view take_digits(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  const std::string_view digits = text.substr(0, length);
  text.remove_prefix(length);
  return digits;
}

std::optional<std::uint64_t> to_number(std::string_view digits) {
  if (digits.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : digits) {
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
        __builtin_add_overflow(value, static_cast<std::uint64_t>(c - '0'), &value)) {
      return std::nullopt;
    }
  }
  return value;
}

/// unit * 0.digits, rounded down.
std::uint64_t fraction_of(std::uint64_t unit, std::string_view digits) {
  std::uint64_t numerator = 0;
  std::uint64_t denominator = 1;
  for (const char c : digits) {
    numerator = numerator * 10 + static_cast<std::uint64_t>(c - '0');
    denominator *= 10;
  }
  return unit * numerator / denominator;
}

}  // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const auto whole = to_number(take_digits(text));
  if (!whole) return std::nullopt;
  if (text.empty()) return whole;

  std::string_view fraction;
  if (text.front() == '.') {
    text.remove_prefix(1);
    fraction = take_digits(text);
    if (fraction.empty() || fraction.size() > kMaxFractionDigits) return std::nullopt;
  }
  if (!text.empty() && text.front() == ' ') text.remove_prefix(1);

  for (const auto& unit : kByteUnits) {
    if (unit.name != text) continue;
    if (unit.bytes == 1 && !fraction.empty()) return std::nullopt;
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(*whole, unit.bytes, &bytes) ||
        __builtin_add_overflow(bytes, fraction_of(unit.bytes, fraction), &bytes)) {
      return std::nullopt;
    }
    return bytes;
  }
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  if (text == "0") return std::chrono::milliseconds{0};
  const auto count = to_number(take_digits(text));
  if (!count || *count > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  for (const auto& unit : kDurationUnits) {
    if (unit.name != text) continue;
    std::int64_t milliseconds = 0;
    if (__builtin_mul_overflow(static_cast<std::int64_t>(*count), unit.milliseconds,
                               &milliseconds)) {
      return std::nullopt;
    }
    return std::chrono::milliseconds{milliseconds};
  }
  return std::nullopt;
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array kNames{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  // What would print as "1024 KiB" is "1 MiB".
  constexpr double kRoundsUpToNextUnit = 1023.5;
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= kRoundsUpToNextUnit && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%.*f", decimals, value);
  std::string text = digits.data();
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text + ' ' + kNames.at(unit);
}

std::string format_duration(std::chrono::milliseconds duration) {
  constexpr std::array kParts{
      std::pair{"h", std::uint64_t{3'600'000}},
      std::pair{"m", std::uint64_t{60'000}},
      std::pair{"s", std::uint64_t{1'000}},
      std::pair{"ms", std::uint64_t{1}},
  };
  if (duration.count() == 0) return "0s";
  std::string text = duration.count() < 0 ? "-" : "";
  // Unsigned, because the smallest int64 has no positive counterpart.
  std::uint64_t rest = static_cast<std::uint64_t>(duration.count());
  if (duration.count() < 0) rest = ~rest + 1;
  for (const auto& [name, milliseconds] : kParts) {
    if (rest >= milliseconds) text += std::to_string(rest / milliseconds) + name;
    rest %= milliseconds;
  }
  return text;
}

}  // namespace secondsight
