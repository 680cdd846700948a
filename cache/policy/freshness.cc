#include "cache/policy/freshness.h"

#include <algorithm>
#include <array>

#include "cache/policy/cache_control.h"

namespace secondsight::cache::policy {
namespace {

using std::chrono::floor;
using std::chrono::milliseconds;

/// RFC 9110 15.1. 206 is in that list too, but partial content is not kept as an object.
bool is_heuristically_cacheable(int status) noexcept {
  switch (status) {
    case 200:
    case 203:
    case 204:
    case 300:
    case 301:
    case 308:
    case 404:
    case 405:
    case 410:
    case 414:
    case 501:
      return true;
    default:
      return false;
  }
}

/// Final statuses that are not kept as an object: parts, validations, what one request's own
/// conditions, range or expectation came to (412, 416, 417), and those that RFC 6585 (3 to 6)
/// excludes.
bool is_never_stored(int status) noexcept {
  switch (status) {
    case 206:
    case 304:
    case 412:
    case 416:
    case 417:
    case 428:
    case 429:
    case 431:
    case 511:
      return true;
    default:
      return status < 200 || status > 599;
  }
}

/// Statuses whose caching behaviour is specified and done here: all that RFC 9110 15 defines, but
/// for those that are never stored.
bool is_understood(int status) noexcept {
  return (status >= 200 && status <= 205) || (status >= 300 && status <= 303) || status == 305 ||
         status == 307 || status == 308 || (status >= 400 && status <= 417) || status == 421 ||
         status == 422 || status == 426 || (status >= 500 && status <= 505);
}

bool has_explicit_freshness(const ResponseFacts& response) noexcept {
  return response.directives.s_maxage || response.directives.max_age || response.expires;
}

bool may_use_heuristic(const ResponseFacts& response) noexcept {
  return is_heuristically_cacheable(response.status) || response.directives.is_public;
}

/// The directives of RFC 9111 3.5 that let a shared cache keep the answer to an authenticated
/// request.
bool allows_authorized(const ResponseDirectives& d) noexcept {
  return d.must_revalidate || d.is_public || d.s_maxage;
}

bool forbids_stale(const ResponseDirectives& d) noexcept {
  return !stale_veto(d).empty();
}

/// How long after its lifetime the origin itself lets it be used in some case. RFC 5861.
Seconds permitted_staleness(const ResponseDirectives& d) noexcept {
  return std::max(d.stale_while_revalidate.value_or(Seconds{0}),
                  d.stale_if_error.value_or(Seconds{0}));
}

/// Whether the explicit lifetime is zero. The time of receipt is not known here, so that Expires
/// without Date counts only when it was invalid.
bool is_born_stale(const ResponseFacts& response) noexcept {
  const ResponseDirectives& d = response.directives;
  if (d.s_maxage) return *d.s_maxage == Seconds{0};
  if (d.max_age) return *d.max_age == Seconds{0};
  return response.expires && *response.expires <= response.date.value_or(WallTime{});
}

/// Whether any later request could be answered from it, by validating, while fresh, or stale.
bool is_of_use(const ResponseFacts& response) noexcept {
  const ResponseDirectives& d = response.directives;
  if (!has_explicit_freshness(response)) {
    if (!may_use_heuristic(response)) return false;
    if (response.has_set_cookie && !d.is_public) return false;
  }
  if (!response.etag.empty() || response.last_modified) return true;
  if (!has_explicit_freshness(response) || d.no_cache) return false;
  if (!is_born_stale(response)) return true;
  return permitted_staleness(d) > Seconds{0} && !forbids_stale(d);
}

Seconds at_most_delta_max(WallTime::duration duration) {
  return std::clamp(floor<Seconds>(duration), Seconds{0}, kDeltaSecondsMax);
}

/// What the head gives it.
Seconds given_lifetime(const ResponseFacts& response, const ExchangeTimes& times,
                       const HeuristicLimits& limits) {
  const ResponseDirectives& d = response.directives;
  const WallTime date = response.date.value_or(times.response_received);
  switch (lifetime_source(response)) {
    case LifetimeSource::SMaxage:
      return *d.s_maxage;
    case LifetimeSource::MaxAge:
      return *d.max_age;
    case LifetimeSource::Expires:
      return at_most_delta_max(*response.expires - date);
    case LifetimeSource::Heuristic: {
      const Seconds unchanged_for = at_most_delta_max(date - *response.last_modified);
      return std::min(unchanged_for * limits.last_modified_percent / 100, limits.lifetime_max);
    }
    case LifetimeSource::None:
      break;
  }
  return Seconds{0};
}

/// Age and lifetime of a stored response at one moment.
struct Freshness {
  Seconds lifetime, age;
  bool is_fresh() const noexcept { return lifetime > age; }
  Seconds remaining() const noexcept { return lifetime - age; }
  Seconds staleness() const noexcept { return std::max(age - lifetime, Seconds{0}); }
};

Freshness freshness_at(const ResponseFacts& response, const ExchangeTimes& times,
                       const HeuristicLimits& limits, WallTime now) {
  return {freshness_lifetime(response, times, limits), current_age(response, times, now)};
}

/// The request's own bounds on age and remaining freshness. A max-age of 0 asks for validation,
/// though an age of half a second counts as 0.
bool is_young_enough(const RequestFacts& request, const Freshness& f) noexcept {
  if (request.max_age && (*request.max_age == Seconds{0} || f.age > *request.max_age)) return false;
  return !request.min_fresh || f.remaining() >= *request.min_fresh;
}

}  // namespace

std::string_view to_string(Storability storability) noexcept {
  switch (storability) {
    case Storability::Storable:
      return "storable";
    case Storability::Method:
      return "method";
    case Storability::RequestNoStore:
      return "request-no-store";
    case Storability::NoStore:
      return "no-store";
    case Storability::Private:
      return "private";
    case Storability::Authorization:
      return "authorization";
    case Storability::Status:
      return "status";
    case Storability::VaryAny:
      return "vary-any";
    case Storability::NoLifetime:
      return "no-lifetime";
    case Storability::Outdated:
      return "outdated";
  }
  return "unknown";
}

Storability storability(const RequestFacts& request, const ResponseFacts& response) {
  const ResponseDirectives& d = response.directives;
  if (request.method != Method::Get) return Storability::Method;
  if (request.no_store) return Storability::RequestNoStore;
  if (is_never_stored(response.status)) return Storability::Status;
  if (d.must_understand && !is_understood(response.status)) return Storability::Status;
  // must-understand replaces no-store for a cache that understands the status: RFC 9111 5.2.2.3.
  if (d.no_store && !d.must_understand) return Storability::NoStore;
  if (d.is_private) return Storability::Private;
  if (request.has_authorization && !allows_authorized(d)) return Storability::Authorization;
  if (!response.vary.empty() && response.vary.front() == "*") return Storability::VaryAny;
  if (response.vary.size() > kVaryNamesMax) return Storability::VaryAny;
  if (!is_of_use(response)) return Storability::NoLifetime;
  return Storability::Storable;
}

bool is_stale_for_good(const ResponseFacts& response, const ExchangeTimes& times,
                       const HeuristicLimits& limits, WallTime now) {
  if (!response.etag.empty() || response.last_modified) return false;
  const ResponseDirectives& d = response.directives;
  const Freshness f = freshness_at(response, times, limits, now);
  if (forbids_stale(d)) return !f.is_fresh();
  if (f.lifetime > Seconds{0}) return false;
  return f.age >= permitted_staleness(d);
}

Seconds freshness_lifetime(const ResponseFacts& response, const ExchangeTimes& times,
                           const HeuristicLimits& limits) {
  const Seconds lifetime = given_lifetime(response, times, limits);
  if (!response.stale_since) return lifetime;
  return std::min(lifetime, current_age(response, times, *response.stale_since));
}

LifetimeSource lifetime_source(const ResponseFacts& response) noexcept {
  if (response.directives.s_maxage) return LifetimeSource::SMaxage;
  if (response.directives.max_age) return LifetimeSource::MaxAge;
  if (response.expires) return LifetimeSource::Expires;
  return response.last_modified && may_use_heuristic(response) ? LifetimeSource::Heuristic
                                                               : LifetimeSource::None;
}

std::string_view to_string(LifetimeSource source) noexcept {
  constexpr std::array<std::string_view, 5> kWords = {"s-maxage", "max-age", "expires", "heuristic",
                                                      "none"};
  return kWords[static_cast<std::size_t>(source)];
}

std::string_view to_string(DirectiveSource source) noexcept {
  constexpr std::array<std::string_view, 3> kNames = {"Cache-Control", "Surrogate-Control",
                                                      "CDN-Cache-Control"};
  return kNames[static_cast<std::size_t>(source)];
}

std::string_view stale_veto(const ResponseDirectives& d) noexcept {
  if (d.no_cache) return "no-cache";
  if (d.must_revalidate) return "must-revalidate";
  if (d.proxy_revalidate) return "proxy-revalidate";
  return d.s_maxage ? "s-maxage" : "";
}

Seconds current_age(const ResponseFacts& response, const ExchangeTimes& times, WallTime now) {
  constexpr milliseconds kZero{0};
  const WallTime received = times.response_received;
  // Date has no fractions of a second, so the difference has none either.
  const milliseconds apparent_age =
      response.date ? std::max(milliseconds{floor<Seconds>(received - *response.date)}, kZero)
                    : kZero;
  const milliseconds response_delay = std::max(received - times.request_sent, kZero);
  const milliseconds corrected_age = response.age.value_or(Seconds{0}) + response_delay;
  const milliseconds resident_time = std::max(now - received, kZero);
  return at_most_delta_max(std::max(apparent_age, corrected_age) + resident_time);
}

void fold_age(ResponseFacts& response, ExchangeTimes& times) {
  if (!response.age) return;
  // Clamped first: a clock that went back during the exchange must not shorten the age.
  times.request_sent = std::min(times.request_sent, times.response_received) - *response.age;
  response.age.reset();
}

Use choose_use(const RequestFacts& request, const ResponseFacts& response,
               const ExchangeTimes& times, const HeuristicLimits& limits, WallTime now) {
  const ResponseDirectives& d = response.directives;
  if (request.no_cache || d.no_cache) return Use::Validate;
  const Freshness f = freshness_at(response, times, limits, now);
  if (f.is_fresh()) return is_young_enough(request, f) ? Use::Serve : Use::Validate;
  if (forbids_stale(d)) return Use::Validate;
  if (!is_young_enough(request, f)) return Use::Validate;
  if (request.max_age && !request.max_stale) return Use::Validate;  // no wish for a stale one
  if (request.max_stale && f.staleness() <= *request.max_stale) return Use::Serve;
  if (d.stale_while_revalidate && f.staleness() <= *d.stale_while_revalidate)
    return Use::ServeStaleAndRevalidate;
  return Use::Validate;
}

bool is_error_to_hide(int status) noexcept {
  return status == 500 || status == 502 || status == 503 || status == 504;
}

bool may_serve_on_error(const RequestFacts& request, const ResponseFacts& response,
                        const ExchangeTimes& times, const HeuristicLimits& limits,
                        Seconds configured, WallTime now) {
  const ResponseDirectives& d = response.directives;
  if (request.no_cache || forbids_stale(d)) return false;
  if (request.max_age || request.min_fresh) configured = Seconds{0};
  const Seconds stale_max =
      std::max(d.stale_if_error.value_or(configured), request.stale_if_error.value_or(Seconds{0}));
  return stale_max > Seconds{0} &&
         freshness_at(response, times, limits, now).staleness() <= stale_max;
}

}  // namespace secondsight::cache::policy
