#pragma once
#include <string_view>

#include "cache/policy/facts.h"

namespace secondsight::cache::policy {

/// Why a response may not be kept; the name in lower case with dashes is the Cache-Status detail.
enum class Storability : std::uint8_t {
  Storable,
  Method,         // only GET responses are kept
  RequestNoStore,
  NoStore,
  Private,
  Authorization,  // RFC 9111 3.5
  Status,         // not final, 206, 304, or not understood
  VaryAny,        // Vary: *
  NoLifetime,     // neither explicit nor heuristic freshness nor a validator
};
std::string_view to_string(Storability) noexcept;

/// May a shared cache keep this response? RFC 9111 3; Authorization: 3.5.
Storability storability(const RequestFacts&, const ResponseFacts&);

/// Seconds this response stays fresh, counted from its origin: s-maxage, then max-age, then
/// Expires - Date, then the heuristic. Zero or more. RFC 9111 4.2.1, 4.2.2.
Seconds freshness_lifetime(const ResponseFacts&, const HeuristicLimits&);

/// Age at `now`, never negative even when `now` runs behind the stored times. RFC 9111 4.2.3.
Seconds current_age(const ResponseFacts&, const ExchangeTimes&, WallTime now);

enum class Use : std::uint8_t { Serve, ServeStaleAndRevalidate, Validate };

/// What may be done with a stored response, given both sides' directives. RFC 9111 4.2.4, 5.2.1.
Use choose_use(const RequestFacts&, const ResponseFacts&, const ExchangeTimes&,
               const HeuristicLimits&, WallTime now);

/// May the stored response answer although validation failed (origin down or 5xx)? Within
/// stale-if-error and only without must-revalidate, proxy-revalidate, s-maxage, no-cache.
/// RFC 5861 4, RFC 9111 4.2.4.
bool may_serve_on_error(const RequestFacts&, const ResponseFacts&, const ExchangeTimes&,
                        const HeuristicLimits&, WallTime now);

}  // namespace secondsight::cache::policy
