#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "config/result.h"
#include "config/settings.h"
#include "proxy/asio.h"

namespace secondsight::proxy {

/// One connection to an origin for bytes both ways, plain or TLS (certificate and name checked
/// against the system's authorities, HTTP/1.1 by ALPN). One read and one write may be under way at
/// a time. Must outlive both. One worker's thread.
class OriginStream {
 public:
  explicit OriginStream(net::io_context& io);
  ~OriginStream();
  OriginStream(const OriginStream&) = delete;
  OriginStream& operator=(const OriginStream&) = delete;

  /// Resolves, connects and, for https, shakes hands. May be tried again after an error.
  net::awaitable<Result<>> connect(const OriginUrl& url);
  /// At least one byte; none: the origin ended its side in order. The error eof: it ended without
  /// TLS's own word for it, as many do.
  net::awaitable<Result<std::size_t>> read_some(std::span<std::byte> out);
  /// All of it.
  net::awaitable<Result<>> write(std::span<const std::byte> bytes);
  /// As many as there is room for, at least one.
  net::awaitable<Result<std::size_t>> write_some(std::span<const std::byte> bytes);
  /// What of it the origin has not acknowledged. See send_queue.h.
  std::size_t unsent_bytes() noexcept;
  /// Ends our side; the origin's stays open. False over TLS, which has no such half.
  bool end_sending() noexcept;
  /// Ends both sides, and whatever is under way.
  void close() noexcept;

 private:
  struct Tls;
  net::awaitable<Result<>> shake_hands(std::string_view host);

  net::io_context& io_;
  tcp::resolver resolver_;
  tcp::socket socket_;
  std::unique_ptr<Tls> tls_;  // over socket_, for https
  bool is_closed_ = false;
};

}  // namespace secondsight::proxy
