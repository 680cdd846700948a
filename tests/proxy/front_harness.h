#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/metrics.h"
#include "config/settings.h"
#include "proxy/session.h"
#include "tests/support/raw_client.h"

namespace secondsight::proxy {

/// A handler made of one function.
class FunctionHandler final : public Handler {
 public:
  using Function = std::function<net::awaitable<void>(const Request&, BodySource&, ResponseSink&)>;
  FunctionHandler() = default;
  net::awaitable<void> handle(const Request& request, BodySource& body,
                              ResponseSink& sink) override {
    co_await function(request, body, sink);
  }
  Function function;
};

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// Sends one small 200 with `text`.
inline net::awaitable<void> respond(ResponseSink& sink, std::string_view text,
                                    bool has_body = true) {
  ResponseSink::Head head;
  head.ready = "HTTP/1.1 200 OK\r\nX-Stored: yes\r\n";
  head.patched = "Age: 1\r\n";
  head.content_length = text.size();
  head.has_body = has_body;
  sink.begin(head);
  const std::span<const std::byte> piece = bytes_of(text);
  if (has_body && (co_await sink.write(std::span(&piece, 1))).has_error()) co_return;
  (void)co_await sink.finish();
}

/// Sessions, their clients and a hand-driven clock, all on the test's own thread: nothing runs but
/// while a client waits or run() is called.
class FrontHarness {
 public:
  ProxySettings settings;
  Metrics metrics;
  FrontMetrics front{metrics};
  FunctionHandler handler;
  struct Loop : net::io_context {
    Loop() : net::io_context(1) {}
    using net::io_context::shutdown;
  };
  Loop io;
  SessionSet sessions{settings, handler, front};
  SteadyTime now{};

  FrontHarness() {
    const auto loopback = net::ip::address_v4::loopback();
    acceptor_.open(tcp::v4());
    acceptor_.bind({loopback, 0});
    acceptor_.listen();
  }
  /// Before what they refer to goes.
  ~FrontHarness() { io.shutdown(); }

  std::unique_ptr<testing::RawClient> connect(int receive_buffer_bytes = 0,
                                              int send_buffer_bytes = 0) {
    testing::RawClient::Options options;
    options.pump = [this] { run(); };
    options.receive_buffer_bytes = receive_buffer_bytes;
    auto client =
        std::make_unique<testing::RawClient>(acceptor_.local_endpoint().port(), std::move(options));
    tcp::socket socket = acceptor_.accept();
    if (send_buffer_bytes > 0)
      socket.set_option(net::socket_base::send_buffer_size(send_buffer_bytes));
    sessions.add(std::move(socket));
    run();
    return client;
  }
  /// Runs all that can run without waiting.
  void run() {
    io.restart();
    io.poll();
  }
  void advance(std::chrono::milliseconds by) {
    run();
    sessions.tick(now);  // starts the clock of what waits
    now += by;
    sessions.tick(now);
    run();
  }
  std::uint64_t malformed(RequestFault fault) { return front.malformed(fault).value(); }

 private:
  tcp::acceptor acceptor_{static_cast<net::io_context&>(io)};
};

}  // namespace secondsight::proxy
