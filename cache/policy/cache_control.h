#pragma once
#include <string_view>

#include "cache/policy/facts.h"

namespace secondsight::cache::policy {

/// The largest delta-seconds: what overflows is read as this. RFC 9111 1.2.2.
inline constexpr Seconds kDeltaSecondsMax{std::int64_t{1} << 31};

/// Non-negative decimal seconds, capped at kDeltaSecondsMax; empty when the text has anything else.
std::optional<Seconds> parse_delta_seconds(std::string_view text) noexcept;

/// Adds what one Cache-Control line of a response says to what earlier lines said. RFC 9111 5.2.2.
///
/// Names in any case; values as tokens or quoted strings. Of repeated directives the strictest
/// value counts. What restricts caching counts even when its member is malformed; what permits it
/// (public, must-understand) only when it is well formed. An unreadable number is 0. A quote that
/// is never closed hides what follows: no-store and private. The field-qualified forms
/// private="..." and no-cache="..." count as unqualified.
void read_cache_control(std::string_view line, ResponseDirectives& directives);

/// The same for a request. RFC 9111 5.2.1. A quote that is never closed: no-store and no-cache.
void read_cache_control(std::string_view line, RequestFacts& facts);

}  // namespace secondsight::cache::policy
