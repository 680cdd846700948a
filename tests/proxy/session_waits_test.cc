#include <cstdlib>
#include <iostream>
#include <random>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include "tests/proxy/session_fixture.h"

namespace secondsight::proxy {
namespace {

TEST_F(SessionTest, WaitsForASlowReader) {
  const std::string body = pattern(4'000'000);
  std::size_t written = 0;
  boost::system::error_code error;
  handler.function = [&](const Request&, BodySource&, ResponseSink& sink) {
    return write_large(sink, body, written, error);
  };
  const auto client = connect(16 * 1024, 16 * 1024);
  client->send(get("/"));
  for (int i = 0; i < 100; ++i) run();
  EXPECT_LT(written, 1'000'000u);
  const RawResponse response = client->read_response();
  EXPECT_TRUE(response.whole);
  EXPECT_EQ(response.body, body);
  EXPECT_FALSE(error);
}

TEST_F(SessionTest, AClientThatLeavesEndsTheWrite) {
  const std::string body = pattern(4'000'000);
  for (const bool hard : {false, true}) {
    std::size_t written = 0;
    boost::system::error_code error;
    handler.function = [&](const Request&, BodySource&, ResponseSink& sink) {
      return write_large(sink, body, written, error);
    };
    const auto client = connect(16 * 1024, 16 * 1024);
    client->send(get("/"));
    EXPECT_EQ(client->read_exactly(10'000).size(), 10'000u);
    if (hard) {
      client->reset();
    } else {
      client->close();
    }
    for (int i = 0; i < 1000 && sessions.count() > 0; ++i) run();
    EXPECT_EQ(sessions.count(), 0u);
    EXPECT_TRUE(error);
    EXPECT_LT(written, body.size());
  }
}

TEST_F(SessionTest, AClientThatLeavesInItsBodyEndsTheRead) {
  boost::system::error_code error;
  handler.function = [&](const Request&, BodySource& body, ResponseSink&) -> net::awaitable<void> {
    for (;;) {
      const auto piece = co_await body.next();
      if (piece.has_error()) error = piece.error();
      if (piece.has_error() || piece->empty()) break;
    }
  };
  const auto client = connect();
  client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello");
  run();
  client->shutdown_send();
  EXPECT_EQ(client->read_to_end(), "");
  EXPECT_EQ(error, net::error::eof);
}

TEST_F(SessionTest, HeaderTimeoutRunsFromTheFirstByteAndIsNotRenewed) {
  const auto client = connect();
  client->send("GET / HT");
  run();
  advance(settings.header_timeout - 1ms);
  client->send("TP/1.1\r\n");
  run();
  EXPECT_EQ(sessions.count(), 1u);
  now += 1ms;
  sessions.tick(now);
  const RawResponse response = client->read_response();
  EXPECT_EQ(response.status, 408);
  EXPECT_TRUE(response.whole);
  EXPECT_TRUE(client->wait_closed());
  EXPECT_EQ(malformed(RequestFault::HeaderTimeout), 1u);
}

TEST_F(SessionTest, IdleConnectionsCloseSilently) {
  const auto fresh = connect();
  const auto used = connect();
  used->send(get("/"));
  EXPECT_EQ(used->read_response().status, 200);
  used->send("\r\n");  // not a request yet
  advance(settings.idle_timeout - 1ms);
  EXPECT_EQ(sessions.count(), 2u);
  now += 1ms;
  sessions.tick(now);
  EXPECT_EQ(fresh->read_to_end(), "");
  EXPECT_EQ(used->read_to_end(), "");
}

TEST_F(SessionTest, BodyTimeoutIsRenewedByProgress) {
  const auto client = connect();
  client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n");
  for (const char c : std::string("abc")) {
    advance(settings.body_timeout - 1ms);
    client->send(std::string_view(&c, 1));
    run();
  }
  EXPECT_EQ(sessions.count(), 1u);
  advance(settings.body_timeout);
  EXPECT_EQ(client->read_response().status, 408);
  EXPECT_EQ(malformed(RequestFault::BodyTimeout), 1u);
}

TEST_F(SessionTest, AReaderWithoutProgressIsReset) {
  const std::string body = pattern(4'000'000);
  std::size_t written = 0;
  boost::system::error_code error;
  handler.function = [&](const Request&, BodySource&, ResponseSink& sink) {
    return write_large(sink, body, written, error);
  };
  const auto client = connect(16 * 1024, 16 * 1024);
  client->send(get("/"));
  for (int i = 0; i < 100; ++i) run();
  for (int i = 0; i < 3; ++i) {
    advance(settings.body_timeout - 1ms);
    ASSERT_EQ(sessions.count(), 1u);
    ASSERT_GT(client->read_exactly(200'000).size(), 0u);
  }
  for (int i = 0; i < 100; ++i) run();
  // What the kernel delivers late by itself is progress, too, but comes to an end.
  for (int i = 0; i < 10 && sessions.count() > 0; ++i) advance(settings.body_timeout);
  EXPECT_EQ(error, net::error::timed_out);
  EXPECT_EQ(sessions.count(), 0u);
}

TEST_F(SessionTest, AReaderTooSlowToMakeRoomIsWaitedForWhileItReads) {
  const std::string body = pattern(4'000'000);
  std::size_t written = 0;
  boost::system::error_code error;
  handler.function = [&](const Request&, BodySource&, ResponseSink& sink) {
    return write_large(sink, body, written, error);
  };
  // A third of the send buffer is what it reads in five timeouts and more.
  const auto client = connect(4 * 1024, 200 * 1024);
  client->send(get("/"));
  client->read_until("\r\n\r\n");
  std::string got;
  for (int i = 0; i < 20; ++i) {
    run();
    sessions.tick(now);
    got += client->read_exactly(24'000);
    now += settings.body_timeout;
    sessions.tick(now);
    run();
    ASSERT_EQ(sessions.count(), 1u) << "after " << got.size() << " bytes";
  }
  for (int i = 0; i < 10 && sessions.count() > 0; ++i) advance(settings.body_timeout);
  EXPECT_EQ(error, net::error::timed_out);
  EXPECT_EQ(sessions.count(), 0u);
  EXPECT_EQ(got, body.substr(0, got.size()));
}

TEST_F(SessionTest, PullsAndSendsAtTheSameTimeWithAClockForEach) {
  net::steady_timer pulled(io, net::steady_timer::time_point::max());
  boost::system::error_code error;
  std::string body;
  const auto pull = [&](BodySource& source) -> net::awaitable<void> {
    for (;;) {
      const auto piece = co_await source.next();
      if (piece.has_error()) error = piece.error();
      if (piece.has_error() || piece->empty()) break;
      for (const std::byte b : *piece) body += static_cast<char>(b);
    }
    pulled.cancel();
  };
  handler.function = [&](const Request&, BodySource& source,
                         ResponseSink& sink) -> net::awaitable<void> {
    net::co_spawn(io, pull(source), net::detached);
    co_await respond(sink, "early");
    (void)co_await pulled.async_wait(use_result);
  };
  const auto client = connect();
  client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
  EXPECT_EQ(client->read_response().body, "early");
  advance(settings.body_timeout - 1ms);
  EXPECT_FALSE(error);
  client->send("c");
  run();
  advance(settings.body_timeout);
  EXPECT_EQ(error, net::error::timed_out);
  EXPECT_EQ(body, "abc");
  EXPECT_EQ(client->read_to_end(), "");
}

TEST_F(SessionTest, NoClockRunsWhileTheHandlerWorks) {
  net::steady_timer gate(io, net::steady_timer::time_point::max());
  handler.function = [&](const Request& request, BodySource& body,
                         ResponseSink& sink) -> net::awaitable<void> {
    (void)co_await gate.async_wait(use_result);
    co_await echo(request, body, sink);
  };
  const auto client = connect();
  client->send(get("/"));
  advance(24h);
  gate.cancel();
  EXPECT_EQ(client->read_response().body, "GET /");
}

TEST_F(SessionTest, DrainClosesIdleConnectionsAndFinishesTheOthers) {
  net::steady_timer gate(io, net::steady_timer::time_point::max());
  handler.function = [&](const Request& request, BodySource& body,
                         ResponseSink& sink) -> net::awaitable<void> {
    if (request.target == "/slow") (void)co_await gate.async_wait(use_result);
    co_await echo(request, body, sink);
  };
  int ended = 0;
  sessions.on_end([&] { ++ended; });
  const auto idle = connect();
  const auto used = connect();
  const auto busy = connect();
  const auto reading = connect();
  used->send(get("/"));
  EXPECT_EQ(used->read_response().status, 200);
  busy->send(get("/slow") + get("/next"));
  reading->send("GET / HTTP/1.1\r\n");
  run();
  sessions.begin_drain();
  EXPECT_EQ(idle->read_to_end(), "");
  EXPECT_EQ(used->read_to_end(), "");
  EXPECT_EQ(ended, 2);
  reading->send("Host: a\r\n\r\n");
  EXPECT_EQ(reading->read_response().field("Connection"), "close");
  EXPECT_TRUE(reading->wait_closed());
  gate.cancel();
  const RawResponse last = busy->read_response();
  EXPECT_EQ(last.body, "GET /slow");
  EXPECT_EQ(last.field("Connection"), "close");
  busy->shutdown_send();
  EXPECT_EQ(busy->read_to_end(), "");
  EXPECT_EQ(sessions.count(), 0u);
  const auto late = connect();
  EXPECT_EQ(late->read_to_end(), "");
  EXPECT_EQ(ended, 5);
}

TEST_F(SessionTest, RefusesConnectionsOverTheLimit) {
  settings.max_connections = 2;
  const auto first = connect();
  auto second = connect();
  const auto third = connect();
  EXPECT_EQ(third->read_to_end(), "");
  EXPECT_EQ(front.connections_refused.value(), 1u);
  second.reset();
  run();
  const auto fourth = connect();
  fourth->send(get("/"));
  EXPECT_EQ(fourth->read_response().status, 200);
  EXPECT_EQ(front.connections.value(), 4u);
  EXPECT_NE(metrics.expose().find("secondsight_connections 2"), std::string::npos);
}

TEST_F(SessionTest, DestroyingTheLoopDestroysSessionsThatWait) {
  net::steady_timer never(io, net::steady_timer::time_point::max());
  handler.function = [&](const Request&, BodySource&, ResponseSink&) -> net::awaitable<void> {
    (void)co_await never.async_wait(use_result);
  };
  const auto waiting = connect();
  const auto idle = connect();
  waiting->send(get("/"));
  run();
  EXPECT_EQ(sessions.count(), 2u);
  io.shutdown();
  EXPECT_EQ(sessions.count(), 0u);
}

TEST_F(SessionTest, RandomBytesNeverHangOrCrash) {
  const char* given = std::getenv("SECONDSIGHT_SEED");
  const auto seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "SECONDSIGHT_SEED=" << seed << '\n';
  std::mt19937_64 random(seed);
  const std::vector<std::string> words{
      get("/"),
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
      "3\r\nabc\r\n",
      "0\r\n\r\n",
      "\r\n",
      "GET / HTTP/1.0\r\n\r\n",
      "Expect: 100-continue\r\n"};
  for (int round = 0; round < 300; ++round) {
    const auto client = connect();
    for (auto n = random() % 8; n > 0; --n) {
      std::string text = words[random() % words.size()];
      if (random() % 4 == 0) text[random() % text.size()] = static_cast<char>(random() % 256);
      client->send(text);
      if (random() % 2 == 0) run();
    }
    client->shutdown_send();
    ASSERT_TRUE(client->wait_closed());
    ASSERT_EQ(sessions.count(), 0u);
  }
}

}  // namespace
}  // namespace secondsight::proxy
