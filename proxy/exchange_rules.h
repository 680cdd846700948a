#pragma once
#include "cache/object.h"
#include "cache/policy/facts.h"
#include "cache/policy/fields.h"
#include "config/clock.h"
#include "proxy/request.h"

namespace secondsight::proxy {

// What an exchange decides without waiting. Pure.

inline constexpr cache::policy::HeuristicLimits kHeuristic{};

/// Whether a response to this request has a body. RFC 9110 6.4.1.
bool has_response_body(const Request& request, int status) noexcept;

/// Whether fields may follow the body on their way to this client. RFC 9110 6.5.1, 10.1.4.
bool accepts_trailers(const Request& request);

/// What the origin gets of the client's fields: end-to-end ones, the Host that counts, our Via.
/// Without Content-Length and Expect, which the fetch sends itself. RFC 9110 7.6.
cache::policy::FieldBlock forwarded_fields(const Request& request);

/// Freshness left at `now`; negative: stale.
Seconds time_to_live(const cache::ObjectHead& head, WallTime now);

}  // namespace secondsight::proxy
