#include "config/log.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <unistd.h>

#include "config/quote.h"

namespace secondsight {
namespace {

constexpr std::array<std::string_view, 4> kLevelNames{"debug", "info", "warning", "error"};
constexpr std::size_t kMaxLineBytes = 4096;

std::atomic<LogLevel> least_level{LogLevel::Info};  // relaxed: a line more or less at a change

void append_time(std::string& line, WallTime now) {
  const auto day = std::chrono::floor<std::chrono::days>(now);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{now - day};
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(time.hours().count()),
                static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()),
                static_cast<int>(time.subseconds().count()));
  line += text.data();
}

bool needs_quotes(std::string_view value) {
  if (value.empty()) return true;
  for (const char c : value) {
    if (c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '=') return true;
  }
  return false;
}

}  // namespace

std::string_view to_string(LogLevel level) noexcept {
  return kLevelNames[static_cast<std::size_t>(level)];
}

std::optional<LogLevel> parse_log_level(std::string_view word) noexcept {
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == word) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

void set_log_level(LogLevel level) noexcept {
  least_level.store(level, std::memory_order_relaxed);
}

std::string format_log_line(WallTime now, LogLevel level, std::string_view message,
                            std::initializer_list<LogField> fields) {
  std::string line;
  append_time(line, now);
  line += ' ';
  line += to_string(level);
  line += ' ';
  line += needs_quotes(message) ? quoted(message) : std::string{message};
  for (const auto& field : fields) {
    line += ' ';
    line += field.name;
    line += '=';
    line += needs_quotes(field.value) ? quoted(field.value) : std::string{field.value};
  }
  if (line.size() >= kMaxLineBytes) line.resize(kMaxLineBytes - 1);
  line += '\n';
  return line;
}

void log_line(LogLevel level, std::string_view message,
              std::initializer_list<LogField> fields) noexcept {
  if (level < least_level.load(std::memory_order_relaxed)) return;
  try {
    const std::string line = format_log_line(SystemClock{}.wall(), level, message, fields);
    while (::write(STDERR_FILENO, line.data(), line.size()) < 0 && errno == EINTR) {
    }
  } catch (const std::exception&) {
    // No memory for a line: the program goes on without it.
    return;
  }
}

}  // namespace secondsight
