#include "proxy/exchange.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>
#include <vector>

#include "cache/policy/freshness.h"
#include "cache/policy/http_date.h"
#include "cache/policy/invalidation.h"
#include "cache/policy/read_facts.h"
#include "cache/policy/validation.h"
#include "cache/variants.h"
#include "proxy/access_log.h"
#include "proxy/exchange_rules.h"
#include "proxy/flight_table.h"

namespace secondsight::proxy {
namespace {

namespace policy = cache::policy;
using cache::CacheKey;

/// How often a request looks for an answer.
constexpr int kTurns = 3;

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
  if (request_.has_upgrade) {
    if (co_await pass_upgrade()) co_return;
  }
  if (co_await answer_purge()) co_return;
  const CacheKey primary =
      services_.sites.primary_key(request_.host, request_.target, request_.fields);
  primary_ = primary.fingerprint();
  note_changes();
  if (is_passed_on(facts_)) co_return co_await pass_through(primary);
  services_.cache.prefetch(primary);

  // A second turn follows when the flight that was joined turned out to be for others, or a stored
  // body could not be read; the last one fetches alone.
  CacheStatus status;
  for (turns_left_ = kTurns - 1; turns_left_ >= 0; --turns_left_) {
    status = {};
    note_changes();
    Found found = co_await look_up(primary);
    Served served = co_await answer_from_cache(primary, found, status);
    if (served == Served::Not) served = co_await answer_from_origin(primary, found, status);
    if (served == Served::Yes) co_return;
  }
  if (status.forward == Forward::Hit) status.forward = Forward::None;  // what was found was lost
  co_await refuse(502, "gave-up", status);
}

/// What is put into the cache because of what is found there from here on stands back behind what
/// comes after.
void Exchange::note_changes() noexcept {
  invalidations_ = services_.flights.invalidations(primary_);
  purges_seen_ = services_.cache.purges();
}

/// Not: the origin is to be asked; `status` says why.
net::awaitable<Exchange::Served> Exchange::answer_from_cache(const CacheKey& primary, Found& found,
                                                             CacheStatus& status) {
  const Decision decision =
      decide(facts_, found ? found.head().get() : nullptr, found.marker != nullptr, now_);
  const bool stale = decision.step == Step::ServeStaleAndRevalidate;
  if (stale || decision.step == Step::Serve) {
    if (stale) revalidate_behind(primary, found);
    auto head = found.head();
    co_return co_await serve(found, status, stale ? Outcome::StaleHit : Outcome::Hit,
                             std::move(head));
  }
  if (!found && facts_.has_range) {
    if (co_await serve_part(found, status) == Served::Yes) co_return Served::Yes;
  }
  if (decision.step == Step::Refuse) {
    status.forward = Forward::None;
    co_await refuse(504, "only-if-cached", status);
    co_return Served::Yes;
  }
  if (found && is_origin_spared(found)) {
    CacheStatus spared;
    spared.detail = "stale-if-error";
    if (co_await serve_stale(found, spared) == Served::Yes) co_return Served::Yes;
  }
  if (status.forward != Forward::Partial) status.forward = decision.forward;
  co_return Served::Not;
}

/// No: look again.
net::awaitable<Exchange::Served> Exchange::answer_from_origin(const CacheKey& primary, Found& found,
                                                              CacheStatus& status) {
  // Conditions are no reason to go alone where they are judged here, against what validation gives.
  policy::RequestFacts asked = facts_;
  judges_conditions_ = found && can_validate(facts_, found.head()->facts) && !range_alone_;
  if (judges_conditions_) asked.has_conditions = false;
  const bool alone =
      turns_left_ == 0 || !is_sharable(asked, request_.has_body()) ||
      (facts_.has_range && !fetches_whole(found)) ||
      services_.flights.is_uncacheable(primary.fingerprint(), services_.clock.steady());
  FlightReader reader(services_, request_.fields, facts_);
  const Sharing sharing = alone ? Sharing::Alone : Sharing::Shared;
  const bool leads = take_off(reader, plan_flight(primary, found, sharing), found);
  if (!leads || waited_in_vain_) status.collapsed = !leads;
  waited_in_vain_ = waited_in_vain_ || !leads;
  switch (co_await reader.arrive(&sink_)) {
    case Arrival::Head:
      co_return co_await pass_answer_on(primary, found, reader, sharing, status);
    case Arrival::NotModified:
      status.forward_status = 304;
      co_return co_await serve_freshened(found, reader.head(), status);
    case Arrival::OtherVariant:
      status.forward_status = 304;
      co_return co_await serve_other_variant(primary, found, reader, status);
    case Arrival::Released:
      co_return Served::No;
    case Arrival::Failed:
      break;
  }
  co_return co_await answer_failure(found, reader.error(), status);
}

/// The origin's answer is for this request: it goes on to the client as it comes, unless a stored
/// response is better.
net::awaitable<Exchange::Served> Exchange::pass_answer_on(const CacheKey& primary, Found& found,
                                                          FlightReader& reader, Sharing sharing,
                                                          CacheStatus status) {
  const int code = reader.head()->status;
  if (found && policy::is_error_to_hide(code)) {
    CacheStatus hidden = status;
    hidden.forward_status = code;
    if (co_await fall_back(found, hidden, {}) == Served::Yes) co_return Served::Yes;
  }
  if (found && request_.is_head()) judge_stored(found, reader);
  if (code == 304 && !facts_.has_conditions) {  // nobody asked whether
    co_await refuse(502, to_string(OriginError::Malformed), status);
    co_return Served::Yes;
  }
  if (facts_.has_range && sharing == Sharing::Shared) {
    if (!reader.kept())  // another part of it need not look
      services_.flights.note_uncacheable(primary.fingerprint(), services_.clock.steady());
    range_alone_ = !is_in_reach(reader);
    if (range_alone_) co_return Served::No;
    cuts_stream_ = true;
  }
  const HeadPtr& head = reader.head();
  if (judges_conditions_ && code == 200 &&
      policy::is_not_modified(request_.fields, head->facts, head->times)) {
    const std::string patched = describe(reader, status);
    co_await send_not_modified(*head, patched);
    finish(Outcome::Miss);
    co_return Served::Yes;
  }
  const Served served = co_await relay(reader, status, Outcome::Miss);
  if (served != Served::Broken) co_return served;
  co_return co_await answer_failure(found, reader.error(), status);
}

/// The origin said that the stored response is still good.
net::awaitable<Exchange::Served> Exchange::serve_freshened(Found& found, HeadPtr head,
                                                           CacheStatus status) {
  if (!found) co_return Served::No;
  auto fresh = services_.cache.find_in_memory(found.key);
  if (found.object && fresh && fresh->head == head) found.object = std::move(fresh);
  co_return co_await serve(found, status, Outcome::Revalidated, std::move(head));
}

/// Stale, where that may be, or an error.
net::awaitable<Exchange::Served> Exchange::answer_failure(Found& found, OriginError error,
                                                          CacheStatus status) {
  Served served = Served::No;
  if (found) served = co_await fall_back(found, status, to_string(error));
  if (served != Served::Yes) co_await refuse_for(error, status);
  co_return Served::Yes;
}

// ---------------------------------------------------------------- from the origin

FlightPlan Exchange::plan_flight(const CacheKey& primary, const Found& found, Sharing sharing) {
  FlightPlan plan{.primary = primary, .key = found.key, .facts = facts_, .fields = request_.fields};
  plan.shared = sharing == Sharing::Shared;
  // What a body asked for is no answer to a request without it.
  plan.may_store = facts_.method == policy::Method::Get && !request_.has_body();
  plan.counts_for_whole = facts_.has_range && !plan.shared && !range_alone_;
  plan.invalidations = invalidations_;
  plan.purges_seen = purges_seen_;
  plan.has_stored = static_cast<bool>(found);
  plan.hides_errors = found && may_stand_in(found);
  plan.vary_marker = found.marker;
  plan.request.method = request_.method;
  plan.request.target = services_.sites.forwarded_target(request_.host, request_.target);
  plan.request.fields = forwarded_fields(request_);
  plan.request.accepts_trailers = accepts_trailers(request_);
  if (request_.has_body()) {
    plan.request.body = &body_;
    plan.request.content_length = request_.content_length;
    plan.request.expects_continue = request_.expects_continue;
  }
  if (facts_.has_range && plan.shared)  // the whole, of which this request gets its part
    plan.request.fields = policy::with_validators(plan.request.fields, {}, {});
  if (found && !range_alone_ && can_validate(facts_, found.head()->facts))
    plan_validation(plan, found);
  if (!found && plan.shared && !plan_completion(plan, found) && !facts_.has_range)
    plan_choice(plan, found);
  return plan;
}

/// Asks the origin whether the stored response is still good, with the validators of that in place
/// of the client's own conditions, which are judged against the outcome. RFC 9111 4.3.1.
void Exchange::plan_validation(FlightPlan& plan, const Found& found) const {
  const auto& head = found.head();
  plan.request.fields = policy::with_validators(plan.request.fields, head->facts, head->fields);
  plan.stale = head;
  plan.refresh = refresher(found);
}

/// What puts a freshened head in the place of the stored one, in memory and on disk.
Exchange::Refresh Exchange::refresher(const Found& found) const {
  Refresh in_memory, on_disk;
  cache::Cache& cache = services_.cache;
  if (found.object && (!found.from_disk || services_.settings.cache.memory_bytes > 0)) {
    in_memory = [&cache, old = found.object, seen = purges_seen_](const HeadPtr& fresh) {
      cache.refresh(old, fresh, seen);
    };
  }
  if (found.disk) {
    // What is too large for memory has its head on disk only.
    on_disk = [&cache, key = found.key, entry = found.disk->entry,
               parts = cache::body_parts(*found.disk), is_in_memory = found.object != nullptr,
               seen = purges_seen_](const HeadPtr& fresh) {
      const Seconds lifetime =
          is_in_memory ? policy::freshness_lifetime(fresh->facts, fresh->times, kHeuristic)
                       : Seconds::max();
      cache.refresh(key, entry, parts, fresh, lifetime, seen);
    };
  }
  return [in_memory, on_disk](const HeadPtr& fresh) {
    if (in_memory) in_memory(fresh);
    if (on_disk) on_disk(fresh);
  };
}

/// A 200 to HEAD tells whether the stored response to GET is still the one. RFC 9111 4.3.5.
void Exchange::judge_stored(const Found& found, const FlightReader& reader) {
  const HeadPtr& told = reader.head();
  if (told->status != 200 || found.head()->status != 200) return;
  const auto verdict = policy::judge_by_head(found.head()->facts, found.body_bytes(), told->facts,
                                             reader.content_length());
  const auto fresh = freshened_head(*found.head(), *told);
  policy::RequestFacts as_get = facts_;
  as_get.method = policy::Method::Get;
  const auto storable_for = [&](const policy::RequestFacts& facts) {
    return policy::storability(facts, fresh->facts) == policy::Storability::Storable;
  };
  if (verdict == policy::HeadVerdict::Outdated || !storable_for({}) ||
      !cache::covers(found.marker, fresh->facts.vary)) {
    services_.flights.forget(services_.cache, primary_, found.key, nullptr, services_.clock.wall());
  } else if (storable_for(as_get)) {
    publish([&] { refresher(found)(fresh); });
  }
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

/// Asks the origin while the stale response is being served. RFC 5861 3. A request that may not
/// leaves it to the next.
void Exchange::revalidate_behind(const CacheKey& primary, const Found& found) {
  if (!may_revalidate_behind(facts_, request_.has_body())) return;
  if (services_.flights.is_failing(found.key.fingerprint(), services_.clock.steady())) return;
  FlightPlan plan = plan_flight(primary, found, Sharing::Shared);
  const auto& head = found.head();
  plan.request.fields = policy::with_validators(plan.request.fields, head->facts, head->fields);
  plan.counts_for_whole = false;
  plan.is_behind = plan.hides_errors = true;
  auto flight = std::make_shared<Flight>(services_, std::move(plan));
  const CacheKey& key = flight->table_key();
  if (services_.flights.find_or_add(key.fingerprint(), flight) != flight) return;
  if (is_overtaken(found)) {
    flight->cancel();  // releases whoever joined it meanwhile
  } else {
    flight->begin(nullptr);
  }
}

/// Passes a flight's response on as it comes: all of it, or the parts that the request wants of a
/// whole that is kept. No, Broken: what had come of it was lost before the client got any.
net::awaitable<Exchange::Served> Exchange::relay(FlightReader& reader, CacheStatus status,
                                                 Outcome outcome) {
  const auto head = reader.head();
  std::string patched = describe(reader, status);
  const Selection selection = select_of_stream(reader);
  patched.append(selection.fields);
  const bool may_trail = !selection.content_length && accepts_trailers(request_);
  if (may_trail && !reader.trailer_names().empty())
    patched.append("Trailer: ").append(reader.trailer_names()).append("\r\n");
  const ResponseSink::Head response = head_of(selection, *head, patched);
  if (response.has_body) {
    for (std::size_t i = 0; i < selection.ranges.size(); ++i) {
      switch (co_await relay_range(reader, response, selection, i)) {
        case Relayed::Sent:
          break;
        case Relayed::Nothing:
          // Lost here, or at the origin.
          co_return reader.error() == OriginError::None ? Served::No : Served::Broken;
        case Relayed::Cut:  // by us, or the client is gone
          finish(outcome);
          co_return Served::Yes;
      }
    }
  }
  if (!sink_.begun()) begin(response);
  if (may_trail && response.has_body) {
    if (const std::string trailers = reader.trailers(); !trailers.empty())
      sink_.add_trailers(trailers);
  }
  if (co_await send_text(selection.closing)) co_await sink_.finish();
  finish(outcome);
  co_return Served::Yes;
}

ResponseSink::Head Exchange::head_of(const Selection& selection, const cache::ObjectHead& head,
                                     std::string_view patched) const {
  return {.status = selection.status,
          .status_line = selection.status_line,
          .ready = selection.ready(head),
          .patched = patched,
          .content_length = selection.content_length,
          .has_body = has_response_body(request_, selection.status)};
}

/// The fields that say what became of a flight's response.
std::string Exchange::describe(const FlightReader& reader, CacheStatus status) {
  const cache::ObjectHead& head = *reader.head();
  status.stored = reader.kept();
  status.detail = reader.storability() == policy::Storability::Storable
                      ? to_string(reader.detail())
                      : policy::to_string(reader.storability());
  if (status.stored) status.ttl = time_to_live(head, now_);
  std::string fields;
  const Seconds age = policy::current_age(head.facts, head.times, services_.clock.wall());
  if (age > Seconds{0}) append_age(fields, age);  // it came through another cache, or we waited
  detail_ = status.detail;
  append_cache_status(fields, status);
  return fields;
}

/// One range of a stream, its preface before it. The head goes out with the first bytes, or ahead
/// of a body that is slow to come.
net::awaitable<Exchange::Relayed> Exchange::relay_range(FlightReader& reader,
                                                        const ResponseSink::Head& response,
                                                        const Selection& selection, std::size_t i) {
  std::uint64_t offset = selection.ranges[i].first;
  const std::uint64_t end = selection.ranges[i].end();
  reader.skip_to(offset);
  bool is_prefaced = false;
  while (offset < end) {
    if (reader.would_wait()) {
      if (!sink_.begun()) begin(response);
      if (const auto flushed = co_await sink_.flush(); !flushed) co_return Relayed::Cut;
    }
    const auto pieces = co_await reader.next();
    if (!pieces && !sink_.begun()) co_return Relayed::Nothing;  // broken: nothing was promised yet
    if (!sink_.begun()) begin(response);
    if (!std::exchange(is_prefaced, true) && !selection.preface(i).empty()) {
      if (!co_await send_text(selection.preface(i))) co_return Relayed::Cut;
    }
    if (!pieces) {
      // The origin's body is whole so far, but what this reader still needs of it left the disk.
      const bool is_lost_here = reader.error() == OriginError::None;
      const bool is_open = !reader.content_length();
      const auto rest_end = is_open ? std::nullopt : std::optional(end);
      if (is_lost_here) {
        if (co_await send_rest(*reader.head(), offset, rest_end)) break;
      }
      services_.counters.cut_bodies.add();
      sink_.abort();
      co_return Relayed::Cut;
    }
    if (pieces->empty()) break;
    std::uint64_t bytes = 0;
    clipped_.clear();
    for (const auto& piece : *pieces) {
      const auto wanted = std::min<std::uint64_t>(piece.size(), end - offset - bytes);
      if (wanted == 0) break;
      clipped_.push_back(piece.first(wanted));
      bytes += wanted;
    }
    reader.take_only(bytes);
    const std::span<const std::span<const std::byte>> batch(clipped_);
    if (const auto sent = co_await sink_.write(batch); !sent) co_return Relayed::Cut;
    note_sent(bytes);
    offset += bytes;
  }
  co_return Relayed::Sent;
}

/// What of the flight's response goes to this client.
Selection Exchange::select_of_stream(const FlightReader& reader) const {
  const cache::ObjectHead& head = *reader.head();
  if ((reader.kept() || cuts_stream_) && reader.content_length() && wants_parts_of(head)) {
    Selection parts = select_parts(request_.fields, head, *reader.content_length());
    if (parts.is_ascending()) return parts;
  }
  return select_whole(head, reader.content_length());
}

net::awaitable<void> Exchange::refuse_for(OriginError error, CacheStatus status) {
  const bool late = error == OriginError::ConnectTimeout || error == OriginError::ResponseTimeout;
  status.stored = false;
  status.collapsed.reset();
  status.ttl.reset();
  co_await refuse(late ? 504 : 502, to_string(error), status);
}

/// Our own error: small, never stored by anyone.
net::awaitable<void> Exchange::refuse(int code, std::string_view detail, CacheStatus cache_status) {
  std::string patched = "Cache-Control: no-store\r\nContent-Type: text/plain; charset=utf-8\r\n";
  cache_status.detail = detail;
  detail_ = detail;
  append_cache_status(patched, cache_status);
  patched.append("Date: ").append(policy::format_http_date(now_)).append("\r\n");
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
  const Found nothing = make_found(primary, nullptr);
  FlightReader reader(services_, request_.fields, facts_);
  take_off(reader, plan_flight(primary, nothing, Sharing::Alone), nothing);
  if (co_await reader.arrive(&sink_) != Arrival::Head) {
    const OriginError error = reader.error();
    if (error == OriginError::RequestBody) co_return;  // the session answers for its own body
    co_return co_await refuse_for(error, status);
  }
  // RFC 9111 4.4: a non-error answer to an unsafe method.
  const int code = reader.head()->status;
  if (facts_.method == policy::Method::Unsafe && code >= 200 && code < 400) {
    co_await invalidate(primary);
    for (const std::string& target :
         policy::also_invalidated("http", request_.host, request_.target, reader.head()->fields)) {
      co_await invalidate(services_.sites.primary_key(request_.host, target, request_.fields));
    }
  }
  if (co_await relay(reader, status, Outcome::Bypass) != Served::Yes)
    co_await refuse_for(reader.error(), status);
}

net::awaitable<void> Exchange::invalidate(const CacheKey& primary) {
  Found found = make_found(primary, nullptr);
  found.object = services_.cache.find_in_memory(primary);
  if (const auto entry = services_.cache.find_on_disk(primary);
      !found.object && entry && entry->kind == cache::log::RecordKind::VaryMarker) {
    co_await read_from_disk(found, *entry);
  }
  const bool varies = found.object && found.object->is_vary_marker;
  services_.flights.forget(services_.cache, primary.fingerprint(), primary,
                           varies ? found.object : nullptr, services_.clock.wall());
}

// ----------------------------------------------------------------

/// Whether a stale response stands in without asking: the origin failed for this key a moment ago,
/// or cannot be reached at all.
bool Exchange::is_origin_spared(const Found& found) const {
  if (!may_stand_in(found)) return false;
  const SteadyTime now = services_.clock.steady();
  return services_.flights.is_failing(found.key.fingerprint(), now) ||
         services_.origin.is_down(now);
}

bool Exchange::may_stand_in(const Found& found) const {
  return proxy::may_stand_in(facts_, *found.head(), services_.sites.stale_if_error(request_.host),
                             now_);
}

bool Exchange::fetches_whole(const Found& found) const {
  return !range_alone_ &&
         proxy::fetches_whole(
             {.is_stored = static_cast<bool>(found),
              .verdict = services_.cache.peek(found.key, std::nullopt),
              .is_being_fetched = services_.flights.contains(found.key.fingerprint())});
}

/// Whether what the request's Range asks for comes soon in a stream of the whole. Of unknown
/// length, the client gets the whole.
bool Exchange::is_in_reach(const FlightReader& reader) const {
  const cache::ObjectHead& head = *reader.head();
  if (!wants_parts_of(head) || !reader.content_length()) return true;
  const Selection parts = select_parts(request_.fields, head, *reader.content_length());
  const std::uint64_t reach_bytes = reader.kept() ? kRangeReachBytes : kPassingReachBytes;
  return proxy::is_in_reach(parts, reader.received_bytes() + reach_bytes);
}

bool Exchange::wants_parts_of(const cache::ObjectHead& head) const {
  return proxy::wants_parts_of(facts_, head);
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
                .sites = shared.sites,
                .flights = shared.flights,
                .origin = *origin_,
                .disk = shared.disk,
                .counters = shared.counters,
                .access_log = shared.access_log,
                .tunnels = tunnels_,
                .purger = shared.purger} {}

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
