#include "proxy/exchange.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>
#include <vector>

#include "cache/policy/freshness.h"
#include "cache/policy/read_facts.h"
#include "cache/policy/validation.h"
#include "proxy/access_log.h"
#include "proxy/exchange_rules.h"
#include "proxy/flight_table.h"

namespace secondsight::proxy {
namespace {

namespace policy = cache::policy;
using cache::CacheKey;

}  // namespace

Exchange::Exchange(WorkerServices& services, const Request& request, BodySource& body,
                   ResponseSink& sink)
    : services_(services),
      request_(request),
      body_(body, services.io),
      sink_(sink),
      facts_(policy::read_facts(request.method, request.fields)),
      now_(services.clock.wall()),
      started_(services.clock.steady()) {}

net::awaitable<void> Exchange::run() {
  co_await answer();
  co_await body_.returned();  // an abandoned fetch may still hold the client's connection
}

net::awaitable<void> Exchange::answer() {
  if (request_.has_upgrade && co_await pass_upgrade()) co_return;
  const CacheKey primary =
      CacheKey::primary("http", request_.host, request_.target, services_.cache.seed());
  if (facts_.method != policy::Method::Get && facts_.method != policy::Method::Head)
    co_return co_await pass_through(primary);
  services_.cache.prefetch(primary);

  // A second turn follows when the flight that was joined turned out to be for others, or a stored
  // body could not be read; the last one fetches alone.
  constexpr int kTurns = 3;
  for (int turn = 1; turn <= kTurns; ++turn) {
    Found found = co_await look_up(primary);
    CacheStatus status;
    if (found) {
      const cache::ObjectHead& head = *found.head();
      status.ttl = time_to_live(head, now_);
      const policy::Use use = policy::choose_use(facts_, head.facts, head.times, kHeuristic, now_);
      if (use != policy::Use::Validate) {
        const bool stale = use == policy::Use::ServeStaleAndRevalidate;
        if (stale) revalidate_behind(primary, found);
        auto stored_head = found.head();
        const Served served = co_await serve(
            found, status, stale ? Outcome::StaleHit : Outcome::Hit, std::move(stored_head));
        if (served == Served::Yes) co_return;
        continue;
      }
    }
    status.forward = reason_to_forward(found);
    status.ttl.reset();
    if (facts_.only_if_cached) co_return co_await refuse(504, "only-if-cached", status);

    const bool alone =
        turn == kTurns || !is_sharable() ||
        services_.flights.is_uncacheable(primary.fingerprint(), services_.clock.steady());
    FlightReader reader(services_, request_.fields);
    const Sharing sharing = alone ? Sharing::Alone : Sharing::Shared;
    status.collapsed = !take_off(reader, plan_flight(primary, found, sharing), found);
    switch (co_await reader.arrive(&sink_)) {
      case Arrival::Head:
        if (found && reader.head()->status >= 500) {
          status.forward_status = reader.head()->status;
          if (co_await fall_back(found, status) == Served::Yes) co_return;
        }
        if (reader.head()->status == 304 && !facts_.has_conditions)  // nobody asked whether
          co_return co_await refuse(502, to_string(OriginError::Malformed), status);
        if (co_await relay(reader, status, Outcome::Miss) == Served::Yes) co_return;
        break;
      case Arrival::NotModified: {
        status.forward_status = 304;
        auto fresh_head = reader.head();
        if (auto fresh = services_.cache.find_in_memory(found.key);
            found.object && fresh && fresh->head == fresh_head)
          found.object = std::move(fresh);
        if (found && co_await serve(found, status, Outcome::Revalidated, std::move(fresh_head)) ==
                         Served::Yes) {
          co_return;
        }
        break;
      }
      case Arrival::Released:
        break;
      case Arrival::Failed: {
        if (found && co_await fall_back(found, status) == Served::Yes) co_return;
        const OriginError error = reader.error();
        const bool late =
            error == OriginError::ConnectTimeout || error == OriginError::ResponseTimeout;
        co_return co_await refuse(late ? 504 : 502, to_string(error), status);
      }
    }
  }
  CacheStatus status;
  status.forward = Forward::UriMiss;
  co_await refuse(502, "gave-up", status);
}

// ---------------------------------------------------------------- look-up

net::awaitable<Exchange::Found> Exchange::look_up(const CacheKey& primary) {
  Found found{.key = primary, .marker = nullptr, .object = nullptr, .disk = std::nullopt};
  for (int step = 0; step < 2; ++step) {  // the primary key, then the variant that it points to
    found.object = services_.cache.find_in_memory(found.key);
    found.seen.reset();
    if (!found.object) {
      const auto entry = services_.cache.find_on_disk(found.key);
      if (!entry) break;
      found.seen = entry->location;
      co_await read_from_disk(found, *entry);
    }
    if (!found.object || !found.object->is_vary_marker) break;
    found.marker = std::exchange(found.object, nullptr);
    found.from_disk = false;
    if (step == 1) break;  // a marker under a variant's key: never written, not followed
    found.key = services_.cache.variant_key(primary, *found.marker, request_.fields);
  }
  co_return found;
}

// ---------------------------------------------------------------- from the origin

FlightPlan Exchange::plan_flight(const CacheKey& primary, const Found& found, Sharing sharing) {
  FlightPlan plan{.primary = primary, .key = found.key, .facts = facts_, .fields = request_.fields};
  plan.shared = sharing == Sharing::Shared;
  plan.may_store = facts_.method == policy::Method::Get;
  plan.counts_for_whole = facts_.has_range;
  plan.vary_marker = found.marker;
  plan.request.method = request_.method;
  plan.request.target = request_.target;
  plan.request.fields = forwarded_fields(request_);
  plan.request.accepts_trailers = accepts_trailers(request_);
  if (request_.has_body()) {
    plan.request.body = &body_;
    plan.request.content_length = request_.content_length;
    plan.request.expects_continue = request_.expects_continue;
  }
  if (found && facts_.method == policy::Method::Get) plan_validation(plan, found);
  return plan;
}

/// Asks the origin whether the stored response is still good, with the validators of that in place
/// of the client's own conditions, which are judged against the outcome. RFC 9111 4.3.1.
void Exchange::plan_validation(FlightPlan& plan, const Found& found) const {
  const auto& head = found.head();
  if (head->facts.etag.empty() && !head->facts.last_modified) return;
  plan.request.fields = policy::with_validators(plan.request.fields, head->facts, head->fields);
  plan.stale = head;
  using Head = std::shared_ptr<const cache::ObjectHead>;
  std::function<void(const Head&)> in_memory, on_disk;
  cache::Cache& cache = services_.cache;
  if (found.object && (!found.from_disk || services_.settings.cache.memory_bytes > 0))
    in_memory = [&cache, old = found.object](const Head& fresh) { cache.refresh(old, fresh); };
  if (found.disk) {
    on_disk = [&cache, key = found.key, entry = found.disk->entry,
               parts = cache::body_parts(*found.disk)](const Head& fresh) {
      const Seconds lifetime = policy::freshness_lifetime(fresh->facts, fresh->times, kHeuristic);
      cache.refresh(key, entry, parts, fresh, lifetime);
    };
  }
  plan.refresh = [in_memory, on_disk](const Head& fresh) {
    if (in_memory) in_memory(fresh);
    if (on_disk) on_disk(fresh);
  };
}

bool Exchange::take_off(FlightReader& reader, FlightPlan plan, const Found& found) {
  const bool shared = plan.shared;
  auto fresh = std::make_shared<Flight>(services_, std::move(plan));
  if (shared) {
    const CacheKey& key = fresh->table_key();
    auto flight = services_.flights.find_or_add(key.fingerprint(), fresh);
    if (flight != fresh && flight->is_outdated()) {
      services_.flights.remove(key.fingerprint(), *flight);
      flight = services_.flights.find_or_add(key.fingerprint(), fresh);
    }
    if (flight != fresh) {
      if (flight->table_key().text() == key.text() && flight->join(reader)) {
        services_.counters.collapsed.add();
        return false;
      }
      fresh->fly_alone();  // that flight is not shared any more: nobody joins this one either
    } else if (is_overtaken(found) && fresh->join(reader)) {
      fresh->cancel();  // releases everyone: they look again
      return false;
    }
  }
  fresh->begin(&reader);
  return true;
}

/// Whether a flight that has landed since the look-up brought what it did not find: a flight leaves
/// the table only after the cache has its response.
bool Exchange::is_overtaken(const Found& found) const {
  const auto object = services_.cache.find_in_memory(found.key);
  if (object) return object != found.object;
  const auto entry = services_.cache.find_on_disk(found.key);
  return entry && !found.object && (!found.seen || entry->location != *found.seen);
}

/// Asks the origin while the stale response is being served. RFC 5861 3. As a plain GET, for all;
/// a request that cannot be made one leaves it to the next.
void Exchange::revalidate_behind(const CacheKey& primary, const Found& found) {
  if (facts_.method != policy::Method::Get || facts_.no_store || facts_.has_authorization ||
      request_.has_body()) {
    return;
  }
  FlightPlan plan = plan_flight(primary, found, Sharing::Shared);
  const auto& head = found.head();
  plan.request.fields = policy::with_validators(plan.request.fields, head->facts, head->fields);
  plan.counts_for_whole = false;
  auto flight = std::make_shared<Flight>(services_, std::move(plan));
  const CacheKey& key = flight->table_key();
  if (services_.flights.find_or_add(key.fingerprint(), flight) == flight) flight->begin(nullptr);
}

/// Passes a flight's response on as it comes. No: what had come of it was lost before the client
/// got any.
net::awaitable<Exchange::Served> Exchange::relay(FlightReader& reader, CacheStatus status,
                                                 Outcome outcome) {
  const auto head = reader.head();
  status.stored = reader.kept();
  status.detail = reader.storability() == policy::Storability::Storable
                      ? to_string(reader.detail())
                      : policy::to_string(reader.storability());
  if (status.stored) status.ttl = time_to_live(*head, now_);
  std::string patched;
  const Seconds age = policy::current_age(head->facts, head->times, services_.clock.wall());
  if (age > Seconds{0}) append_age(patched, age);  // it came through another cache, or we waited
  detail_ = status.detail;
  append_cache_status(patched, status);
  const bool may_trail = !reader.content_length() && accepts_trailers(request_);
  if (may_trail && !reader.trailer_names().empty())
    patched.append("Trailer: ").append(reader.trailer_names()).append("\r\n");
  const std::string line = status_line(head->status, head->reason);
  const ResponseSink::Head response{.status = head->status,
                                    .status_line = line,
                                    .ready = head->fields.text(),
                                    .patched = patched,
                                    .content_length = reader.content_length(),
                                    .has_body = has_response_body(request_, head->status)};
  bool begun = false;
  const auto give_up = [&] {  // the client is gone, or its response was cut
    finish(outcome);
    return Served::Yes;
  };
  while (response.has_body) {
    if (reader.would_wait()) {  // the head goes ahead of a body that is slow to come
      if (!begun) begin(response);
      begun = true;
      if (const auto flushed = co_await sink_.flush(); !flushed) co_return give_up();
    }
    const auto pieces = co_await reader.next();
    if (!pieces && !begun) {  // broken from its first byte: nothing was promised yet
      if (reader.error() == OriginError::None) co_return Served::No;  // here, not at the origin
      CacheStatus broken;
      broken.forward = status.forward;
      co_await refuse(502, to_string(reader.error()), broken);
      co_return Served::Yes;
    }
    if (!begun) begin(response);
    begun = true;
    if (!pieces) {
      // The origin's body is whole so far, but what this reader still needs of it left the disk.
      const bool is_lost_here = reader.error() == OriginError::None;
      if (is_lost_here && co_await send_rest(*head, body_bytes_, reader.content_length())) break;
      services_.counters.cut_bodies.add();
      sink_.abort();
      co_return give_up();
    }
    if (pieces->empty()) break;
    if (const auto sent = co_await sink_.write(*pieces); !sent) co_return give_up();
    for (const auto& piece : *pieces) note_sent(piece.size());
  }
  if (!begun) begin(response);
  if (may_trail && response.has_body) {
    if (const std::string trailers = reader.trailers(); !trailers.empty())
      sink_.add_trailers(trailers);
  }
  co_await sink_.finish();
  finish(outcome);
  co_return Served::Yes;
}

/// Our own error: small, never stored by anyone.
net::awaitable<void> Exchange::refuse(int code, std::string_view detail, CacheStatus cache_status) {
  std::string patched = "Cache-Control: no-store\r\nContent-Type: text/plain; charset=utf-8\r\n";
  cache_status.detail = detail;
  detail_ = detail;
  append_cache_status(patched, cache_status);
  const std::string line = status_line(code, code == 504 ? "Gateway Timeout" : "Bad Gateway");
  std::string text = std::to_string(code);
  text.append(" ").append(detail).append("\n");
  const ResponseSink::Head response{.status = code,
                                    .status_line = line,
                                    .ready = {},
                                    .patched = patched,
                                    .content_length = text.size(),
                                    .has_body = !request_.is_head()};
  begin(response);
  if (response.has_body) {
    const std::array<std::span<const std::byte>, 1> pieces{std::as_bytes(std::span(text))};
    const std::span<const std::span<const std::byte>> batch(pieces);
    if (const auto sent = co_await sink_.write(batch); !sent) co_return finish(Outcome::Error);
  }
  co_await sink_.finish();
  finish(Outcome::Error);
}

// ---------------------------------------------------------------- what is never kept

net::awaitable<void> Exchange::pass_through(const CacheKey& primary) {
  if (co_await answer_here()) co_return;
  CacheStatus status;
  status.forward = Forward::Method;
  const Found nothing{.key = primary, .marker = nullptr, .object = nullptr, .disk = std::nullopt};
  FlightReader reader(services_, request_.fields);
  take_off(reader, plan_flight(primary, nothing, Sharing::Alone), nothing);
  if (co_await reader.arrive(&sink_) != Arrival::Head) {
    const OriginError error = reader.error();
    if (error == OriginError::RequestBody) co_return;  // the session answers for its own body
    const bool late = error == OriginError::ConnectTimeout || error == OriginError::ResponseTimeout;
    co_return co_await refuse(late ? 504 : 502, to_string(error), status);
  }
  // RFC 9111 4.4: a non-error answer to an unsafe method.
  const int code = reader.head()->status;
  if (facts_.method == policy::Method::Unsafe && code >= 200 && code < 400)
    co_await invalidate(primary);
  co_await relay(reader, status, Outcome::Bypass);
}

net::awaitable<void> Exchange::invalidate(const CacheKey& primary) {
  services_.flights.note_invalidated(primary.fingerprint());
  Found found{.key = primary, .marker = nullptr, .object = nullptr, .disk = std::nullopt};
  found.object = services_.cache.find_in_memory(primary);
  if (const auto entry = services_.cache.find_on_disk(primary);
      !found.object && entry && entry->kind == cache::log::RecordKind::VaryMarker) {
    co_await read_from_disk(found, *entry);
  }
  const bool varies = found.object && found.object->is_vary_marker;
  services_.cache.invalidate(primary, varies ? found.object : nullptr, services_.clock.wall());
}

// ----------------------------------------------------------------

Forward Exchange::reason_to_forward(const Found& found) const {
  if (facts_.has_range && !found) return Forward::Partial;
  if (!found) return found.marker ? Forward::VaryMiss : Forward::UriMiss;
  const cache::ObjectHead& head = *found.head();
  return time_to_live(head, now_) > Seconds{0} &&
                 (facts_.no_cache || facts_.max_age || facts_.min_fresh)
             ? Forward::Request
             : Forward::Stale;
}

/// Whether others may be answered by what this request fetches, and it by what others fetch.
bool Exchange::is_sharable() const {
  return facts_.method == policy::Method::Get && !facts_.has_range && !facts_.has_conditions &&
         !facts_.no_cache && !facts_.no_store && !facts_.has_authorization && !request_.has_body();
}

void Exchange::begin(const ResponseSink::Head& head) {
  status_ = head.status;
  sink_.begin(head);
}

void Exchange::note_sent(std::uint64_t bytes) {
  body_bytes_ += bytes;
  services_.counters.sent_bytes.add(bytes);
}

void Exchange::finish(Outcome outcome) {
  services_.counters.count(outcome);
  if (services_.access_log == nullptr) return;
  const auto duration =
      std::chrono::duration_cast<std::chrono::microseconds>(services_.clock.steady() - started_);
  services_.access_log->note({.time = now_,
                              .duration = duration,
                              .method = request_.method,
                              .host = request_.host,
                              .target = request_.target,
                              .status = status_,
                              .body_bytes = body_bytes_,
                              .outcome = to_string(outcome),
                              .detail = detail_});
}

// ----------------------------------------------------------------

ExchangeHandler::ExchangeHandler(net::io_context& io, const Shared& shared)
    : origin_(make_curl_origin_client(io, shared.settings.origin, shared.clock, shared.metrics)),
      tunnels_(io, shared.settings, shared.clock, shared.metrics),
      services_{.io = io,
                .settings = shared.settings,
                .clock = shared.clock,
                .cache = shared.cache,
                .flights = shared.flights,
                .origin = *origin_,
                .disk = shared.disk,
                .counters = shared.counters,
                .access_log = shared.access_log,
                .tunnels = tunnels_} {}

ExchangeHandler::~ExchangeHandler() = default;

net::awaitable<void> ExchangeHandler::handle(const Request& request, BodySource& body,
                                             ResponseSink& sink) {
  Exchange exchange(services_, request, body, sink);
  co_await exchange.run();
}

void ExchangeHandler::tick(SteadyTime now) {
  origin_->tick(now);
  tunnels_.tick(now);
  // One that ends here leaves the set.
  const std::vector<Flight*> running(services_.running.begin(), services_.running.end());
  for (Flight* flight : running)
    if (services_.running.contains(flight)) flight->tick(now);
}

void ExchangeHandler::cancel_flights() {
  services_.stopping = true;
  while (!services_.running.empty()) (*services_.running.begin())->cancel();
}

}  // namespace secondsight::proxy
