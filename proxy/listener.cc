#include "proxy/listener.h"

#include <cerrno>
#include <sys/socket.h>

#include <boost/asio/ip/v6_only.hpp>

namespace secondsight::proxy {
namespace {

using boost::system::error_code;

// Connections the kernel holds until they are accepted; it cuts this to net.core.somaxconn.
constexpr int kBacklog = 4096;

enum class Port { Exclusive, Shared };

error_code bind_acceptor(tcp::acceptor& acceptor, const tcp::endpoint& endpoint, Port port) {
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.protocol() == tcp::v6())
    acceptor.set_option(net::ip::v6_only(true), error);
  if (error) return error;
  if (port == Port::Shared) {
    const int on = 1;
    if (::setsockopt(acceptor.native_handle(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0)
      return {errno, boost::system::system_category()};
  }
  acceptor.bind(endpoint, error);
  return error;
}

}  // namespace

Result<tcp::endpoint> endpoint_of(const ListenAddress& address) {
  error_code error;
  const auto ip = net::ip::make_address(address.host, error);
  if (error) return error;
  return tcp::endpoint(ip, address.port);
}

Result<> check_unused(const tcp::endpoint& endpoint) {
  net::io_context io;
  tcp::acceptor probe(io);
  const error_code error = bind_acceptor(probe, endpoint, Port::Exclusive);
  if (error) return error;
  return {};
}

Result<tcp::acceptor> open_listener(net::io_context& io, const tcp::endpoint& endpoint) {
  tcp::acceptor acceptor(io);
  error_code error = bind_acceptor(acceptor, endpoint, Port::Shared);
  if (!error) acceptor.listen(kBacklog, error);
  if (error) return error;
  return acceptor;
}

}  // namespace secondsight::proxy
