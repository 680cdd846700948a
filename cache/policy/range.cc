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

struct Unreadable {};
/// One member of a set: a range, or none of its bytes are there.
using Spec = std::variant<Unreadable, ByteRange, NotSatisfiable>;

/// "-500": the last bytes. RFC 9110 14.1.2.
Spec suffix_range(std::string_view length_text, std::uint64_t complete_bytes) {
  const auto length = parse_position(length_text);
  if (!length) return Unreadable{};
  if (*length == 0) return NotSatisfiable{};
  if (complete_bytes == 0) return Unreadable{};  // satisfiable, but there is no byte to name
  const std::uint64_t size = std::min(*length, complete_bytes);
  return ByteRange{complete_bytes - size, size};
}

Spec resolve(std::string_view spec, std::uint64_t complete_bytes) {
  const auto dash = spec.find('-');
  if (dash == std::string_view::npos) return Unreadable{};
  if (dash == 0) return suffix_range(spec.substr(1), complete_bytes);
  const auto first = parse_position(spec.substr(0, dash));
  const std::string_view last_text = spec.substr(dash + 1);
  const auto last = last_text.empty() ? std::optional(kMax) : parse_position(last_text);
  if (!first || !last || *last < *first) return Unreadable{};
  if (*first >= complete_bytes) return NotSatisfiable{};
  return ByteRange{*first, std::min(*last, complete_bytes - 1) - *first + 1};
}

/// The range-set of "bytes=...". Empty: another unit, no or several such lines.
std::optional<std::string_view> byte_range_set(const FieldBlock& request) {
  std::optional<std::string_view> value;
  for (const FieldLine line : request) {
    if (!equals_ignoring_case(line.name, "Range")) continue;
    if (value) return std::nullopt;
    value = line.value;
  }
  constexpr std::string_view kUnit = "bytes=";
  if (!value || !equals_ignoring_case(value->substr(0, kUnit.size()), kUnit)) return std::nullopt;
  return value->substr(kUnit.size());
}

/// Joins what overlaps or nearly touches; the result stands where the earliest of its members did.
void coalesce(ByteRanges& ranges) {
  struct Asked {
    ByteRange range;
    std::size_t place;
  };
  boost::container::small_vector<Asked, 8> sorted;
  for (std::size_t i = 0; i < ranges.size(); ++i) sorted.push_back({ranges[i], i});
  std::sort(sorted.begin(), sorted.end(),
            [](const Asked& a, const Asked& b) { return a.range.first < b.range.first; });
  boost::container::small_vector<Asked, 8> joined;
  for (const Asked& next : sorted) {
    if (joined.empty() || next.range.first > joined.back().range.end() + kRangeGapMax) {
      joined.push_back(next);
      continue;
    }
    Asked& last = joined.back();
    last.range.size = std::max(last.range.end(), next.range.end()) - last.range.first;
    last.place = std::min(last.place, next.place);
  }
  std::sort(joined.begin(), joined.end(),
            [](const Asked& a, const Asked& b) { return a.place < b.place; });
  ranges.clear();
  for (const Asked& asked : joined) ranges.push_back(asked.range);
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

std::variant<WholeBody, ByteRanges, NotSatisfiable> requested_ranges(const FieldBlock& request,
                                                                     const ResponseFacts& stored,
                                                                     std::uint64_t complete_bytes) {
  const auto set = byte_range_set(request);
  if (!set) return WholeBody{};
  const auto condition = request.find("If-Range");
  if (condition && !if_range_holds(*condition, stored)) return WholeBody{};
  ListMembers specs(*set);
  ByteRanges ranges;
  std::size_t count = 0;
  while (const auto spec = specs.next()) {
    if (++count > kRangesMax) return WholeBody{};
    const Spec resolved = resolve(*spec, complete_bytes);
    if (std::holds_alternative<Unreadable>(resolved)) return WholeBody{};
    if (const auto* range = std::get_if<ByteRange>(&resolved)) ranges.push_back(*range);
  }
  if (count == 0) return WholeBody{};
  if (ranges.empty()) return NotSatisfiable{};
  if (ranges.size() > 1) coalesce(ranges);
  return ranges;
}

std::optional<ContentRange> parse_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!equals_ignoring_case(text.substr(0, kUnit.size()), kUnit)) return std::nullopt;
  text = trim(text.substr(kUnit.size()));
  const auto dash = text.find('-');
  const auto slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash)
    return std::nullopt;
  const auto first = parse_position(text.substr(0, dash));
  const auto last = parse_position(text.substr(dash + 1, slash - dash - 1));
  if (!first || !last || *last < *first || *last == kMax) return std::nullopt;
  ContentRange range{{*first, *last - *first + 1}, std::nullopt};
  const std::string_view complete = text.substr(slash + 1);
  if (complete == "*") return range;
  range.complete_bytes = parse_position(complete);
  if (!range.complete_bytes || *last >= *range.complete_bytes) return std::nullopt;
  return range;
}

}  // namespace secondsight::cache::policy
