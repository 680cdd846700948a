#pragma once
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace secondsight {

enum class LogLevel : std::uint8_t { Debug, Info, Warning, Error };

/// Lines below `level` are dropped from here on. Thread-safe.
void set_log_level(LogLevel level) noexcept;

struct LogField {
  std::string_view name;
  std::string_view value;
};

/// Writes one line to standard error with a single write(2):
///   2026-11-30T12:00:00.123Z warning message name=value name="value with spaces"
/// Control bytes and quotes in values are escaped, so input cannot forge a line. Thread-safe; never
/// fails, never throws. Not for the hot path.
void log_line(LogLevel level, std::string_view message,
              std::initializer_list<LogField> fields = {}) noexcept;

}  // namespace secondsight
