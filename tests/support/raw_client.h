#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace secondsight::testing {

/// A response as a client saw it.
struct RawResponse {
  int status = 0;      // 0: none came
  std::string head;    // status line and fields, without the empty line
  std::string body;    // chunked framing removed
  bool whole = false;  // ended as its framing promised
  /// The value of the first field of that name, compared without case; empty when there is none.
  std::string field(std::string_view name) const;
};

/// A client that sends exactly the bytes it is told and reads what comes, over one non-blocking
/// socket. Every wait ends after ten seconds, so that a test that would hang fails. While it waits
/// it calls `pump`, with which a test drives an event loop on the same thread.
class RawClient {
 public:
  struct Options {
    std::function<void()> pump;
    int receive_buffer_bytes = 0;  // 0: the kernel's choice; small ones make slow readers
  };
  /// Connects over loopback.
  explicit RawClient(std::uint16_t port) : RawClient(port, Options{}) {}
  RawClient(std::uint16_t port, Options options);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  /// Sends all; false when the connection broke or nobody read for too long.
  bool send(std::string_view bytes);
  /// What has arrived, at most `bytes_max`, without waiting.
  std::string read_some(std::size_t bytes_max = 65536);
  /// Everything up to and with `end`; what came when the connection ended before.
  std::string read_until(std::string_view end);
  /// Exactly that many bytes, or fewer when the connection ended.
  std::string read_exactly(std::size_t bytes);
  /// All until the peer ended the connection.
  std::string read_to_end();
  /// One final response (interim ones are skipped), framed by its head.
  RawResponse read_response(std::string_view request_method = "GET");
  /// Waits for the peer's end: true for an orderly one or a reset, false when time ran out.
  bool wait_closed();
  bool was_reset() const noexcept { return was_reset_; }

  void shutdown_send();
  void close();
  /// Closes with a reset.
  void reset();

 private:
  bool fill();
  void pump();
  std::string take(std::size_t bytes);

  std::function<void()> pump_;
  int fd_ = -1;
  std::string received_;  // not yet handed out
  bool is_ended_ = false;
  bool was_reset_ = false;
};

}  // namespace secondsight::testing
