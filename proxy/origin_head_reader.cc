#include "proxy/origin_head_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace secondsight::proxy {
namespace {

using cache::policy::equals_ignoring_case;

// What most heads need, so that a block grows once.
constexpr std::size_t kUsualHeadBytes = 1024;
constexpr std::size_t kUsualFields = 24;

constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

// tchar, RFC 9110 5.6.2.
constexpr auto kTokenChars = [] {
  std::array<bool, 256> table{};
  for (char c = '0'; c <= '9'; ++c) table[static_cast<unsigned char>(c)] = true;
  for (char c = 'a'; c <= 'z'; ++c) table[static_cast<unsigned char>(c)] = true;
  for (char c = 'A'; c <= 'Z'; ++c) table[static_cast<unsigned char>(c)] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~"))
    table[static_cast<unsigned char>(c)] = true;
  return table;
}();

bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return kTokenChars[static_cast<unsigned char>(c)];
  });
}

// field-vchar, SP, HTAB and obs-text: no control character, so no bare CR, LF or NUL. RFC 9110 5.5.
bool is_text(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7f) || byte == '\t';
  });
}

std::string_view trim(std::string_view text) noexcept {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<cache::policy::FieldLine> parse_field(std::string_view line) noexcept {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view name = line.substr(0, colon);
  // A token has no blanks: neither a folded line nor "Name :" passes.
  if (!is_token(name) || !is_text(line.substr(colon + 1))) return std::nullopt;
  return cache::policy::FieldLine{name, trim(line.substr(colon + 1))};
}

// Whether a body of this one transfer coding is read as it is, to the connection's end. RFC
// 9112 6.3, rule 4. Not what we know and would have to undo, and no list: its "chunked" is a
// framing that two readers see differently.
bool ends_with_connection(std::string_view coding) noexcept {
  constexpr std::array<std::string_view, 7> kKnown{"chunked",  "gzip",       "x-gzip",  "deflate",
                                                   "compress", "x-compress", "identity"};
  return is_token(coding) &&
         std::none_of(kKnown.begin(), kKnown.end(),
                      [&](std::string_view known) { return equals_ignoring_case(known, coding); });
}

// 1*DIGIT and nothing else; lists are refused even when their members agree. RFC 9110 8.6.
std::optional<std::uint64_t> parse_length(std::string_view text) noexcept {
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
  std::int64_t value = 0;  // signed, as libcurl counts
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

}  // namespace

void OriginHeadReader::reset(std::size_t max_bytes, Http2 http2, Switching switching) {
  switching_ = switching;
  max_bytes_ = max_bytes;
  bytes_ = 0;
  state_ = State::StatusLine;
  http2_ = http2;
}

OriginHeadReader::Step OriginHeadReader::take(std::string_view line) {
  if (line.size() > max_bytes_ - bytes_) return Step::Malformed;
  bytes_ += line.size();
  if (!line.ends_with("\r\n")) return Step::Malformed;
  line.remove_suffix(2);
  if (state_ == State::Trailers) return take_trailer(line);
  if (state_ == State::StatusLine) return take_status_line(line) ? Step::More : Step::Malformed;
  if (!line.empty()) return take_field(line) ? Step::More : Step::Malformed;

  if (head_.status < 200) {
    state_ = State::StatusLine;
    return Step::Interim;
  }
  state_ = State::Trailers;
  return Step::Complete;
}

// HTTP-version SP 3DIGIT [SP reason]; the last space is often left out when there is no reason.
bool OriginHeadReader::take_status_line(std::string_view line) {
  head_ = OriginHead{};
  is_coded_ = false;
  if (line.starts_with("HTTP/1.1 ")) {
    head_.version = 11;
  } else if (line.starts_with("HTTP/1.0 ")) {
    head_.version = 10;
  } else if (line.starts_with("HTTP/2 ") && http2_ == Http2::Accepted) {
    head_.version = 20;
  } else {
    return false;
  }
  line.remove_prefix(line.find(' ') + 1);
  if (line.size() < 3 || !std::all_of(line.begin(), line.begin() + 3, is_digit)) return false;
  head_.status = (line[0] - '0') * 100 + (line[1] - '0') * 10 + (line[2] - '0');
  line.remove_prefix(3);
  if (head_.status < 100 || (head_.status == 101 && switching_ == Switching::Refused)) return false;
  if (!line.empty() && line.front() != ' ') return false;
  if (!is_text(line)) return false;
  head_.reason = trim(line);
  head_.fields.reserve(kUsualHeadBytes, kUsualFields);
  state_ = State::Fields;
  return true;
}

bool OriginHeadReader::take_field(std::string_view line) {
  const auto field = parse_field(line);
  if (!field || !take_framing(field->name, field->value)) return false;
  head_.fields.add(field->name, field->value);
  return true;
}

OriginHeadReader::Step OriginHeadReader::take_trailer(std::string_view line) {
  if (line.empty()) return Step::More;
  const auto field = parse_field(line);
  if (!field) return Step::Malformed;
  trailer_ = *field;
  return Step::Trailer;
}

bool OriginHeadReader::take_framing(std::string_view name, std::string_view value) {
  if (equals_ignoring_case(name, "content-length")) {
    const auto length = parse_length(value);
    if (!length || is_coded_) return false;
    if (head_.content_length && head_.content_length != length) return false;
    head_.content_length = length;
  } else if (equals_ignoring_case(name, "transfer-encoding")) {
    if (head_.version != 11 || head_.content_length || is_coded_) return false;
    if (!equals_ignoring_case(value, "chunked") && !ends_with_connection(value)) return false;
    is_coded_ = true;
  }
  return true;
}

}  // namespace secondsight::proxy
