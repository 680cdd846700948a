// The part of Exchange that lets a client and an origin change the protocol: nothing of it touches
// the cache.
#include <array>
#include <string>
#include <utility>

#include "cache/policy/freshness.h"
#include "proxy/exchange.h"
#include "proxy/exchange_rules.h"
#include "proxy/tunnel.h"

namespace secondsight::proxy {

net::awaitable<bool> Exchange::pass_upgrade() {
  const std::string protocols = upgrade_protocols(request_);
  if (protocols.empty()) co_return false;
  CacheStatus status;
  status.forward = Forward::Bypass;
  Tunnel tunnel(services_.tunnels);
  OriginHead head;
  std::size_t interim_heads = 0;
  const std::string request = upgrade_request(
      request_, services_.sites.forwarded_target(request_.host, request_.target), protocols);
  OriginError error = co_await tunnel.open(request);
  while (error == OriginError::None) {
    error = co_await tunnel.read_head(head);
    if (error != OriginError::None || head.status == 101 || head.status >= 200) break;
    if (++interim_heads > kInterimHeadsMax) continue;
    const std::string interim = interim_head(head);
    (void)co_await sink_.send_interim(interim);
  }
  if (error == OriginError::None && head.status == 101 && !is_agreed(head.fields, protocols))
    error = OriginError::Malformed;
  if (error != OriginError::None) {
    const bool late = error == OriginError::ConnectTimeout || error == OriginError::ResponseTimeout;
    co_await refuse(late ? 504 : 502, to_string(error), status);
    co_return true;
  }
  if (head.status >= 200) {
    co_await relay_declined(tunnel, head, status);
    co_return true;
  }
  std::string fields = "Connection: Upgrade\r\nUpgrade: " + *head.fields.joined("Upgrade") + "\r\n";
  append_cache_status(fields, status);
  const std::string interim = interim_head(head);
  begin({.status = 101,
         .status_line = interim,
         .ready = {},
         .patched = fields,
         .content_length = std::nullopt});
  if (co_await sink_.flush()) note_sent(co_await tunnel.carry(body_, sink_));
  finish(Outcome::Bypass);
  co_return true;
}

/// The origin stays with HTTP: its answer is passed on, and never kept.
net::awaitable<void> Exchange::relay_declined(Tunnel& tunnel, const OriginHead& head,
                                              CacheStatus status) {
  const WallTime now = services_.clock.wall();
  const auto answer = make_object_head(head, {now_, now});
  std::string patched;
  const Seconds age = cache::policy::current_age(answer->facts, answer->times, now);
  if (age > Seconds{0}) append_age(patched, age);
  append_cache_status(patched, status);
  const std::string line = status_line(head.status, head.reason);
  const ResponseSink::Head response{.status = head.status,
                                    .status_line = line,
                                    .ready = answer->fields.text(),
                                    .patched = patched,
                                    .content_length = head.content_length,
                                    .has_body = has_response_body(request_, head.status)};
  begin(response);
  while (response.has_body) {
    const auto piece = co_await tunnel.next();
    if (!piece) {
      services_.counters.cut_bodies.add();
      sink_.abort();
      co_return finish(Outcome::Bypass);
    }
    if (piece->empty()) break;
    const std::array<std::span<const std::byte>, 1> pieces{*piece};
    const std::span<const std::span<const std::byte>> batch(pieces);
    if (const auto sent = co_await sink_.write(batch); !sent) co_return finish(Outcome::Bypass);
    note_sent(piece->size());
  }
  (void)co_await sink_.finish();
  finish(Outcome::Bypass);
}

}  // namespace secondsight::proxy
