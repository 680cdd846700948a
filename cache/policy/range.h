#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include <boost/container/small_vector.hpp>

#include "cache/policy/facts.h"
#include "cache/policy/fields.h"

namespace secondsight::cache::policy {

/// Bytes [first, first + size) of a representation; size is never 0.
struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t size = 0;
  std::uint64_t end() const noexcept { return first + size; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};
/// At least one; apart from each other; in the order in which they were asked for.
using ByteRanges = boost::container::small_vector<ByteRange, 1>;
struct WholeBody {};       // no Range, one we do not serve in part, or If-Range said no
struct NotSatisfiable {};  // 416

/// A request for more ranges than this is answered with the whole (RFC 9110 14.2 allows it).
inline constexpr std::size_t kRangesMax = 64;
/// Ranges that overlap, or are no further apart than a part's own head takes, become one (RFC
/// 9110 15.3.7.2): nobody gets a byte twice.
inline constexpr std::uint64_t kRangeGapMax = 80;

/// What parts of a stored 200 of `complete_bytes` this request asks for. Units other than bytes and
/// sets with an unreadable member are answered with the whole (RFC 9110 14.2). If-Range by strong
/// comparison: 13.1.5.
std::variant<WholeBody, ByteRanges, NotSatisfiable> requested_ranges(const FieldBlock& request,
                                                                     const ResponseFacts& stored,
                                                                     std::uint64_t complete_bytes);

/// What the Content-Range of a 206 says of its body. RFC 9110 14.4.
struct ContentRange {
  ByteRange range;
  std::optional<std::uint64_t> complete_bytes;  // empty: "*"
  friend bool operator==(const ContentRange&, const ContentRange&) = default;
};
/// Empty for other units, "*" in place of the range (a 416's), ranges that end before they begin or
/// beyond the complete length, and for anything unreadable.
std::optional<ContentRange> parse_content_range(std::string_view text);

}  // namespace secondsight::cache::policy
