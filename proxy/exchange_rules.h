#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admission/admission_policy.h"
#include "cache/object.h"
#include "cache/policy/facts.h"
#include "cache/policy/fields.h"
#include "config/clock.h"
#include "proxy/request.h"
#include "proxy/response.h"
#include "proxy/selection.h"

namespace secondsight::cache {
struct TaggedVariant;
}

namespace secondsight::proxy {

// What an exchange decides without waiting. Pure. proxy/explain.cc tells people the same decisions.

inline constexpr cache::policy::HeuristicLimits kHeuristic{};

/// Whether a response to this request has a body. RFC 9110 6.4.1.
bool has_response_body(const Request& request, int status) noexcept;

/// Whether fields may follow the body on their way to this client. RFC 9110 6.5.1, 10.1.4.
bool accepts_trailers(const Request& request);

/// The protocols, as a list, that this request may be upgraded to by the origin; empty: it is to go
/// the ordinary way. Only a GET of HTTP/1.1 without a body whose Connection names Upgrade; never
/// h2c, which is no protocol to pass through unread. RFC 9110 7.8, RFC 9113 3.1.
std::string upgrade_protocols(const Request& request);
/// The whole head of such a request for the origin.
std::string upgrade_request(const Request& request, std::string_view target,
                            std::string_view protocols);
/// Whether a 101 agrees to one of them.
bool is_agreed(const cache::policy::FieldBlock& fields, std::string_view protocols);

/// How many more proxies an OPTIONS or TRACE may pass; empty: no limit, or one that cannot be read.
/// Other methods have none. RFC 9110 7.6.2.
std::optional<std::uint64_t> max_forwards(const Request& request);
/// Why a request that is passed on goes no further than here, and is answered at once.
enum class OwnAnswer : std::uint8_t {
  None,         // it goes on
  TraceBody,    // 400: a TRACE has none. RFC 9110 9.3.8
  MaxForwards,  // 200: it may pass no more proxies. RFC 9110 7.6.2
};
OwnAnswer own_answer(const Request& request);
/// The detail of Cache-Status; empty for None.
std::string_view to_string(OwnAnswer) noexcept;
/// The head as it came, for who sent it: without fields that carry credentials or the like. RFC
/// 9110 9.3.8.
std::string traced_head(const Request& request);

/// What the origin gets of the client's fields: end-to-end ones, the Host that counts, our Via, a
/// Max-Forwards that counts less by one.
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

/// May the stored response answer for an origin that fails, or is spared because it did? RFC 5861
/// 4.
bool may_stand_in(const cache::policy::RequestFacts& request, const cache::ObjectHead& stored,
                  std::chrono::milliseconds configured, WallTime now);

/// The entity tags that a request without a stored variant of its own names to the origin: each
/// once. RFC 9111 4.3.1.
std::vector<std::string> tags_to_name(const std::vector<cache::TaggedVariant>& variants);

/// Whether this request gets parts of a response with that head: a Range counts for GET alone (RFC
/// 9110 14.2), and there are parts of a 200 only.
bool wants_parts_of(const cache::policy::RequestFacts& request,
                    const cache::ObjectHead& head) noexcept;

/// Whether a Range request for which no whole is stored may be answered from a part that is kept.
bool may_use_part(const cache::policy::RequestFacts& request, const cache::ObjectHead& part,
                  WallTime now);
/// Whether all that is asked for lies within the bytes that are kept.
bool lies_within(const Selection& parts, const cache::policy::ByteRange& held) noexcept;
/// The Range of what follows a beginning that is kept; empty: those bytes are none.
std::optional<std::string> range_behind(const cache::policy::ByteRange& held);

/// What is known of a key beside its response.
struct KeyState {
  bool is_stored = false;  // and stale, or refused by the request
  admission::Verdict verdict = admission::Verdict::FirstSighting;
  bool is_being_fetched = false;
};
/// Whether a Range request that the cache cannot answer asks the origin for the whole: where that
/// would be admitted (its second sighting), is being fetched already, or was stored and is stale.
bool fetches_whole(const KeyState& key) noexcept;

/// So far ahead of what has come may a part of a stream lie that a client waits for: a second or
/// less of most origins.
inline constexpr std::uint64_t kRangeReachBytes = 8U << 20;
/// The same where what is passed over is kept by nobody: about what a second request costs.
inline constexpr std::uint64_t kPassingReachBytes = 256U << 10;
/// Whether these parts of a stream come soon, the first of them by `reach_bytes`. A client that
/// jumps far ahead is not made to wait for what lies between.
bool is_in_reach(const Selection& parts, std::uint64_t reach_bytes);

}  // namespace secondsight::proxy
