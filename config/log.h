#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "config/clock.h"

namespace secondsight {

enum class LogLevel : std::uint8_t { Debug, Info, Warning, Error };
std::string_view to_string(LogLevel) noexcept;
/// The level called "debug", "info", "warning" or "error"; empty for any other word.
std::optional<LogLevel> parse_log_level(std::string_view word) noexcept;

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

/// The line that log_line writes, with its newline; cut at 4096 bytes, which a pipe takes in one
/// piece (pipe(7), PIPE_BUF).
std::string format_log_line(WallTime now, LogLevel level, std::string_view message,
                            std::initializer_list<LogField> fields);

}  // namespace secondsight
