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

}  // namespace secondsight::proxy
