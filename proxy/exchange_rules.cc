#include "proxy/exchange_rules.h"

#include "cache/policy/freshness.h"
#include "cache/policy/hop_by_hop.h"
#include "cache/policy/list.h"

namespace secondsight::proxy {

namespace policy = cache::policy;

bool has_response_body(const Request& request, int status) noexcept {
  return !request.is_head() && status >= 200 && status != 204 && status != 304;
}

bool accepts_trailers(const Request& request) {
  if (request.version < 11) return false;
  for (const auto line : request.fields) {
    if (!policy::equals_ignoring_case(line.name, "TE")) continue;
    policy::ListMembers codings(line.value);
    while (const auto coding = codings.next())
      if (policy::equals_ignoring_case(*coding, "trailers")) return true;
  }
  return false;
}

policy::FieldBlock forwarded_fields(const Request& request) {
  const policy::FieldBlock received = policy::end_to_end(request.fields);
  policy::FieldBlock fields;
  fields.reserve(received.text().size() + request.host.size() + 40, received.count() + 2);
  fields.add("Host", request.host);
  for (const auto line : received) {
    if (policy::equals_ignoring_case(line.name, "Host") ||
        policy::equals_ignoring_case(line.name, "Content-Length") ||
        policy::equals_ignoring_case(line.name, "Expect")) {
      continue;
    }
    fields.add(line.name, line.value);
  }
  fields.add("Via", request.version == 10 ? "1.0 secondsight" : "1.1 secondsight");
  return fields;
}

Seconds time_to_live(const cache::ObjectHead& head, WallTime now) {
  return policy::freshness_lifetime(head.facts, head.times, kHeuristic) -
         policy::current_age(head.facts, head.times, now);
}

Decision decide(const policy::RequestFacts& request, const cache::ObjectHead* stored, bool varies,
                WallTime now) {
  if (is_passed_on(request)) return {Step::PassOn, Forward::Method};
  Forward forward = varies ? Forward::VaryMiss : Forward::UriMiss;
  if (stored != nullptr) {
    switch (policy::choose_use(request, stored->facts, stored->times, kHeuristic, now)) {
      case policy::Use::Serve:
        return {Step::Serve, Forward::Hit};
      case policy::Use::ServeStaleAndRevalidate:
        return {Step::ServeStaleAndRevalidate, Forward::Hit};
      case policy::Use::Validate:
        break;
    }
    // What is fresh and needs no validation by its own word was refused by the request's.
    const bool is_fresh = time_to_live(*stored, now) > Seconds{0};
    const bool asks_always = stored->facts.directives.no_cache;
    forward = is_fresh && !asks_always ? Forward::Request : Forward::Stale;
  }
  return {request.only_if_cached ? Step::Refuse : Step::Ask, forward};
}

bool is_passed_on(const policy::RequestFacts& request) noexcept {
  return request.method != policy::Method::Get && request.method != policy::Method::Head;
}

bool can_validate(const policy::RequestFacts& request,
                  const policy::ResponseFacts& stored) noexcept {
  return request.method == policy::Method::Get && (!stored.etag.empty() || stored.last_modified);
}

bool may_revalidate_behind(const policy::RequestFacts& request, bool has_body) noexcept {
  return request.method == policy::Method::Get && !request.no_store && !request.has_authorization &&
         !has_body;
}

bool is_sharable(const policy::RequestFacts& request, bool has_body) noexcept {
  return request.method == policy::Method::Get && !request.has_conditions && !request.no_cache &&
         !request.no_store && !request.has_authorization && !has_body;
}

}  // namespace secondsight::proxy
