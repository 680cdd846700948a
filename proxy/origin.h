#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cache/policy/fields.h"
#include "config/clock.h"
#include "config/metrics.h"
#include "config/settings.h"
#include "proxy/asio.h"
#include "proxy/body.h"

namespace secondsight::proxy {

/// What is sent to the origin. `fields` are end-to-end and complete (Host, Via included); the
/// client adds only Connection and message framing.
struct OriginRequest {
  std::string method;
  std::string target;
  cache::policy::FieldBlock fields;
  /// Pulled on this worker, one next() at a time, only after a connection stands. Once the fetch is
  /// destroyed or has called on_done, next() is not called again; a call that still waits is
  /// cancelled (terminal cancellation of its coroutine) and its result dropped. So whoever owns the
  /// source keeps it, and does not read the client's connection by another way, until that call has
  /// returned.
  BodySource* body = nullptr;
  std::optional<std::uint64_t> content_length;  // of the body; empty with a body: chunked
  /// The client waits to be told to send its body: so does the fetch, for at most
  /// kContinuePatience. RFC 9110 10.1.1.
  bool expects_continue = false;
  bool accepts_trailers = false;  // sends "TE: trailers". RFC 9110 10.1.4
};

/// How long an origin may take to answer "Expect: 100-continue"; many never do. Up to two ticks
/// more.
inline constexpr std::chrono::seconds kContinuePatience{1};

/// A response head from the origin, final or interim: checked as strictly as a client's request.
struct OriginHead {
  int status = 0;
  std::string reason;
  int version = 11;                  // 10, 11 or 20
  cache::policy::FieldBlock fields;  // as received, all of them (hop-by-hop ones included)
  /// As the field says, for HEAD and 304 too; empty for 204. Empty otherwise: chunked, or until
  /// close.
  std::optional<std::uint64_t> content_length;
};

/// How a fetch failed; decides between 502 and 504, and whether another origin may be tried.
enum class OriginError : std::uint8_t {
  None,
  Unreachable,      // no connection: refused, unreachable, name not found. Nothing was sent. 502
  ConnectTimeout,   // 504
  ResponseTimeout,  // no response head in time, or no body bytes in time. 504
  Disconnected,     // the origin closed before a whole head. 502, never sent again
  Malformed,        // bad head, bad framing, too large a head. 502
  Truncated,        // the body ended before its length or its last chunk
  RequestBody,      // the client's body failed
  Cancelled,        // we did
};
std::string_view to_string(OriginError) noexcept;

/// Takes one response as it comes. Called on the worker's thread, never from within start(),
/// resume() or a fetch's destructor. Each call may start, resume and destroy fetches, its own
/// included, but not the client.
class OriginReceiver {
 public:
  enum class Flow : std::uint8_t { Go, Pause };
  virtual ~OriginReceiver() = default;
  /// An interim (1xx) head, before on_head; never 100 (the body's business) or 101 (malformed).
  virtual void on_interim(OriginHead&&) {}
  /// The final head.
  virtual void on_head(OriginHead&& head) = 0;
  /// Bytes without framing. Pause stops delivery after these until resume(); these count as taken.
  /// Up to 64 KiB more are then held back (HTTP/2: up to the stream's window, 32 MiB).
  virtual Flow on_body(std::span<const std::byte> bytes) = 0;
  /// A field behind the body; not those that may not be there. RFC 9110 6.5.
  virtual void on_trailer(cache::policy::FieldLine) {}
  /// The last call: None when the whole body came. Does not wait for resume() when nothing is held
  /// back.
  virtual void on_done(OriginError error) = 0;
};

/// One fetch under way. Destroying it cancels it: its connection is closed, not pooled (HTTP/2: its
/// stream is reset), and the receiver is not called again. May outlive the client, as an empty
/// shell.
class OriginFetch {
 public:
  virtual ~OriginFetch() = default;
  /// After Flow::Pause; harmless otherwise. Delivery goes on later, from io. Within on_body it
  /// undoes no Pause that this on_body is about to return.
  virtual void resume() = 0;
};

/// One worker's way to the origins: pooled connections, HTTP/1.1 (and 2 over TLS). Never sends a
/// request twice that an origin may have received; a refused connection tries the next origin.
class OriginClient {
 public:
  virtual ~OriginClient() = default;
  /// `receiver` must outlive the fetch.
  virtual std::unique_ptr<OriginFetch> start(OriginRequest request, OriginReceiver& receiver) = 0;
  /// Whether every origin lately could not be reached, and it is not yet time to try again: what
  /// can be answered without one should be.
  virtual bool is_down(SteadyTime now) = 0;
  /// Ends fetches whose time is over: no response head in response_timeout (waiting for a free
  /// connection included, sending the request's body not), or no progress in idle_timeout. Time in
  /// which the receiver pauses or the request's body is waited for does not count. Called about ten
  /// times a second by the worker, from no callback; connect_timeout alone is libcurl's, by the
  /// machine's clock.
  virtual void tick(SteadyTime now) = 0;
};

/// libcurl's multi interface driven by `io`. All on io's one thread; destroyed on it, or after it
/// ended.
std::unique_ptr<OriginClient> make_curl_origin_client(net::io_context& io, const OriginSettings&,
                                                      const Clock&, Metrics&);

}  // namespace secondsight::proxy
