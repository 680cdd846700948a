#pragma once
#include <algorithm>
#include <array>
#include <string_view>

namespace secondsight::proxy {

/// A set of bytes, asked with one look-up each.
class CharSet {
 public:
  explicit constexpr CharSet(std::string_view members) {
    for (const char c : members) holds_[static_cast<unsigned char>(c)] = true;
  }
  constexpr bool has(char c) const noexcept { return holds_[static_cast<unsigned char>(c)]; }
  constexpr bool has_all(std::string_view text) const noexcept {
    return std::all_of(text.begin(), text.end(), [this](char c) { return has(c); });
  }

 private:
  std::array<bool, 256> holds_{};
};

inline constexpr CharSet kDigits{"0123456789"};
inline constexpr CharSet kHexDigits{"0123456789abcdefABCDEF"};
/// RFC 9110 5.6.2.
inline constexpr CharSet kTokenChars{
    "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"};

constexpr char ascii_lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

}  // namespace secondsight::proxy
