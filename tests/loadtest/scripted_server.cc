#include "tests/loadtest/scripted_server.h"

#include <sys/socket.h>
#include <utility>

#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

namespace secondsight::loadtest {

using boost::system::error_code;

ScriptedServer::ScriptedServer(Script script) : script_(std::move(script)), acceptor_(io_) {
  const tcp::endpoint any(net::ip::address_v4::loopback(), 0);
  acceptor_.open(any.protocol());
  acceptor_.bind(any);
  acceptor_.listen();
  endpoint_ = acceptor_.local_endpoint();
  acceptor_thread_ = std::thread([this] { accept(); });
}

// shutdown(2) wakes the threads that block in the kernel; closing would race with them.
ScriptedServer::~ScriptedServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
    for (const auto& socket : sockets_) ::shutdown(socket->native_handle(), SHUT_RDWR);
  }
  acceptor_thread_.join();
  for (std::thread& thread : threads_) thread.join();
}

void ScriptedServer::accept() {
  for (;;) {
    error_code error;
    auto socket = std::make_shared<tcp::socket>(io_);
    acceptor_.accept(*socket, error);
    if (error) return;
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    ++connections_;
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] { serve(*socket); });
  }
}

void ScriptedServer::serve(tcp::socket& socket) {
  std::string buffer;
  for (;;) {
    error_code error;
    const std::size_t length =
        net::read_until(socket, net::dynamic_buffer(buffer), "\r\n\r\n", error);
    if (error) break;
    const auto space = buffer.find(' ');
    const Reply reply = script_(buffer.substr(space + 1, buffer.find(' ', space + 1) - space - 1));
    buffer.erase(0, length);
    net::write(socket, net::buffer(reply.bytes), error);
    char next = 0;
    if (reply.hang) socket.read_some(net::buffer(&next, 1), error);
    if (error || reply.close || reply.hang) break;
  }
  ::shutdown(socket.native_handle(), SHUT_RDWR);
}

}  // namespace secondsight::loadtest
