#include "config/site_words.h"

#include <algorithm>
#include <array>

#include "config/quote.h"

namespace secondsight {
namespace {

constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kUpper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view kDigits = "0123456789";
constexpr std::size_t kHostBytesMax = 253;  // a name in DNS

bool is_any_of(std::string_view set, char c) {
  return set.find(c) != std::string_view::npos;
}

bool is_alphanumeric(char c) {
  return is_any_of(kLower, c) || is_any_of(kUpper, c) || is_any_of(kDigits, c);
}

std::string in_lower_case(std::string text) {
  for (char& c : text)
    if (is_any_of(kUpper, c)) c = static_cast<char>(c | 0x20);
  return text;
}

/// Labels of letters, digits, "-" and "_" between dots. An IPv4 address looks the same.
bool is_name(std::string_view text) {
  if (text.size() > kHostBytesMax) return false;
  bool label_is_empty = true;
  for (const char c : text) {
    if (c == '.' && label_is_empty) return false;
    label_is_empty = c == '.';
    if (c != '.' && !is_alphanumeric(c) && c != '-' && c != '_') return false;
  }
  return !label_is_empty;
}

bool is_bracketed_address(std::string_view text) {
  constexpr std::string_view kAddressBytes = "0123456789abcdef:.";
  return text.size() >= 4 && text.front() == '[' && text.back() == ']' &&
         text.find_first_not_of(kAddressBytes, 1) == text.size() - 1;
}

/// RFC 9110 5.6.2.
bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_alphanumeric(c) || is_any_of("!#$%&'*+-.^_`|~", c);
  });
}

struct UnfitFields {
  std::string_view reason;
  std::array<std::string_view, 10> names;
};
constexpr std::array kUnfitFields{
    UnfitFields{"belongs to one connection (RFC 9110 7.6.1) and never reaches the origin, which "
                "cannot answer by it",
                {"connection", "keep-alive", "proxy-connection", "proxy-authentication-info",
                 "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
                 "upgrade"}},
    UnfitFields{"is in every key already", {"host"}},
    UnfitFields{"holds all cookies of a client, so that no two clients would share; name those "
                "that matter in key_cookies",
                {"cookie"}},
    UnfitFields{"names one user, while what is stored answers all (RFC 9111 3.5); let the origin "
                "say what may be shared",
                {"authorization"}},
    UnfitFields{"is answered by the cache itself, from one stored response for all its values",
                {"range", "if-range", "if-match", "if-none-match", "if-modified-since",
                 "if-unmodified-since", "cache-control", "pragma"}},
    UnfitFields{"tells how one message travels, not what is asked for",
                {"content-length", "expect", "via", "max-forwards"}},
};

}  // namespace

std::string read_site_host(std::string& word) {
  if (word == "*") return {};
  if (const std::string lower = in_lower_case(word); lower != word)
    return "must be in lower case: " + quoted(lower);
  if (is_bracketed_address(word)) return {};
  if (word.find('/') != std::string::npos) return "is a URL or a path; write the host alone";
  std::string_view name = word;
  if (name.starts_with("*.")) name.remove_prefix(2);
  if (name.find('*') != std::string_view::npos) {
    return "may have its * only in front, as in \"*.example.com\", or stand for all others as "
           "\"*\"";
  }
  if (const auto colon = name.rfind(':'); colon != std::string_view::npos) {
    if (is_name(name.substr(0, colon)) || is_bracketed_address(name.substr(0, colon)))
      return "must have no port: rules hold for every port of a host";
    return "is not a host; write an IPv6 address in brackets, as in \"[::1]\"";
  }
  if (!is_name(name)) return "is not a host; write a name, such as \"example.com\"";
  return {};
}

std::string read_param_name(std::string& word) {
  if (word.empty()) return "must not be empty";
  const std::string_view name = word;
  if (const auto star = name.find('*'); star != std::string_view::npos && star + 1 != name.size())
    return "may have a * only at its end, as in \"utm_*\"";
  if (name.find_first_of("&=?#") != std::string_view::npos)
    return "must be a name alone, without any of & = ? #";
  const bool is_visible =
      std::all_of(name.begin(), name.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (!is_visible) return "must be spelled as in a URL, such as %20 for a blank";
  for (auto at = name.find('%'); at != std::string_view::npos; at = name.find('%', at + 1)) {
    constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
    if (name.size() - at < 3 || !is_any_of(kHexDigits, name[at + 1]) ||
        !is_any_of(kHexDigits, name[at + 2])) {
      return "has a % without two hexadecimal digits; write %25 for the sign itself";
    }
  }
  return {};
}

std::string read_key_header(std::string& word) {
  if (!is_token(word)) return "is not a field name, such as \"X-Tenant\"";
  word = in_lower_case(std::move(word));
  for (const UnfitFields& unfit : kUnfitFields) {
    if (std::find(unfit.names.begin(), unfit.names.end(), word) != unfit.names.end())
      return std::string{unfit.reason};
  }
  return {};
}

std::string read_key_cookie(std::string& word) {
  return is_token(word) ? "" : "is not a cookie's name, such as \"lang\"";
}

}  // namespace secondsight
