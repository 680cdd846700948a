#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "loadtest/asio.h"

namespace secondsight::loadtest {

/// A server that says what a test wants, byte for byte: one thread a connection, blocking.
class ScriptedServer {
 public:
  /// What to send for one request (its target given), and whether to close behind it.
  struct Reply {
    std::string bytes;
    bool close = false;
    bool hang = false;  // send no more, keep the connection until the client leaves
  };
  using Script = std::function<Reply(const std::string& target)>;

  explicit ScriptedServer(Script script);
  ~ScriptedServer();

  tcp::endpoint endpoint() const { return endpoint_; }
  std::uint64_t connections() const { return connections_.load(); }

 private:
  void accept();
  void serve(tcp::socket& socket);

  Script script_;
  net::io_context io_;
  tcp::acceptor acceptor_;
  tcp::endpoint endpoint_;
  std::atomic<std::uint64_t> connections_{0};
  std::mutex mutex_;  // guards sockets_, threads_, stopping_
  std::vector<std::shared_ptr<tcp::socket>> sockets_;
  std::vector<std::thread> threads_;
  bool stopping_ = false;
  std::thread acceptor_thread_;
};

}  // namespace secondsight::loadtest
