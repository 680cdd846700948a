#include "proxy/exchange_rules.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "cache/cache.h"
#include "cache/policy/freshness.h"
#include "cache/policy/hop_by_hop.h"
#include "cache/policy/list.h"
#include "proxy/char_set.h"

namespace secondsight::proxy {

namespace policy = cache::policy;

namespace {

/// Calls `each` with every member of every field of that name; a true answer ends it and is passed
/// on.
template <class Each>
bool any_member(const policy::FieldBlock& fields, std::string_view name, Each each) {
  for (const auto line : fields) {
    if (!policy::equals_ignoring_case(line.name, name)) continue;
    policy::ListMembers members(line.value);
    while (const auto member = members.next())
      if (each(*member)) return true;
  }
  return false;
}

bool names(const policy::FieldBlock& fields, std::string_view name, std::string_view wanted) {
  return any_member(fields, name, [wanted](std::string_view member) {
    return policy::equals_ignoring_case(member, wanted);
  });
}

/// "name" or "name/version".
bool is_protocol(std::string_view text) {
  const auto slash = text.find('/');
  return policy::is_token(text.substr(0, slash)) &&
         (slash == std::string_view::npos || policy::is_token(text.substr(slash + 1)));
}

/// Names of credentials and secrets, and of what is made like them.
bool is_sensitive(std::string_view name) {
  constexpr std::array<std::string_view, 12> kWords{
      "auth",    "cookie",   "proxy-",    "token",      "secret", "key",
      "session", "password", "forwarded", "credential", "-ip",    "client"};
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), ascii_lower);
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

}  // namespace

std::optional<std::uint64_t> max_forwards(const Request& request) {
  if (request.method != "OPTIONS" && request.method != "TRACE") return std::nullopt;
  std::optional<std::uint64_t> limit;
  for (const auto line : request.fields) {
    if (!policy::equals_ignoring_case(line.name, "Max-Forwards")) continue;
    std::uint64_t value = 0;
    const char* end = line.value.data() + line.value.size();
    const auto read = std::from_chars(line.value.data(), end, value);
    if (limit || read.ec != std::errc{} || read.ptr != end) return std::nullopt;
    limit = value;
  }
  return limit;
}

OwnAnswer own_answer(const Request& request) {
  if (request.method == "TRACE" && request.has_body()) return OwnAnswer::TraceBody;
  return max_forwards(request) == 0U ? OwnAnswer::MaxForwards : OwnAnswer::None;
}

std::string_view to_string(OwnAnswer answer) noexcept {
  constexpr std::array<std::string_view, 3> kWords{"", "trace-body", "max-forwards"};
  return kWords[static_cast<std::size_t>(answer)];
}

std::string traced_head(const Request& request) {
  std::string head = request.method + ' ' + request.target;
  head.append(request.version == 10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
  for (const auto line : request.fields) {
    if (!is_sensitive(line.name))
      head.append(line.name).append(": ").append(line.value).append("\r\n");
  }
  return head.append("\r\n");
}

bool has_response_body(const Request& request, int status) noexcept {
  return !request.is_head() && status >= 200 && status != 204 && status != 304;
}

bool accepts_trailers(const Request& request) {
  return request.version == 11 && names(request.fields, "TE", "trailers");
}

std::string upgrade_protocols(const Request& request) {
  std::string protocols;
  if (!request.has_upgrade || request.version != 11 || request.method != "GET" ||
      request.has_body() || !names(request.fields, "Connection", "upgrade")) {
    return protocols;
  }
  any_member(request.fields, "Upgrade", [&](std::string_view protocol) {
    if (is_protocol(protocol) && !policy::equals_ignoring_case(protocol, "h2c"))
      protocols.append(protocols.empty() ? "" : ", ").append(protocol);
    return false;
  });
  return protocols;
}

std::string upgrade_request(const Request& request, std::string_view target,
                            std::string_view protocols) {
  std::string head = "GET " + std::string(target) + " HTTP/1.1\r\n";
  head.append(forwarded_fields(request).text());
  head.append("Connection: Upgrade\r\nUpgrade: ").append(protocols).append("\r\n\r\n");
  return head;
}

bool is_agreed(const policy::FieldBlock& fields, std::string_view protocols) {
  if (!fields.contains("Upgrade") || !names(fields, "Connection", "upgrade")) return false;
  return !any_member(fields, "Upgrade", [protocols](std::string_view chosen) {
    policy::ListMembers asked(protocols);
    while (const auto protocol = asked.next())
      if (policy::equals_ignoring_case(*protocol, chosen)) return false;
    return true;
  });
}

policy::FieldBlock forwarded_fields(const Request& request) {
  const policy::FieldBlock received = policy::end_to_end(request.fields);
  policy::FieldBlock fields;
  fields.reserve(received.text().size() + request.host.size() + 40, received.count() + 2);
  fields.add("Host", request.host);
  const auto forwards_left = max_forwards(request);
  for (const auto line : received) {
    if (policy::equals_ignoring_case(line.name, "Host") ||
        policy::equals_ignoring_case(line.name, "Content-Length") ||
        policy::equals_ignoring_case(line.name, "Expect")) {
      continue;
    }
    if (forwards_left && policy::equals_ignoring_case(line.name, "Max-Forwards")) {
      fields.add(line.name,
                 std::to_string(*forwards_left - std::min<std::uint64_t>(*forwards_left, 1)));
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

bool may_stand_in(const policy::RequestFacts& request, const cache::ObjectHead& stored,
                  std::chrono::milliseconds configured, WallTime now) {
  return policy::may_serve_on_error(request, stored.facts, stored.times, kHeuristic,
                                    std::chrono::duration_cast<Seconds>(configured), now);
}

std::vector<std::string> tags_to_name(const std::vector<cache::TaggedVariant>& variants) {
  std::vector<std::string> tags;
  for (const auto& variant : variants)
    if (std::find(tags.begin(), tags.end(), variant.etag) == tags.end())
      tags.push_back(variant.etag);
  return tags;
}

bool wants_parts_of(const policy::RequestFacts& request, const cache::ObjectHead& head) noexcept {
  return request.has_range && request.method == policy::Method::Get && head.status == 200;
}

bool may_use_part(const policy::RequestFacts& request, const cache::ObjectHead& part,
                  WallTime now) {
  return request.has_range && request.method == policy::Method::Get && !request.has_conditions &&
         decide(request, &part, false, now).step == Step::Serve;
}

bool lies_within(const Selection& parts, const policy::ByteRange& held) noexcept {
  return parts.status == 206 &&
         std::all_of(parts.ranges.begin(), parts.ranges.end(), [&](const auto& range) {
           return range.first >= held.first && range.end() <= held.end();
         });
}

std::optional<std::string> range_behind(const policy::ByteRange& held) {
  if (held.first != 0) return std::nullopt;
  return "bytes=" + std::to_string(held.size) + "-";
}

bool fetches_whole(const KeyState& key) noexcept {
  return key.is_stored || admission::admits(key.verdict) || key.is_being_fetched;
}

bool is_in_reach(const Selection& parts, std::uint64_t reach_bytes) {
  return parts.ranges.empty() ||
         (parts.is_ascending() && parts.ranges.front().first <= reach_bytes);
}

}  // namespace secondsight::proxy
