#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/intrusive/list.hpp>

#include "config/clock.h"
#include "config/settings.h"
#include "proxy/asio.h"
#include "proxy/body_decoder.h"
#include "proxy/front_metrics.h"
#include "proxy/handler.h"
#include "proxy/request_parser.h"

namespace secondsight::proxy {

class SessionSet;

/// One client connection: reads requests one after the other, has each answered by the handler, and
/// frames the answers. Pipelined requests wait in the buffer. Lives and dies on one worker.
///
/// No timer per operation: the session only notes what it waits for; the worker's tick starts the
/// clock of a wait at the first tick that sees it and cancels it when it is overdue. So a timeout
/// comes up to one tick late, never early, and the hot path reads no clock. A write that is overdue
/// is cut only when the client has taken nothing since its clock started.
class Session final : private BodySource,
                      private ResponseSink,
                      public boost::intrusive::list_base_hook<
                          boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  Session(tcp::socket socket, SessionSet& set);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// The connection's whole life. The session must outlive it.
  net::awaitable<void> run();
  /// Starts the clock of a new wait, or ends one that is overdue.
  void tick(SteadyTime now);
  /// Closes the connection if it is idle; otherwise it closes after the response under way.
  void begin_drain();

 private:
  enum class Wait : std::uint8_t { None, Idle, Head, Body, Write, Linger, Tunnel };
  /// One operation under way on the socket.
  struct Waiting {
    SteadyTime deadline{};
    std::size_t unsent_bytes = 0;  // of a Write, when the clock started
    Wait kind = Wait::None;
    bool is_clock_running = false;  // deadline is that of this wait
    bool is_cut = false;            // we cancelled it
    void begin(Wait what) noexcept;
    bool end(const boost::system::error_code& error) noexcept;
  };
  enum class Framing : std::uint8_t { Length, Chunked, UntilClose, Tunnel };

  net::awaitable<bool> read_request();
  net::awaitable<void> refuse(std::string_view response);
  net::awaitable<bool> skip_body();
  net::awaitable<void> linger();
  net::awaitable<Result<>> send(std::span<net::const_buffer> buffers);

  std::optional<IpAddress> client_address() const;
  void start_exchange();
  net::awaitable<Result<std::span<const std::byte>>> next_of_tunnel();
  bool send_continue();
  boost::system::error_code body_failed(RequestFault fault);
  bool must_close_after() const;
  void send_at_once(std::span<net::const_buffer>& buffers, boost::system::error_code& error);
  void tick(Waiting& waiting, SteadyTime now) noexcept;
  void start_clock(Waiting& waiting, SteadyTime now) noexcept;
  void cut(Waiting& waiting) noexcept;
  std::chrono::milliseconds timeout_of(Wait wait) const noexcept;
  std::string_view buffered() const noexcept;
  net::mutable_buffer read_room(std::size_t bytes_min);
  void reset_at_close() noexcept;
  void close() noexcept;

  // BodySource
  net::awaitable<Result<std::span<const std::byte>>> next() override;
  // ResponseSink
  net::awaitable<Result<>> send_interim(std::string_view head) override;
  void begin(const Head& head) override;
  net::awaitable<Result<>> write(std::span<const std::span<const std::byte>> pieces) override;
  net::awaitable<Result<>> flush() override;
  void add_trailers(std::string_view fields) override;
  net::awaitable<Result<>> finish() override;
  void abort() noexcept override;
  bool begun() const noexcept override { return begun_; }

  // One for each direction: a handler may pull the body while it sends. First, since each tick
  // looks.
  Waiting reading_;
  Waiting writing_;

  tcp::socket socket_;
  SessionSet& set_;
  boost::beast::flat_buffer buffer_;
  RequestParser parser_;
  Request request_;

  // The request body.
  BodyDecoder decoder_;
  std::size_t piece_bytes_ = 0;  // of the buffer, out with the last piece
  bool is_continue_due_ = false;
  bool is_continue_held_ = false;  // until the interim head under way is out
  std::optional<RequestFault> body_fault_;

  // The response.
  std::string head_;  // framed, not yet sent
  std::uint64_t promised_bytes_ = 0;
  std::uint64_t written_bytes_ = 0;
  std::size_t burst_bytes_ = 0;  // sent without giving way to other sessions
  Framing framing_ = Framing::Length;
  bool is_sending_interim_ = false;
  bool has_trailers_ = false;  // in head_, behind the last chunk's size
  bool begun_ = false;
  bool finished_ = false;
  bool keep_ = true;     // read another request after this response
  bool broken_ = false;  // nothing can be sent any more
};

/// The sessions of one worker: what they share, the tick that times them, their end.
class SessionSet {
 public:
  /// All must outlive the set; the set must outlive its sessions.
  SessionSet(const ProxySettings& settings, Handler& handler, FrontMetrics& metrics);

  /// Runs a session on the socket's executor until the connection ends; over max_connections it is
  /// closed at once and counted.
  void add(tcp::socket socket);
  void tick(SteadyTime now);
  void begin_drain();
  bool draining() const noexcept { return draining_; }
  std::size_t count() const noexcept { return count_; }
  /// Called each time a session has ended.
  void on_end(std::function<void()> hook) { on_end_ = std::move(hook); }

 private:
  friend class Session;
  void ended(const std::exception_ptr& failure);
  const ProxySettings& settings_;
  Handler& handler_;
  FrontMetrics& metrics_;
  boost::intrusive::list<Session, boost::intrusive::constant_time_size<false>> sessions_;
  std::size_t count_ = 0;
  bool draining_ = false;
  std::function<void()> on_end_;
};

}  // namespace secondsight::proxy
