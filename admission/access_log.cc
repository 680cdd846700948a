#include "admission/access_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <initializer_list>

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

namespace secondsight::admission {
namespace {

namespace json = boost::json;

constexpr std::string_view kNotALine = "neither Common, Combined nor JSON";
constexpr std::size_t kLogTimeSize = 26;  // "30/Nov/2026:21:03:29 +0100"
constexpr int kFirstError = 400;

/// All of `text` as a number without sign.
template <class Number>
bool read_number(std::string_view text, Number& out) {
  if (text.empty() || text.front() == '-') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Takes parts off the front of a text; once something did not match, nothing does any more.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}
  bool ok() const noexcept { return ok_; }
  bool at_end() const noexcept { return rest_.empty(); }

  bool skip(char c) {
    if (!ok_ || rest_.empty() || rest_.front() != c) return ok_ = false;
    rest_.remove_prefix(1);
    return true;
  }
  bool skip_if(char c) {
    if (!ok_ || rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  /// Exactly so many digits.
  unsigned digits(std::size_t count) {
    unsigned number = 0;
    const std::string_view text = rest_.substr(0, count);
    const bool are_digits = std::all_of(text.begin(), text.end(), is_digit);
    if (!ok_ || text.size() != count || !are_digits || !read_number(text, number)) ok_ = false;
    rest_.remove_prefix(text.size());
    return number;
  }
  std::string_view take(std::size_t count) {
    const std::string_view text = rest_.substr(0, count);
    if (text.size() != count) ok_ = false;
    rest_.remove_prefix(text.size());
    return text;
  }
  /// As many as there are.
  std::string_view digits() {
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_digit);
    return take(static_cast<std::size_t>(end - rest_.begin()));
  }

 private:
  static bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
  std::string_view rest_;
  bool ok_ = true;
};

struct ClockTime {
  unsigned hours = 0, minutes = 0, seconds = 0;
};

ClockTime scan_clock_time(Scanner& scan) {
  ClockTime time;
  time.hours = scan.digits(2);
  scan.skip(':');
  time.minutes = scan.digits(2);
  scan.skip(':');
  time.seconds = scan.digits(2);
  return time;
}

/// "+0100", "+01:00": east of Greenwich is positive.
std::chrono::minutes scan_offset(Scanner& scan) {
  const bool is_west = scan.skip_if('-');
  if (!is_west) scan.skip('+');
  const unsigned hours = scan.digits(2);
  scan.skip_if(':');
  const std::chrono::minutes offset(hours * 60 + scan.digits(2));
  return is_west ? -offset : offset;
}

std::optional<WallTime> to_time(std::chrono::year_month_day date, const ClockTime& clock,
                                std::chrono::minutes offset) {
  // A leap second is the next minute's first.
  if (!date.ok() || clock.hours > 23 || clock.minutes > 59 || clock.seconds > 60)
    return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(clock.hours) +
         std::chrono::minutes(clock.minutes) + std::chrono::seconds(clock.seconds) - offset;
}

// ---------------------------------------------------------------- lines of words

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  const auto lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// What stands for one byte behind a backslash; 0: no such escape. Apache's letters (nginx has \x
/// alone).
char escaped_letter(char c) noexcept {
  switch (c) {
    case '"':
    case '\\':
      return c;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    default:
      return 0;
  }
}

/// Takes a quoted part off the front of `rest`, with its escapes undone. False: there is none.
bool take_quoted(std::string_view& rest, std::string& out) {
  out.clear();
  if (rest.empty() || rest.front() != '"') return false;
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      rest.remove_prefix(i + 1);
      return true;
    }
    if (rest[i] != '\\') {
      out.push_back(rest[i]);
      continue;
    }
    if (++i == rest.size()) return false;
    if (rest[i] == 'x' && rest.size() - i > 2 && hex_value(rest[i + 1]) >= 0 &&
        hex_value(rest[i + 2]) >= 0) {
      out.push_back(static_cast<char>(hex_value(rest[i + 1]) << 4 | hex_value(rest[i + 2])));
      i += 2;
    } else if (const char c = escaped_letter(rest[i]); c != 0) {
      out.push_back(c);
    } else {
      return false;
    }
  }
  return false;
}

std::string_view take_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(word.size());
  return word;
}

/// Method and target of "GET /path HTTP/1.1"; a request of HTTP/0.9 has no version. An error was
/// answered to what is none: that is no fault of the line.
std::string_view split_request(std::string_view text, LoggedRequest& request) {
  request.method.clear();
  request.target.clear();
  const std::size_t method_end = text.find(' ');
  const std::size_t target_end = text.rfind(" HTTP/");
  const bool has_version = target_end != std::string_view::npos && target_end > method_end;
  const std::string_view method = text.substr(0, method_end);
  const bool has_method =
      method_end != std::string_view::npos && !method.empty() &&
      std::all_of(method.begin(), method.end(), [](char c) { return c > ' ' && c < 0x7f; });
  const std::string_view target =
      has_method
          ? text.substr(method_end + 1, (has_version ? target_end : text.size()) - method_end - 1)
          : std::string_view();
  if (target.empty() || target.find(' ') != std::string_view::npos) {
    const bool is_answered_so = text.empty() || text == "-" || request.status >= kFirstError;
    return is_answered_so ? std::string_view() : "the request is no request line";
  }
  request.method.assign(method);
  request.target.assign(target);
  return {};
}

/// What the words in front of the time say about the virtual host. Its format differs from Common
/// by one more word; a user's name may have blanks, but then a "-" for the client's identity, which
/// is hardly ever known, stands second.
std::string_view virtual_host(std::string_view front) {
  const std::string_view first = take_word(front);
  const std::string_view second = take_word(front);
  const std::string_view third = take_word(front);
  const std::string_view fourth = take_word(front);
  if (second == "-" || third.empty() || fourth.empty()) return {};
  for (const std::string_view port : {":80", ":443"})
    if (first.ends_with(port)) return first.substr(0, first.size() - port.size());
  return first == "-" ? std::string_view() : first;
}

/// Where "[30/Nov/2026:21:03:29 +0100]" begins; a user's name may have brackets, too.
std::size_t find_time(std::string_view line, WallTime& time) {
  for (std::size_t at = line.find('['); at != std::string_view::npos; at = line.find('[', at + 1)) {
    if (line.size() - at < kLogTimeSize + 2 || line[at + kLogTimeSize + 1] != ']') continue;
    const auto read = parse_log_time(line.substr(at + 1, kLogTimeSize));
    if (!read) continue;
    time = *read;
    return at;
  }
  return std::string_view::npos;
}

std::string_view parse_words(std::string_view line, LoggedRequest& request) {
  const std::size_t time_at = find_time(line, request.time);
  if (time_at == std::string_view::npos) return "no time such as [30/Nov/2026:21:03:29 +0100]";
  std::string_view front = line.substr(0, time_at);
  std::string_view rest = front;
  take_word(rest);
  take_word(rest);
  if (take_word(rest).empty()) return kNotALine;
  request.host.assign(virtual_host(front));

  rest = line.substr(time_at + kLogTimeSize + 2);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  std::string text;
  if (!take_quoted(rest, text)) return "the request is not quoted as Apache and nginx do";
  const std::string_view status = take_word(rest);
  if (!read_number(status, request.status) && status != "-") return "no status";
  const std::string_view bytes = take_word(rest);
  std::uint64_t count = 0;
  request.body_bytes.reset();
  if (read_number(bytes, count)) request.body_bytes = count;
  return split_request(text, request);
}

// ---------------------------------------------------------------- JSON

const json::value* find_member(const json::object& line,
                               std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const json::value* value = line.if_contains(name)) return value;
  return nullptr;
}

/// A member that is a text and says something.
std::string_view text_of(const json::object& line, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const json::value* value = line.if_contains(name);
    const json::string* text = value != nullptr ? value->if_string() : nullptr;
    if (text != nullptr && !text->empty() && *text != "-") return *text;
  }
  return {};
}

/// Seconds since 1970, as a number or as a text.
std::optional<WallTime> seconds_of(const json::value& value) {
  constexpr double kSecondsMax = 1e11;  // far within what milliseconds in 64 bits can hold
  double seconds = -1;
  if (const json::string* text = value.if_string()) {
    if (!read_number(std::string_view(*text), seconds)) return std::nullopt;
  } else {
    json::error_code error;
    seconds = value.to_number<double>(error);
    if (error) return std::nullopt;
  }
  if (!(seconds >= 0 && seconds < kSecondsMax)) return std::nullopt;
  return WallTime(std::chrono::milliseconds(std::llround(seconds * 1000)));
}

std::optional<WallTime> time_of(const json::object& line) {
  if (const auto time = parse_iso_time(text_of(line, {"time", "time_iso8601"}))) return time;
  if (const json::value* msec = find_member(line, {"msec"})) return seconds_of(*msec);
  return parse_log_time(text_of(line, {"time_local"}));
}

/// A whole number from 0 up, also in quotes.
template <class Number>
bool read_member(const json::object& line, std::initializer_list<std::string_view> names,
                 Number& out) {
  const json::value* value = find_member(line, names);
  if (value == nullptr) return false;
  if (const json::string* text = value->if_string())
    return read_number(std::string_view(*text), out);
  json::error_code error;
  const auto number = value->to_number<Number>(error);
  if (error || number < Number{}) return false;
  out = number;
  return true;
}

std::string_view read_object(const json::object& line, LoggedRequest& request) {
  const auto time = time_of(line);
  if (!time) return "no time, time_iso8601, msec or time_local";
  request.time = *time;
  if (!read_member(line, {"status"}, request.status)) return "no status";
  request.host.assign(text_of(line, {"http_host", "host"}));
  std::uint64_t bytes = 0;
  request.body_bytes.reset();
  if (read_member(line, {"body_bytes", "body_bytes_sent", "bytes_sent"}, bytes))
    request.body_bytes = bytes;
  const std::string_view method = text_of(line, {"method", "request_method"});
  const std::string_view target = text_of(line, {"target", "request_uri"});
  if (method.empty() || target.empty()) {
    const json::value* text = line.if_contains("request");
    if (text != nullptr && text->is_string()) return split_request(text->get_string(), request);
    if (request.status < kFirstError && request.status != 0)
      return "neither method and target, request_method and request_uri, nor request";
    request.method.clear();
    request.target.clear();
    return {};
  }
  request.method.assign(method);
  request.target.assign(target);
  return {};
}

std::string_view parse_json(std::string_view line, LoggedRequest& request) {
  // nginx passes bytes above 0x7f as they are, whether UTF-8 or not.
  json::parse_options options;
  options.allow_invalid_utf8 = true;
  std::array<unsigned char, 8192> room;  // enough for most lines
  json::monotonic_resource memory(room.data(), room.size());
  json::error_code error;
  const json::value content = json::parse(line, error, &memory, options);
  const json::object* object = error ? nullptr : content.if_object();
  if (object == nullptr) return "no whole JSON object";
  return read_object(*object, request);
}

}  // namespace

std::optional<WallTime> parse_iso_time(std::string_view text) {
  using namespace std::chrono;
  Scanner scan(text);
  const year_month_day date = [&scan] {
    const auto y = year(static_cast<int>(scan.digits(4)));
    scan.skip('-');
    const auto m = month(scan.digits(2));
    scan.skip('-');
    return y / m / day(scan.digits(2));
  }();
  if (!scan.skip_if(' ') && !scan.skip_if('t')) scan.skip('T');
  const ClockTime clock = scan_clock_time(scan);
  milliseconds fraction{0};
  if (scan.skip_if('.')) {
    const std::string_view digits = scan.digits();
    if (digits.empty()) return std::nullopt;
    std::string three(digits.substr(0, 3));
    three.resize(3, '0');
    unsigned number = 0;
    read_number(three, number);
    fraction = milliseconds(number);
  }
  minutes offset{0};
  if (!scan.skip_if('Z') && !scan.skip_if('z')) offset = scan_offset(scan);
  if (!scan.ok() || !scan.at_end()) return std::nullopt;
  const auto time = to_time(date, clock, offset);
  if (!time) return std::nullopt;
  return *time + fraction;
}

std::optional<WallTime> parse_log_time(std::string_view text) {
  using namespace std::chrono;
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  Scanner scan(text);
  const day of_month(scan.digits(2));
  scan.skip('/');
  const auto name = std::find(kMonths.begin(), kMonths.end(), scan.take(3));
  scan.skip('/');
  const year of_era(static_cast<int>(scan.digits(4)));
  scan.skip(':');
  const ClockTime clock = scan_clock_time(scan);
  scan.skip(' ');
  const minutes offset = scan_offset(scan);
  if (!scan.ok() || !scan.at_end() || name == kMonths.end()) return std::nullopt;
  const month of_year(static_cast<unsigned>(name - kMonths.begin()) + 1);
  return to_time(of_era / of_year / of_month, clock, offset);
}

std::string_view parse_access_line(std::string_view line, LoggedRequest& request) {
  const std::size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos) return "empty";
  line.remove_prefix(start);
  return line.front() == '{' ? parse_json(line, request) : parse_words(line, request);
}

}  // namespace secondsight::admission
