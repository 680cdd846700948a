#pragma once
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace secondsight::proxy {

namespace net = boost::asio;
using tcp = net::ip::tcp;

/// The one completion token: network errors come back as values.
///   const auto [error, bytes] = co_await socket.async_read_some(buffer, use_result);
/// g++ 12.2 destroys temporaries of a co_await expression twice: pass named locals, moved.
// NOLINTNEXTLINE(readability-identifier-naming): named like the tokens it stands among
inline constexpr auto use_result = net::as_tuple(net::use_awaitable);

}  // namespace secondsight::proxy
