#include "cache/target.h"

#include <algorithm>

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

bool has_whole_escapes(std::string_view text) noexcept {
  for (auto at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 3))
    if (text.size() - at < 3 || hex_value(text[at + 1]) < 0 || hex_value(text[at + 2]) < 0)
      return false;
  return true;
}

void append_byte(char c, std::string& out) {
  if (c == '\n') {
    // Parsing lets no raw line feed through; should one come, it must not read as a key's own.
    // Lower-case digits, because a received escape ends up in upper case.
    append_escape(c, "0123456789abcdef", out);
  } else {
    out.push_back(c);
  }
}

/// In place, in what begins at `begin` with "/". RFC 3986 5.2.4, whose output buffer is the part
/// that has been read.
void remove_dot_segments(std::string& text, std::size_t begin) {
  std::size_t out = begin;
  for (std::size_t slash = begin; slash < text.size();) {
    const std::size_t end = std::min(text.find('/', slash + 1), text.size());
    const std::string_view segment = std::string_view(text).substr(slash + 1, end - slash - 1);
    if (segment == "." || segment == "..") {
      if (segment.size() == 2 && out > begin) out = text.rfind('/', out - 1);
      if (end == text.size()) text[out++] = '/';
    } else {
      std::copy(text.begin() + static_cast<std::ptrdiff_t>(slash),
                text.begin() + static_cast<std::ptrdiff_t>(end),
                text.begin() + static_cast<std::ptrdiff_t>(out));
      out += end - slash;
    }
    slash = end;
  }
  text.resize(out);
}

}  // namespace

/// Whatever a host should not hold is escaped, "%" included, so that no host can reach into the
/// target.
void append_host(std::string_view scheme, std::string_view host, std::string& out) {
  for (const char c : without_default_port(scheme, host)) {
    if (is_upper(c)) {
      out.push_back(static_cast<char>(c | 0x20));
    } else if (is_unreserved(c) || c == ':' || c == '[' || c == ']') {
      out.push_back(c);
    } else {
      append_escape(c, "0123456789ABCDEF", out);
    }
  }
}

bool append_normalised(std::string_view text, std::string& out) {
  if (text.find('%') == std::string_view::npos && text.find('\n') == std::string_view::npos) {
    out.append(text);
    return true;
  }
  if (!has_whole_escapes(text)) {
    for (const char c : text) append_byte(c, out);
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      append_byte(text[i], out);
      continue;
    }
    const auto c = static_cast<char>(hex_value(text[i + 1]) << 4 | hex_value(text[i + 2]));
    if (is_unreserved(c)) {
      out.push_back(c);
    } else {
      append_escape(c, "0123456789ABCDEF", out);
    }
    i += 2;
  }
  return true;
}

void append_target(std::string_view target, std::string& out) {
  if (target.empty() || target.front() == '?') out.push_back('/');
  append_normalised(target, out);
}

void append_path_without_dots(std::string_view path, std::string& out) {
  if (path.empty()) {
    out.push_back('/');
    return;
  }
  const std::size_t begin = out.size();
  if (append_normalised(path, out) && path.front() == '/') remove_dot_segments(out, begin);
}

std::string target_without_dots(std::string_view target) {
  const std::size_t path_size = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, path_size);
  // Every dot segment has its slash before it, and its first dot may be escaped.
  if (path.find("/.") == std::string_view::npos && path.find("/%2") == std::string_view::npos)
    return std::string(target);
  std::string normalised;
  normalised.reserve(target.size());
  append_normalised(path, normalised);
  std::string rewritten;
  rewritten.reserve(target.size());
  append_path_without_dots(path, rewritten);
  if (rewritten == normalised) return std::string(target);
  return rewritten.append(target.substr(path_size));
}

}  // namespace secondsight::cache
