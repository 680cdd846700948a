#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "cache/policy/facts.h"
#include "cache/policy/fields.h"

namespace secondsight::cache::policy {

/// Bytes [first, first + size) of a representation; size is never 0.
struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t size = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};
struct WholeBody {};       // no Range, one we do not serve in part, or If-Range said no
struct NotSatisfiable {};  // 416

/// What part of a stored 200 of `complete_bytes` this request asks for. A single byte range is
/// served; several ranges, other units and unreadable ones are answered with the whole (RFC
/// 9110 14.2 allows it). If-Range by strong comparison: 13.1.5.
std::variant<WholeBody, ByteRange, NotSatisfiable> requested_range(const FieldBlock& request,
                                                                   const ResponseFacts& stored,
                                                                   std::uint64_t complete_bytes);

}  // namespace secondsight::cache::policy
