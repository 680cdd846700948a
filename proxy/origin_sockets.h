#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <curl/curl.h>

#include "proxy/asio.h"

namespace secondsight::proxy {

/// libcurl's sockets and its timer, waited for on `io`. Owns the sockets that libcurl connects. One
/// thread, io's.
///
/// System calls: a descriptor is registered with the reactor once, when it is opened; each wait
/// costs one epoll_ctl. A wait that libcurl no longer wants is left standing: its completion finds
/// that nobody wants it. The timer is moved only towards earlier: most of libcurl's timeouts (one
/// per connection attempt) are withdrawn before they are due.
class OriginSockets {
 public:
  /// Called when libcurl must act: a socket and CURL_CSELECT_* bits, or CURL_SOCKET_TIMEOUT and 0.
  /// Never from within libcurl.
  using Action = std::function<void(curl_socket_t socket, int events)>;

  OriginSockets(net::io_context& io, Action action);
  ~OriginSockets();
  OriginSockets(const OriginSockets&) = delete;
  OriginSockets& operator=(const OriginSockets&) = delete;

  /// Sets the multi handle's callbacks. The handle must be cleaned up before this is destroyed.
  void drive(CURLM* multi);
  /// For CURLOPT_OPENSOCKETFUNCTION: CURL_SOCKET_BAD when there is no descriptor left.
  curl_socket_t open(const curl_sockaddr& address);
  /// For CURLOPT_CLOSESOCKETFUNCTION.
  void close(curl_socket_t socket) noexcept;

 private:
  struct Socket;
  struct Timeout;
  void watch(curl_socket_t socket, int events);
  void unwatch(curl_socket_t socket) noexcept;
  void wait(const std::shared_ptr<Socket>& socket);
  void ready(const std::shared_ptr<Socket>& socket, int event);
  void set_timeout(long milliseconds);
  void wait_for_timer(std::chrono::steady_clock::time_point when);
  std::shared_ptr<Socket>& slot(curl_socket_t socket);
  std::shared_ptr<Socket> adopt(curl_socket_t socket);

  net::io_context& io_;
  Action action_;
  std::vector<std::shared_ptr<Socket>> sockets_;  // by descriptor number; shared with their waits
  std::shared_ptr<Timeout> timeout_;              // shared with its waits
};

}  // namespace secondsight::proxy
