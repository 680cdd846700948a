#pragma once
#include <cstddef>

#include "config/result.h"
#include "config/settings.h"
#include "proxy/asio.h"

namespace secondsight::proxy {

/// The address as an endpoint; an error for what is not numeric.
Result<tcp::endpoint> endpoint_of(const ListenAddress& address);

/// Whether nobody listens there yet. SO_REUSEPORT would let a second process of the same user take
/// half of the connections unnoticed, so a server asks this once, before its workers open their
/// listeners.
Result<> check_unused(const tcp::endpoint& endpoint);

/// Opens a listening socket that shares its port with those of the other workers (SO_REUSEPORT).
/// With port 0 the kernel chooses one: local_endpoint() tells which.
Result<tcp::acceptor> open_listener(net::io_context& io, const tcp::endpoint& endpoint);

}  // namespace secondsight::proxy
