#include "cache/policy/range.h"

#include <algorithm>
#include <limits>

#include "cache/policy/http_date.h"
#include "cache/policy/list.h"
#include "cache/policy/validation.h"

namespace secondsight::cache::policy {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

/// Decimal, capped at 2^64 - 1: no representation is that long. Empty when not a number.
std::optional<std::uint64_t> parse_position(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    value = value > (kMax - digit) / 10 ? kMax : value * 10 + digit;
  }
  return value;
}

using Answer = std::variant<WholeBody, ByteRange, NotSatisfiable>;

/// "-500": the last bytes. RFC 9110 14.1.2.
Answer suffix_range(std::string_view length_text, std::uint64_t complete_bytes) {
  const auto length = parse_position(length_text);
  if (!length) return WholeBody{};
  if (*length == 0) return NotSatisfiable{};
  if (complete_bytes == 0) return WholeBody{};  // satisfiable, but there is no byte to name
  const std::uint64_t size = std::min(*length, complete_bytes);
  return ByteRange{complete_bytes - size, size};
}

Answer resolve(std::string_view spec, std::uint64_t complete_bytes) {
  const auto dash = spec.find('-');
  if (dash == std::string_view::npos) return WholeBody{};
  if (dash == 0) return suffix_range(spec.substr(1), complete_bytes);
  const auto first = parse_position(spec.substr(0, dash));
  const std::string_view last_text = spec.substr(dash + 1);
  const auto last = last_text.empty() ? std::optional(kMax) : parse_position(last_text);
  if (!first || !last || *last < *first) return WholeBody{};
  if (*first >= complete_bytes) return NotSatisfiable{};
  return ByteRange{*first, std::min(*last, complete_bytes - 1) - *first + 1};
}

/// The one range-spec of "bytes=...". Empty: another unit, several, none, or unreadable.
std::optional<std::string_view> single_byte_range(const FieldBlock& request) {
  std::optional<std::string_view> value;
  for (const FieldLine line : request) {
    if (!equals_ignoring_case(line.name, "Range")) continue;
    if (value) return std::nullopt;
    value = line.value;
  }
  constexpr std::string_view kUnit = "bytes=";
  if (!value || !equals_ignoring_case(value->substr(0, kUnit.size()), kUnit)) return std::nullopt;
  ListMembers specs(value->substr(kUnit.size()));
  const auto spec = specs.next();
  if (specs.next()) return std::nullopt;
  return spec;
}

/// RFC 9110 13.1.5. A date is strong enough only when the origin's clock had moved on (8.8.2.2).
bool if_range_holds(std::string_view condition, const ResponseFacts& stored) {
  if (condition.find('"') != std::string_view::npos)
    return matches_strongly(condition, stored.etag);
  if (!stored.last_modified || !stored.date) return false;
  if (*stored.date - *stored.last_modified < Seconds{1}) return false;
  return parse_http_date(condition, *stored.last_modified) == stored.last_modified;
}

}  // namespace

Answer requested_range(const FieldBlock& request, const ResponseFacts& stored,
                       std::uint64_t complete_bytes) {
  const auto spec = single_byte_range(request);
  if (!spec) return WholeBody{};
  const auto condition = request.find("If-Range");
  if (condition && !if_range_holds(*condition, stored)) return WholeBody{};
  return resolve(*spec, complete_bytes);
}

}  // namespace secondsight::cache::policy
