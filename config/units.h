#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace secondsight {

inline namespace literals {
constexpr std::uint64_t operator""_KiB(unsigned long long n) {
  return n << 10;
}
constexpr std::uint64_t operator""_MiB(unsigned long long n) {
  return n << 20;
}
constexpr std::uint64_t operator""_GiB(unsigned long long n) {
  return n << 30;
}
}  // namespace literals

/// Reads "10GiB", "512KiB", "1.5MB", "4096", "0" as bytes. Units: B, kB/KB, MB, GB, TB (powers of
/// 1000), KiB, MiB, GiB, TiB (powers of 1024); one space before the unit is allowed. Empty for
/// anything else: negative, overflow, unknown unit, trailing text.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// Reads "250ms", "30s", "5m", "24h", "7d" as milliseconds; a bare number needs a unit, except "0".
/// Empty for anything else.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// "10 GiB", "1.5 MiB", "812 B": three significant digits for people, not for parsing back.
std::string format_bytes(std::uint64_t bytes);

/// "24h", "1m30s", "250ms".
std::string format_duration(std::chrono::milliseconds duration);

}  // namespace secondsight
