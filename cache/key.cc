#include "cache/key.h"

#include <optional>
#include <utility>

#include "cache/policy/vary.h"

namespace secondsight::cache {
namespace {

constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}
constexpr bool is_upper(char c) noexcept {
  return c >= 'A' && c <= 'Z';
}
constexpr bool is_lower(char c) noexcept {
  return c >= 'a' && c <= 'z';
}

/// RFC 3986 2.3.
constexpr bool is_unreserved(char c) noexcept {
  return is_digit(c) || is_upper(c) || is_lower(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

constexpr int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

void append_escape(char c, std::string_view hex_digits, std::string& out) {
  const auto byte = static_cast<unsigned char>(c);
  out.push_back('%');
  out.push_back(hex_digits[byte >> 4]);
  out.push_back(hex_digits[byte & 15]);
}

std::string_view without_default_port(std::string_view scheme, std::string_view host) {
  const auto colon = host.rfind(':');
  if (colon == std::string_view::npos) return host;
  const std::string_view port = host.substr(colon + 1);
  const bool is_default = port == (scheme == "https" ? "443" : "80");
  return port.empty() || is_default ? host.substr(0, colon) : host;
}

/// Whatever a host should not hold is escaped, "%" included, so that no host can reach into the
/// target.
void append_host(std::string_view host, std::string& out) {
  for (const char c : host) {
    if (is_upper(c)) {
      out.push_back(static_cast<char>(c | 0x20));
    } else if (is_unreserved(c) || c == ':' || c == '[' || c == ']') {
      out.push_back(c);
    } else {
      append_escape(c, "0123456789ABCDEF", out);
    }
  }
}

/// RFC 3986 6.2.2. Empty when an escape is broken: whatever we made of it could be another's
/// target.
std::optional<std::string> normalised_escapes(std::string_view target) {
  std::string out;
  out.reserve(target.size());
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] != '%') {
      out.push_back(target[i]);
      continue;
    }
    const int high = i + 2 < target.size() ? hex_value(target[i + 1]) : -1;
    const int low = i + 2 < target.size() ? hex_value(target[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    const auto c = static_cast<char>(high << 4 | low);
    if (is_unreserved(c)) {
      out.push_back(c);
    } else {
      append_escape(c, "0123456789ABCDEF", out);
    }
    i += 2;
  }
  return out;
}

void append_target(std::string_view target, std::string& out) {
  if (target.empty() || target.front() == '?') out.push_back('/');
  std::optional<std::string> normalised;
  if (target.find('%') != std::string_view::npos) normalised = normalised_escapes(target);
  for (const char c : normalised ? std::string_view(*normalised) : target) {
    if (c == '\n') {
      // Parsing lets no raw line feed through; should one come, it must not read as a variant's.
      // Lower-case digits, because a received escape ends up in upper case.
      append_escape(c, "0123456789abcdef", out);
    } else {
      out.push_back(c);
    }
  }
}

}  // namespace

CacheKey::CacheKey(std::string text, const admission::Fingerprint& fingerprint)
    : text_(std::move(text)), fingerprint_(fingerprint) {}

CacheKey CacheKey::primary(std::string_view scheme, std::string_view host, std::string_view target,
                           const admission::FingerprintSeed& seed) {
  std::string text;
  text.reserve(scheme.size() + host.size() + target.size() + 4);
  text.append(scheme).append("://");
  append_host(without_default_port(scheme, host), text);
  append_target(target, text);
  const admission::Fingerprint fingerprint = seed.fingerprint_of(text);
  return {std::move(text), fingerprint};
}

CacheKey CacheKey::from_stored(std::string text, const admission::Fingerprint& fingerprint) {
  return {std::move(text), fingerprint};
}

CacheKey CacheKey::variant(const std::vector<std::string>& vary, WallTime epoch,
                           const policy::FieldBlock& request,
                           const admission::FingerprintSeed& seed) const {
  return variant(policy::vary_text(vary, request), epoch, seed);
}

CacheKey CacheKey::variant(std::string_view vary_text, WallTime epoch,
                           const admission::FingerprintSeed& seed) const {
  std::string text = text_ + '\n';
  if (epoch != WallTime{})
    text.append("@").append(std::to_string(epoch.time_since_epoch().count())).append("\n");
  text.append(vary_text);
  const admission::Fingerprint fingerprint = seed.fingerprint_of(text);
  return {std::move(text), fingerprint};
}

}  // namespace secondsight::cache
