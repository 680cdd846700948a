#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "config/result.h"
#include "proxy/asio.h"

namespace secondsight::proxy {

/// Where a response goes: a Session in production, a recorder in tests. Exactly one response per
/// request: begin, write*, finish. One worker's thread.
class ResponseSink {
 public:
  struct Head {
    int status = 200;
    /// The pieces are sent one after the other; together "HTTP/1.1 200 OK\r\nName: value\r\n..."
    /// without the final empty line. Without Connection, Transfer-Encoding and Content-Length: the
    /// sink frames.
    std::string_view status_line;
    std::string_view ready;    // stored fields
    std::string_view patched;  // changing fields: Age, Via, Cache-Status
    /// Known length of the body (sent as Content-Length, for HEAD too); empty: chunked, or until
    /// close for HTTP/1.0.
    std::optional<std::uint64_t> content_length;
    bool has_body = true;  // false for HEAD, 204, 304: nothing may be written
    /// With status 101, which `patched` completes with Connection and Upgrade: what is written
    /// afterwards goes as it is, finish() ends our side, and the request's BodySource has what the
    /// client sends from then on, until it ends its side.
  };
  virtual ~ResponseSink() = default;

  /// Sends an interim (1xx) head at once, any number of times before begin(); `head` is its status
  /// line and fields, without the final empty line, and stays valid until it returns. Nothing for
  /// an HTTP/1.0 client. Errors as of write(). RFC 9110 15.2.
  virtual net::awaitable<Result<>> send_interim(std::string_view head) = 0;
  /// Frames and buffers the head; it goes out with the first body bytes, or at flush() or finish().
  virtual void begin(const Head&) = 0;
  /// Sends pieces (with the head, in one system call where possible). The bytes must stay valid
  /// until it returns. Waits while the client is slow. Errors: connection lost, timed_out; then
  /// write no more.
  virtual net::awaitable<Result<>> write(std::span<const std::span<const std::byte>> pieces) = 0;
  /// Sends what is buffered now (a head whose body is slow to come).
  virtual net::awaitable<Result<>> flush() = 0;
  /// Fields ("Name: value\r\n" each) to follow the body: once, after the last write() and before
  /// finish(). Dropped where the framing has no place for them.
  virtual void add_trailers(std::string_view fields) = 0;
  /// Ends the message. If fewer bytes were written than promised, the connection is closed instead.
  virtual net::awaitable<Result<>> finish() = 0;
  /// Ends the connection without ending the message, so that the client sees it cut (reset when
  /// framing is by close).
  virtual void abort() noexcept = 0;
  virtual bool begun() const noexcept = 0;
};

}  // namespace secondsight::proxy
