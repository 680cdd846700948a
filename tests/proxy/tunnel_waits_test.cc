// What a tunnel waits for and how long, on the test's own thread: time, ticks and the client's side
// are by hand, only the origin has a thread.
#include <atomic>
#include <memory>
#include <string>

#include <boost/asio/co_spawn.hpp>
#include <gtest/gtest.h>

#include "proxy/signal.h"
#include "proxy/tunnel.h"
#include "tests/proxy/flight_fixture.h"

namespace secondsight::proxy::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMuch = 1U << 20;  // to open a window again that has grown with what was read

/// A client that sends without end, or nothing, and takes what it is told to take.
class HandDrivenClient final : public BodySource, public ResponseSink {
 public:
  explicit HandDrivenClient(net::io_context& io)
      : may_send_(std::make_shared<Signal>(io)), may_take_(std::make_shared<Signal>(io)) {}

  net::awaitable<Result<std::span<const std::byte>>> next() override {
    while (!is_aborted && !sends) co_await may_send_->wait();
    if (is_aborted) co_return make_error_code(boost::system::errc::connection_aborted);
    co_return std::as_bytes(std::span(piece_));
  }
  net::awaitable<Result<>> write(std::span<const std::span<const std::byte>> pieces) override {
    while (!is_aborted && !takes) co_await may_take_->wait();
    if (is_aborted) co_return make_error_code(boost::system::errc::connection_aborted);
    for (const auto piece : pieces) received += piece.size();
    co_return Result<>{};
  }
  net::awaitable<Result<>> finish() override { co_return Result<>{}; }
  void abort() noexcept override {
    is_aborted = true;
    may_send_->notify();
    may_take_->notify();
  }
  net::awaitable<Result<>> send_interim(std::string_view) override { co_return Result<>{}; }
  net::awaitable<Result<>> flush() override { co_return Result<>{}; }
  void begin(const Head&) override {}
  void add_trailers(std::string_view) override {}
  bool begun() const noexcept override { return true; }
  void take() {
    takes = true;
    may_take_->notify();
  }

  bool sends = false;
  bool takes = true;
  bool is_aborted = false;
  std::size_t received = 0;

 private:
  std::shared_ptr<Signal> may_send_;
  std::shared_ptr<Signal> may_take_;
  std::string piece_ = std::string(16U << 10, 'x');
};

class TunnelWaits : public ::testing::Test {
 protected:
  TunnelWaits() {
    settings.proxy.body_timeout = 30s;
    settings.proxy.idle_timeout = 60s;
  }

  /// Leaves it open; `after` is what the origin does behind its 101.
  void open(ScriptedOrigin::Script after) {
    origin = std::make_unique<ScriptedOrigin>([after](OriginConnection& connection) {
      if (connection.read_request().empty()) return;
      connection.send("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: odd\r\n\r\n");
      after(connection);
    });
    settings.origin.urls = {
        {.tls = false, .host = "127.0.0.1", .port = origin->port(), .text = origin->url()}};
    tunnels = std::make_unique<Tunnels>(io, settings, clock, metrics);
    tunnel = std::make_unique<Tunnel>(*tunnels);
    net::co_spawn(io, life(), [this](const std::exception_ptr& failure) {
      EXPECT_FALSE(failure);
      is_over = true;
    });
    ASSERT_TRUE(eventually([&] {
      run();
      return is_carrying;
    }));
  }
  net::awaitable<void> life() {
    OriginHead head;
    const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    EXPECT_EQ(co_await tunnel->open(request), OriginError::None);
    EXPECT_EQ(co_await tunnel->read_head(head), OriginError::None);
    EXPECT_EQ(head.status, 101);
    is_carrying = true;
    (void)co_await tunnel->carry(client, client);
  }
  void run() {
    io.restart();
    io.poll();
  }
  void pass(std::chrono::seconds time) {
    look();
    clock.advance(time);
    look();
  }
  void look() {
    run();
    tunnels->tick(clock.steady());
    ASSERT_TRUE(eventually([&] {
      run();
      return is_over || !client.is_aborted;
    }));
  }

  net::io_context io;
  Settings settings;
  secondsight::test::ManualClock clock;
  Metrics metrics;
  HandDrivenClient client{io};
  std::atomic<int> rounds = 0;  // of the origin's script, which may run until the origin is gone
  std::unique_ptr<ScriptedOrigin> origin;
  std::unique_ptr<Tunnels> tunnels;
  std::unique_ptr<Tunnel> tunnel;
  bool is_carrying = false;
  bool is_over = false;
};

TEST_F(TunnelWaits, AnOriginThatNeverReadsIsCutWhileItSends) {
  client.sends = true;
  open([](OriginConnection& connection) {
    do {
      connection.checkpoint();
    } while (connection.send("tick"));
  });
  std::size_t ticks = 0;
  for (; ticks < 100 && !is_over; ++ticks) {
    origin->release();
    ASSERT_TRUE(eventually([&] {
      run();
      return client.received >= 4 * (ticks + 1);
    }));
    pass(10s);
  }
  EXPECT_TRUE(is_over);
  EXPECT_GE(ticks, 3U) << "three times ten seconds";
  EXPECT_LT(ticks, 30U);
}

TEST_F(TunnelWaits, AnOriginThatReadsSlowlyIsWaitedForWhileItReads) {
  client.sends = true;
  open([this](OriginConnection& connection) {
    for (;; ++rounds) {
      connection.checkpoint();
      for (std::size_t got = 0; got < kMuch;) {
        const std::size_t bytes = connection.read_some().size();
        if (bytes == 0) return;
        got += bytes;
      }
    }
  });
  for (int i = 0; i < 20; ++i) {
    look();
    origin->release();
    ASSERT_TRUE(eventually([&] {
      run();
      return rounds == i + 1;
    }));
    clock.advance(30s);
    look();
    ASSERT_FALSE(is_over) << "after " << i << " times so much";
  }
  for (int i = 0; i < 10 && !is_over; ++i) pass(30s);
  EXPECT_TRUE(is_over) << "it has stopped";
}

TEST_F(TunnelWaits, AClientThatIsSlowToTakeIsItsSessionsToCut) {
  client.takes = false;
  open([](OriginConnection& connection) {
    connection.send("hello");
    connection.wait_for_close();
  });
  for (int i = 0; i < 10; ++i) {
    pass(60s);
    ASSERT_FALSE(is_over);
  }
  client.take();
  ASSERT_TRUE(eventually([&] {
    run();
    return client.received == 5;
  }));
  pass(59s);
  EXPECT_FALSE(is_over) << "the silence begins now";
  pass(1s);
  EXPECT_TRUE(is_over);
}

}  // namespace
}  // namespace secondsight::proxy::test
