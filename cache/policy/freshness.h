#pragma once
#include <string_view>

#include "cache/policy/facts.h"

namespace secondsight::cache::policy {

/// Why a response may not be kept; the name in lower case with dashes is the Cache-Status detail.
enum class Storability : std::uint8_t {
  Storable,
  Method,  // only GET responses are kept
  RequestNoStore,
  NoStore,
  Private,
  Authorization,  // RFC 9111 3.5
  Status,         // not final, 206, 304, or not understood
  VaryAny,        // Vary: *
  NoLifetime,     // no later request could use it: neither fresh nor stale nor validated
  Outdated,       // an unsafe request changed the resource while it was fetched
};
std::string_view to_string(Storability) noexcept;

/// May a shared cache keep this response, and could it ever use it? RFC 9111 3; Authorization: 3.5.
///
/// Stricter than the RFC in two ways: what has no validator and could be used neither fresh nor
/// stale is refused (NoLifetime), and so is a Set-Cookie whose response is not explicitly fresh or
/// public.
Storability storability(const RequestFacts&, const ResponseFacts&);

/// Whether it came so old (through another cache, or with an Expires in the past) that it has no
/// use left: no validator, stale, and either no stale use is allowed at all or its lifetime is zero
/// and stale-while-revalidate and stale-if-error have passed. What was fresh once may still answer
/// a request with max-stale.
bool is_stale_for_good(const ResponseFacts&, const ExchangeTimes&, const HeuristicLimits&,
                       WallTime now);

/// Seconds this response stays fresh, counted from its origin: s-maxage, then max-age, then
/// Expires - Date, then the heuristic (only for statuses of RFC 9110 15.1, or public). Zero to
/// 2^31. Without a readable Date it counts from when the response was received. No
/// longer than until a purge made it stale. RFC 9111 4.2.1, 4.2.2.
Seconds freshness_lifetime(const ResponseFacts&, const ExchangeTimes&, const HeuristicLimits&);

/// What freshness_lifetime() takes its number from, for people.
enum class LifetimeSource : std::uint8_t { SMaxage, MaxAge, Expires, Heuristic, None };
LifetimeSource lifetime_source(const ResponseFacts&) noexcept;
/// "s-maxage", "max-age", "expires", "heuristic", "none".
std::string_view to_string(LifetimeSource) noexcept;

/// The field's name: "CDN-Cache-Control", "Surrogate-Control", "Cache-Control".
std::string_view to_string(DirectiveSource) noexcept;

/// Age at `now`, never negative even when `now` runs behind the stored times. RFC 9111 4.2.3.
Seconds current_age(const ResponseFacts&, const ExchangeTimes&, WallTime now);

/// Moves the Age field's value into the times, so that the stored head needs no Age field: the ages
/// that current_age() gives stay the same. Call it once, when a response is stored or freshened.
void fold_age(ResponseFacts&, ExchangeTimes&);

/// The directive that forbids every stale use of a response, no-cache included; empty: none does.
std::string_view stale_veto(const ResponseDirectives&) noexcept;

enum class Use : std::uint8_t { Serve, ServeStaleAndRevalidate, Validate };

/// What may be done with a stored response, given both sides' directives. RFC 9111 4.2.4, 5.2.1;
/// stale-while-revalidate: RFC 5861 3. must-revalidate, proxy-revalidate and s-maxage (which
/// includes it, 5.2.2.10) forbid every stale use.
Use choose_use(const RequestFacts&, const ResponseFacts&, const ExchangeTimes&,
               const HeuristicLimits&, WallTime now);

/// Whether this status of the origin stands for an error that a stale response may hide. RFC 5861
/// 4.
bool is_error_to_hide(int status) noexcept;

/// May the stored response answer although validation failed (origin down, or is_error_to_hide)?
/// Within stale-if-error of either side; where the response says nothing, within `configured`,
/// unless the request itself bounds age or freshness. Never with must-revalidate, proxy-revalidate,
/// s-maxage, no-cache. RFC 5861 4, RFC 9111 4.2.4.
bool may_serve_on_error(const RequestFacts&, const ResponseFacts&, const ExchangeTimes&,
                        const HeuristicLimits&, Seconds configured, WallTime now);

}  // namespace secondsight::cache::policy
