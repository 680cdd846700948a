#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace secondsight::loadtest {

namespace net = boost::asio;
using tcp = net::ip::tcp;

}  // namespace secondsight::loadtest
