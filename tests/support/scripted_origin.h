#pragma once
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace secondsight::test {

class ScriptedOrigin;

/// The origin's end of one connection, in blocking calls. Used by a script on that connection's
/// thread.
class OriginConnection {
 public:
  OriginConnection(ScriptedOrigin& origin, int socket, std::size_t number);
  ~OriginConnection();
  OriginConnection(const OriginConnection&) = delete;
  OriginConnection& operator=(const OriginConnection&) = delete;

  /// Counted from 0, in the order of acceptance.
  std::size_t number() const noexcept { return number_; }
  /// One request with its body (by Content-Length or chunked, framing included), as it came;
  /// recorded in ScriptedOrigin::requests(). Empty when the peer closed before its end.
  std::string read_request();
  /// Only the head, up to its empty line.
  std::string read_head();
  /// Bytes that came behind what was read, or the next that come. Empty when the peer closed.
  std::string read_some();
  /// False when the peer is gone.
  bool send(std::string_view bytes);
  /// Blocks until the peer closes; what it still sends is dropped.
  void wait_for_close();
  /// Blocks until the test calls ScriptedOrigin::release().
  void checkpoint();
  /// Sends a FIN, and still reads.
  void finish_sending();
  /// Ends the connection with a FIN, or with a RST. Also done (FIN) when the script returns.
  void close();
  void reset();

 private:
  bool fill();

  ScriptedOrigin& origin_;
  int socket_;
  std::size_t number_;
  std::string buffer_;
};

/// A raw-socket HTTP origin on 127.0.0.1 at a port of the kernel's choice. Each connection runs the
/// script on a thread of its own, so that a script reads as a transcript:
///   ScriptedOrigin origin([](OriginConnection& c) {
///     while (!c.read_request().empty()) c.send("HTTP/1.1 204 No Content\r\n\r\n");
///   });
/// Its members may be called from any thread. The destructor cuts all connections and waits for the
/// scripts.
class ScriptedOrigin {
 public:
  using Script = std::function<void(OriginConnection&)>;
  explicit ScriptedOrigin(Script script);
  ~ScriptedOrigin();
  ScriptedOrigin(const ScriptedOrigin&) = delete;
  ScriptedOrigin& operator=(const ScriptedOrigin&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<std::string> requests() const;
  std::size_t connections() const;
  /// Scripts that wait in checkpoint().
  std::size_t at_checkpoint() const;
  /// Blocks until so many scripts have returned, and their connections are closed.
  void wait_for_scripts(std::size_t count);
  /// Lets one checkpoint() return, now or when it comes.
  void release();

 private:
  friend class OriginConnection;
  void accept_connections();
  void record(std::string request);
  void wait_at_checkpoint();

  Script script_;
  std::uint16_t port_ = 0;
  int listener_;  // sets port_
  mutable std::mutex mutex_;
  std::condition_variable released_;
  std::condition_variable returned_;
  std::vector<std::string> requests_;
  std::vector<int> sockets_;  // of running scripts; -1 when ended
  std::vector<std::thread> threads_;
  std::size_t releases_ = 0;
  std::size_t waiting_ = 0;
  std::size_t ended_ = 0;
  bool ending_ = false;
  std::thread acceptor_;
};

/// Answers every request on every connection with the same bytes, until the peer closes.
ScriptedOrigin::Script answer_always(std::string response);

/// A port on 127.0.0.1 where nobody listens: taken from the kernel and closed again.
std::uint16_t refusing_port();

}  // namespace secondsight::test
