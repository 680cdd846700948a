#pragma once
#include "cache/object.h"
#include "cache/policy/facts.h"
#include "cache/policy/fields.h"
#include "config/clock.h"
#include "proxy/request.h"
#include "proxy/response.h"

namespace secondsight::proxy {

// What an exchange decides without waiting. Pure. proxy/explain.cc tells people the same decisions.

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

enum class Step : std::uint8_t {
  PassOn,                   // not the cache's business
  Serve,                    // the stored response
  ServeStaleAndRevalidate,  // it, while the origin is asked behind it
  Ask,                      // the origin: a fetch, or a validation where can_validate()
  Refuse,                   // 504: only-if-cached, and nothing that may be served
};
struct Decision {
  Step step = Step::Ask;
  Forward forward = Forward::UriMiss;  // why the origin is, or had to be, asked
};
/// What a request comes to. `stored` null: nothing is stored for it; `varies`: but other variants
/// may be.
Decision decide(const cache::policy::RequestFacts& request, const cache::ObjectHead* stored,
                bool varies, WallTime now);

/// Whether the cache is not asked: neither GET nor HEAD.
bool is_passed_on(const cache::policy::RequestFacts& request) noexcept;
/// Whether this request may ask the origin if the stored response is still good. RFC 9111 4.3.1.
bool can_validate(const cache::policy::RequestFacts& request,
                  const cache::policy::ResponseFacts& stored) noexcept;
/// Whether a fetch may follow behind the stale response that this request gets: it goes as a plain
/// GET, for all. RFC 5861 3.
bool may_revalidate_behind(const cache::policy::RequestFacts& request, bool has_body) noexcept;
/// Whether others may be answered by what this request fetches, and it by what others fetch. A
/// Range request only when it fetches the whole.
bool is_sharable(const cache::policy::RequestFacts& request, bool has_body) noexcept;

}  // namespace secondsight::proxy
