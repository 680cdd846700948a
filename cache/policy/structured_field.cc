#include "cache/policy/structured_field.h"

#include <algorithm>
#include <cstddef>

#include "cache/policy/list.h"

namespace secondsight::cache::policy {
namespace {

using Type = StructuredValue::Type;

constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}
constexpr bool is_lower(char c) noexcept {
  return c >= 'a' && c <= 'z';
}
constexpr bool is_alpha(char c) noexcept {
  return is_lower(c) || (c >= 'A' && c <= 'Z');
}
constexpr bool is_printable(char c) noexcept {
  return c >= ' ' && c <= '~';
}

/// A digit of lower-case hexadecimal; -1 for anything else.
constexpr int hex_digit(char c) noexcept {
  if (is_digit(c)) return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/// Whether base64 decoding succeeds: padding may be missing, the bits it covers may be anything.
/// RFC 9651 4.2.7.
bool is_base64(std::string_view text) noexcept {
  std::string_view digits = text;
  while (!digits.empty() && digits.back() == '=') digits.remove_suffix(1);
  const std::size_t padding = text.size() - digits.size();
  if (padding > 2 || (padding > 0 && text.size() % 4 != 0) || digits.size() % 4 == 1) return false;
  return std::all_of(digits.begin(), digits.end(),
                     [](char c) { return is_alpha(c) || is_digit(c) || c == '+' || c == '/'; });
}

/// Checks UTF-8 byte by byte: no overlong forms, no surrogates, nothing above U+10FFFF. RFC 3629.
class Utf8Check {
 public:
  bool add(unsigned byte) noexcept {
    if (missing_ > 0) {
      const bool fits = byte >= low_ && byte <= high_;
      low_ = 0x80;
      high_ = 0xbf;
      --missing_;
      return fits;
    }
    if (byte < 0x80) return true;
    if (byte < 0xc2 || byte > 0xf4) return false;
    missing_ = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    if (byte == 0xe0) low_ = 0xa0;
    if (byte == 0xed) high_ = 0x9f;
    if (byte == 0xf0) low_ = 0x90;
    if (byte == 0xf4) high_ = 0x8f;
    return true;
  }
  bool complete() const noexcept { return missing_ == 0; }

 private:
  int missing_ = 0;
  unsigned low_ = 0x80, high_ = 0xbf;  // what the next continuation byte may be
};

/// Takes pieces off the front of a text, as RFC 9651 4.2 does. Once a piece does not fit,
/// everything after fails.
class Scanner {
 public:
  explicit Scanner(std::string_view text) noexcept : rest_(text) {}

  bool ok() const noexcept { return ok_; }
  bool at_end() const noexcept { return rest_.empty(); }
  std::string_view rest() const noexcept { return rest_; }

  bool take(char expected) noexcept {
    if (!next_is(expected)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void skip(std::string_view blanks) noexcept {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(blanks), rest_.size()));
  }

  std::string_view key() noexcept {
    if (at_end() || (!is_lower(rest_.front()) && rest_.front() != '*')) return fail().text;
    return take_while([](char c) {
      return is_lower(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == '*';
    });
  }

  StructuredValue item_or_inner_list() noexcept { return next_is('(') ? inner_list() : item(); }

  void parameters() noexcept {
    while (ok_ && take(';')) {
      skip(" ");
      key();
      if (ok_ && take('=')) bare_item();
    }
  }

 private:
  bool next_is(char c) const noexcept { return !rest_.empty() && rest_.front() == c; }

  StructuredValue fail() noexcept {
    ok_ = false;
    return {};
  }

  template <class Fits>
  std::string_view take_while(Fits fits) noexcept {
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), fits);
    return take_front(static_cast<std::size_t>(end - rest_.begin()));
  }

  std::string_view take_front(std::size_t size) noexcept {
    const std::string_view front = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return front;
  }

  StructuredValue item() noexcept {
    const StructuredValue value = bare_item();
    parameters();
    return value;
  }

  StructuredValue inner_list() noexcept {
    take('(');
    const std::string_view from = rest_;
    for (skip(" "); ok_ && !take(')'); skip(" ")) {
      item();
      if (!next_is(' ') && !next_is(')')) fail();
    }
    if (!ok_) return {};
    const StructuredValue list{Type::InnerList, 0, from.substr(0, from.size() - rest_.size() - 1)};
    parameters();
    return list;
  }

  StructuredValue bare_item() noexcept {
    if (at_end()) return fail();
    const char first = rest_.front();
    if (first == '-' || is_digit(first)) return number();
    if (first == '*' || is_alpha(first)) return token();
    switch (first) {
      case '"':
        return string();
      case ':':
        return byte_sequence();
      case '?':
        return boolean();
      case '@':
        return date();
      case '%':
        return display_string();
      default:
        return fail();
    }
  }

  /// At most 15 digits; as a decimal at most 12 before the point and one to three behind it.
  StructuredValue number() noexcept {
    const bool is_negative = take('-');
    const std::string_view whole = take_while(is_digit);
    if (whole.empty() || whole.size() > 15) return fail();
    std::int64_t magnitude = 0;
    for (const char c : whole) magnitude = magnitude * 10 + (c - '0');
    Type type = Type::Integer;
    if (take('.')) {
      type = Type::Decimal;
      const std::string_view fraction = take_while(is_digit);
      if (whole.size() > 12 || fraction.empty() || fraction.size() > 3) return fail();
      for (std::size_t i = 0; i < 3; ++i)
        magnitude = magnitude * 10 + (i < fraction.size() ? fraction[i] - '0' : 0);
    }
    return {type, is_negative ? -magnitude : magnitude, {}};
  }

  StructuredValue string() noexcept {
    take('"');
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        const std::string_view text = take_front(i);
        take('"');
        return {Type::String, 0, text};
      }
      if (!is_printable(rest_[i])) break;
      if (rest_[i] != '\\') continue;
      ++i;
      if (i == rest_.size() || (rest_[i] != '"' && rest_[i] != '\\')) break;
    }
    return fail();
  }

  StructuredValue token() noexcept {
    const std::string_view text = take_while([](char c) {
      return c == ':' || c == '/' || is_token({&c, 1});
    });
    return {Type::Token, 0, text};
  }

  StructuredValue byte_sequence() noexcept {
    take(':');
    const auto end = rest_.find(':');
    if (end == std::string_view::npos || !is_base64(rest_.substr(0, end))) return fail();
    const std::string_view text = take_front(end);
    take(':');
    return {Type::ByteSequence, 0, text};
  }

  StructuredValue boolean() noexcept {
    take('?');
    if (take('1')) return {Type::Boolean, 1, {}};
    if (take('0')) return {Type::Boolean, 0, {}};
    return fail();
  }

  StructuredValue date() noexcept {
    take('@');
    StructuredValue seconds = number();
    if (ok_ && seconds.type != Type::Integer) fail();
    seconds.type = Type::Date;
    return seconds;
  }

  /// %"..." with lower-case percent escapes that decode to UTF-8.
  StructuredValue display_string() noexcept {
    take('%');
    if (!take('"')) return fail();
    Utf8Check utf8;
    for (std::size_t i = 0; i < rest_.size() && is_printable(rest_[i]); ++i) {
      if (rest_[i] == '"') {
        if (!utf8.complete()) break;
        const std::string_view text = take_front(i);
        take('"');
        return {Type::DisplayString, 0, text};
      }
      int byte = rest_[i];
      if (rest_[i] == '%') {
        if (rest_.size() - i < 3) break;
        const int high = hex_digit(rest_[i + 1]);
        const int low = hex_digit(rest_[i + 2]);
        if (high < 0 || low < 0) break;
        byte = high * 16 + low;
        i += 2;
      }
      if (!utf8.add(static_cast<unsigned>(byte))) break;
    }
    return fail();
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace

DictionaryMembers::DictionaryMembers(std::string_view field_value) noexcept : rest_(field_value) {
  const auto first = rest_.find_first_not_of(' ');
  rest_ = first == std::string_view::npos
              ? std::string_view{}
              : rest_.substr(first, rest_.find_last_not_of(' ') - first + 1);
}

std::optional<DictionaryMember> DictionaryMembers::next() noexcept {
  if (failed_ || rest_.empty()) return std::nullopt;
  Scanner in(rest_);
  DictionaryMember member;
  member.key = in.key();
  if (in.ok() && in.take('=')) {
    member.value = in.item_or_inner_list();
  } else {
    in.parameters();  // and the value is true
  }
  in.skip(" \t");
  if (in.ok() && !in.at_end()) {
    const bool is_separated = in.take(',');
    in.skip(" \t");
    failed_ = !is_separated || in.at_end();  // a comma at the end is an error
  }
  failed_ = failed_ || !in.ok();
  rest_ = in.rest();
  if (failed_) return std::nullopt;
  return member;
}

}  // namespace secondsight::cache::policy
