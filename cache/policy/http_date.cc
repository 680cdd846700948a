#include "cache/policy/http_date.h"

#include <array>
#include <cstddef>

#include "cache/policy/fields.h"

namespace secondsight::cache::policy {
namespace {

using namespace std::chrono;

constexpr std::array<std::string_view, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 7> kLongDays{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                    "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/// Takes pieces off the front of a text. Once a piece does not fit, everything after fails.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  void literal(std::string_view expected) {
    if (equals_ignoring_case(rest_.substr(0, expected.size()), expected)) {
      rest_.remove_prefix(expected.size());
    } else {
      ok_ = false;
    }
  }

  /// The index of the name that comes next.
  template <std::size_t N>
  unsigned one_of(const std::array<std::string_view, N>& names) {
    for (unsigned i = 0; i < N; ++i) {
      if (!equals_ignoring_case(rest_.substr(0, names[i].size()), names[i])) continue;
      rest_.remove_prefix(names[i].size());
      return i;
    }
    ok_ = false;
    return 0;
  }

  int digits(std::size_t count) {
    int value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (i >= rest_.size() || rest_[i] < '0' || rest_[i] > '9') {
        ok_ = false;
        return 0;
      }
      value = value * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }

  bool next_is(char c) const { return !rest_.empty() && rest_.front() == c; }
  bool finished() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

struct DateParts {
  int year = 0;
  unsigned month = 0;  // from 0
  int day = 0;
  int hour = 0, minute = 0, second = 0;
};

void read_time_of_day(Scanner& in, DateParts& parts) {
  parts.hour = in.digits(2);
  in.literal(":");
  parts.minute = in.digits(2);
  in.literal(":");
  parts.second = in.digits(2);
}

std::optional<WallTime> to_time(const DateParts& parts) {
  const year_month_day date{year{parts.year}, month{parts.month + 1},
                            day{static_cast<unsigned>(parts.day)}};
  if (!date.ok() || parts.hour > 23 || parts.minute > 59 || parts.second > 60) return std::nullopt;
  return WallTime{sys_days{date}} + hours{parts.hour} + minutes{parts.minute} +
         seconds{parts.second};
}

/// "Sun, 06 Nov 1994 08:49:37 GMT"
std::optional<WallTime> parse_imf_fixdate(std::string_view text) {
  Scanner in(text);
  DateParts parts;
  in.one_of(kDays);
  in.literal(", ");
  parts.day = in.digits(2);
  in.literal(" ");
  parts.month = in.one_of(kMonths);
  in.literal(" ");
  parts.year = in.digits(4);
  in.literal(" ");
  read_time_of_day(in, parts);
  in.literal(" GMT");
  return in.finished() ? to_time(parts) : std::nullopt;
}

/// "Sunday, 06-Nov-94 08:49:37 GMT"
std::optional<WallTime> parse_rfc850(std::string_view text, WallTime now) {
  Scanner in(text);
  DateParts parts;
  in.one_of(kLongDays);
  in.literal(", ");
  parts.day = in.digits(2);
  in.literal("-");
  parts.month = in.one_of(kMonths);
  in.literal("-");
  const int two_digits = in.digits(2);
  in.literal(" ");
  read_time_of_day(in, parts);
  in.literal(" GMT");
  if (!in.finished()) return std::nullopt;

  // The latest year with these two digits that is at most 50 years ahead.
  const auto today = floor<days>(now);
  const year_month_day date{today};
  const WallTime limit =
      sys_days{(date.year() + years{50}) / date.month() / date.day()} + (now - today);
  const int this_year = static_cast<int>(date.year());
  parts.year = this_year - this_year % 100 + 100 + two_digits;
  for (int tries = 0; tries < 3; ++tries, parts.year -= 100) {
    const auto time = to_time(parts);
    if (time && *time <= limit) return time;
  }
  return std::nullopt;
}

/// "Sun Nov  6 08:49:37 1994"
std::optional<WallTime> parse_asctime(std::string_view text) {
  Scanner in(text);
  DateParts parts;
  in.one_of(kDays);
  in.literal(" ");
  parts.month = in.one_of(kMonths);
  in.literal(" ");
  const bool is_padded = in.next_is(' ');
  if (is_padded) in.literal(" ");
  parts.day = in.digits(is_padded ? 1 : 2);
  in.literal(" ");
  read_time_of_day(in, parts);
  in.literal(" ");
  parts.year = in.digits(4);
  return in.finished() ? to_time(parts) : std::nullopt;
}

void append_digits(std::string& out, unsigned value, int count) {
  std::array<char, 4> digits{};
  for (int i = count; i-- > 0; value /= 10)
    digits[static_cast<std::size_t>(i)] = static_cast<char>('0' + value % 10);
  out.append(digits.data(), static_cast<std::size_t>(count));
}

}  // namespace

std::optional<WallTime> parse_http_date(std::string_view text, WallTime now) {
  if (const auto time = parse_imf_fixdate(text)) return time;
  if (const auto time = parse_rfc850(text, now)) return time;
  return parse_asctime(text);
}

std::string format_http_date(WallTime time) {
  const auto whole_days = floor<days>(time);
  const year_month_day date{whole_days};
  const hh_mm_ss clock{floor<seconds>(time - whole_days)};
  std::string out;
  out.reserve(29);
  out.append(kDays[weekday{whole_days}.c_encoding()]).append(", ");
  append_digits(out, static_cast<unsigned>(date.day()), 2);
  out.append(" ").append(kMonths[static_cast<unsigned>(date.month()) - 1]).append(" ");
  append_digits(out, static_cast<unsigned>(static_cast<int>(date.year())), 4);
  out.append(" ");
  append_digits(out, static_cast<unsigned>(clock.hours().count()), 2);
  out.append(":");
  append_digits(out, static_cast<unsigned>(clock.minutes().count()), 2);
  out.append(":");
  append_digits(out, static_cast<unsigned>(clock.seconds().count()), 2);
  out.append(" GMT");
  return out;
}

}  // namespace secondsight::cache::policy
