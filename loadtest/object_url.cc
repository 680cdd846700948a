#include "loadtest/object_url.h"

#include <charconv>

namespace secondsight::loadtest {
namespace {

constexpr std::string_view kPrefix = "/o/";

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace

std::string object_target(std::string_view key, std::uint64_t size_bytes) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string target(kPrefix);
  for (const char c : key) {
    if (is_unreserved(c)) {
      target += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      target += '%';
      target += kHex[byte >> 4];
      target += kHex[byte & 0xf];
    }
  }
  target += '/';
  target += std::to_string(size_bytes);
  return target;
}

std::optional<ObjectName> parse_object_target(std::string_view target) {
  if (!target.starts_with(kPrefix)) return std::nullopt;
  target.remove_prefix(kPrefix.size());
  const auto slash = target.find('/');
  if (slash == 0 || slash == std::string_view::npos) return std::nullopt;
  const std::string_view digits = target.substr(slash + 1);
  ObjectName object{target.substr(0, slash), 0};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), object.size_bytes);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return object;
}

}  // namespace secondsight::loadtest
