#include "proxy/session.h"

#include <cstdlib>
#include <iostream>
#include <random>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include "tests/proxy/front_harness.h"

namespace secondsight::proxy {
namespace {

using namespace std::chrono_literals;
using testing::RawResponse;

/// Answers with "METHOD target" and, when there is one, the body.
net::awaitable<void> echo(const Request& request, BodySource& body, ResponseSink& sink) {
  std::string text = request.method + ' ' + request.target;
  if (request.has_body()) {
    text += ' ';
    for (;;) {
      const auto piece = co_await body.next();
      if (piece.has_error()) co_return;
      if (piece->empty()) break;
      for (const std::byte b : *piece) text += static_cast<char>(b);
    }
  }
  co_await respond(sink, text, !request.is_head());
}

class SessionTest : public ::testing::Test, public FrontHarness {
 protected:
  SessionTest() { handler.function = echo; }
};

std::string get(std::string_view target, std::string_view fields = "") {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
}

/// Bytes whose place shows in them.
std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  return text;
}

TEST_F(SessionTest, AnswersWithStoredPatchedAndFramingFields) {
  const auto client = connect();
  client->send(get("/x"));
  const std::string expected =
      "HTTP/1.1 200 OK\r\nX-Stored: yes\r\nAge: 1\r\nContent-Length: 6\r\n\r\nGET /x";
  EXPECT_EQ(client->read_exactly(expected.size()), expected);
  run();
  EXPECT_EQ(client->read_some(), "");
  EXPECT_EQ(sessions.count(), 1u);
}

TEST_F(SessionTest, TakesRequestsInAnyPieces) {
  const std::string text =
      "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3;x\r\nabc\r\n2\r\nde\r\n0\r\nT: 1\r\n\r\n" +
      get("/b");
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const auto client = connect();
    client->send(text.substr(0, cut));
    run();
    client->send(text.substr(cut));
    ASSERT_EQ(client->read_response().body, "POST /a abcde") << cut;
    ASSERT_EQ(client->read_response().body, "GET /b") << cut;
  }
}

TEST_F(SessionTest, TakesRequestsByteByByte) {
  const auto client = connect();
  for (const char c : get("/a") + "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxyz") {
    client->send(std::string_view(&c, 1));
    run();
  }
  EXPECT_EQ(client->read_response().body, "GET /a");
  EXPECT_EQ(client->read_response().body, "POST /b xyz");
}

TEST_F(SessionTest, AnswersPipelinedRequestsInOrder) {
  const auto client = connect();
  std::string all;
  for (int i = 0; i < 200; ++i) all += get("/" + std::to_string(i));
  client->send(all);
  for (int i = 0; i < 200; ++i)
    ASSERT_EQ(client->read_response().body, "GET /" + std::to_string(i));
}

TEST_F(SessionTest, WaitsForTheHandlerBeforeTheNextPipelinedRequest) {
  net::steady_timer gate(io, net::steady_timer::time_point::max());
  int started = 0;
  handler.function = [&](const Request& request, BodySource& body,
                         ResponseSink& sink) -> net::awaitable<void> {
    if (++started == 1) (void)co_await gate.async_wait(use_result);
    co_await echo(request, body, sink);
  };
  const auto client = connect();
  client->send(get("/1") + get("/2"));
  run();
  EXPECT_EQ(started, 1);
  gate.cancel();
  EXPECT_EQ(client->read_response().body, "GET /1");
  EXPECT_EQ(client->read_response().body, "GET /2");
}

TEST_F(SessionTest, KeepsConnectionsAsVersionAndConnectionSay) {
  struct Case {
    std::string request;
    bool keeps;
    std::string connection;
  };
  for (const Case& c : std::vector<Case>{
           {get("/"), true, ""},
           {get("/", "Connection: close\r\n"), false, "close"},
           {get("/", "Connection: x, Close\r\n"), false, "close"},
           {"GET / HTTP/1.0\r\n\r\n", false, "close"},
           {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true, "keep-alive"}}) {
    const auto client = connect();
    client->send(c.request);
    const RawResponse response = client->read_response();
    EXPECT_EQ(response.body, "GET /") << c.request;
    EXPECT_EQ(response.field("Connection"), c.connection) << c.request;
    if (c.keeps) {
      client->send(c.request);
      EXPECT_EQ(client->read_response().status, 200) << c.request;
    } else {
      EXPECT_TRUE(client->wait_closed()) << c.request;
      EXPECT_FALSE(client->was_reset()) << c.request;
    }
  }
}

TEST_F(SessionTest, HeadHasALengthAndNoBody) {
  const auto client = connect();
  client->send("HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n" + get("/y"));
  const RawResponse head = client->read_response("HEAD");
  EXPECT_EQ(head.field("Content-Length"), "7");
  EXPECT_EQ(client->read_response().body, "GET /y");
}

net::awaitable<void> write_pieces(ResponseSink& sink, const std::vector<std::string>& texts) {
  ResponseSink::Head head;
  head.ready = "HTTP/1.1 200 OK\r\n";
  sink.begin(head);
  for (const std::string& text : texts) {
    const std::span<const std::byte> both[] = {bytes_of(text).first(text.size() / 2),
                                               bytes_of(text).subspan(text.size() / 2)};
    if ((co_await sink.write(both)).has_error()) co_return;
  }
  (void)co_await sink.finish();
}

TEST_F(SessionTest, ChunksAnUnknownLength) {
  const std::vector<std::string> texts{"hello", "", "x", std::string(300, 'y')};
  handler.function = [&](const Request&, BodySource&, ResponseSink& sink) {
    return write_pieces(sink, texts);
  };
  const auto client = connect();
  client->send(get("/") + get("/"));
  const RawResponse response = client->read_response();
  EXPECT_EQ(response.field("Transfer-Encoding"), "chunked");
  EXPECT_EQ(response.body, "hellox" + texts[3]);
  EXPECT_TRUE(response.whole);
  EXPECT_TRUE(client->read_response().whole);
}

TEST_F(SessionTest, EndsAnUnknownLengthByCloseFor10) {
  handler.function = [](const Request&, BodySource&, ResponseSink& sink) -> net::awaitable<void> {
    const std::vector<std::string> texts{"hello", "world"};
    co_await write_pieces(sink, texts);
  };
  const auto client = connect();
  client->send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const RawResponse response = client->read_response();
  EXPECT_EQ(response.field("Transfer-Encoding"), "");
  EXPECT_EQ(response.field("Connection"), "close");
  EXPECT_EQ(response.body, "helloworld");
  EXPECT_TRUE(response.whole);
}

TEST_F(SessionTest, EmptyResponsesAreFramed) {
  for (const int status : {200, 204, 304}) {
    handler.function = [status](const Request&, BodySource&,
                                ResponseSink& sink) -> net::awaitable<void> {
      const std::string line = "HTTP/1.1 " + std::to_string(status) + " X\r\n";
      ResponseSink::Head head;
      head.status = status;
      head.ready = line;
      head.content_length = 0;
      head.has_body = status == 200;
      sink.begin(head);
      (void)co_await sink.finish();
    };
    const auto client = connect();
    client->send(get("/") + get("/"));
    const RawResponse response = client->read_response();
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(response.field("Content-Length"), status == 204 ? "" : "0");
    EXPECT_EQ(client->read_response().status, status);
  }
}

TEST_F(SessionTest, FlushSendsTheHeadAhead) {
  net::steady_timer gate(io, net::steady_timer::time_point::max());
  handler.function = [&](const Request&, BodySource&, ResponseSink& sink) -> net::awaitable<void> {
    ResponseSink::Head head;
    head.ready = "HTTP/1.1 200 OK\r\n";
    head.content_length = 2;
    sink.begin(head);
    EXPECT_FALSE((co_await sink.flush()).has_error());
    (void)co_await gate.async_wait(use_result);
    const std::span<const std::byte> piece = bytes_of("ok");
    EXPECT_FALSE((co_await sink.write(std::span(&piece, 1))).has_error());
    EXPECT_FALSE((co_await sink.finish()).has_error());
  };
  const auto client = connect();
  client->send(get("/"));
  EXPECT_TRUE(client->read_until("\r\n\r\n").ends_with("\r\n\r\n"));
  gate.cancel();
  EXPECT_EQ(client->read_exactly(2), "ok");
}

TEST_F(SessionTest, TooShortAResponseCutsTheConnection) {
  handler.function = [](const Request&, BodySource&, ResponseSink& sink) -> net::awaitable<void> {
    ResponseSink::Head head;
    head.ready = "HTTP/1.1 200 OK\r\n";
    head.content_length = 10;
    sink.begin(head);
    const std::span<const std::byte> piece = bytes_of("short");
    EXPECT_FALSE((co_await sink.write(std::span(&piece, 1))).has_error());
    EXPECT_TRUE((co_await sink.finish()).has_error());
  };
  const auto client = connect();
  client->send(get("/") + get("/"));
  const RawResponse response = client->read_response();
  EXPECT_EQ(response.body, "short");
  EXPECT_FALSE(response.whole);
  EXPECT_EQ(client->read_to_end(), "");
  EXPECT_EQ(sessions.count(), 0u);
}

TEST_F(SessionTest, MoreThanPromisedIsNeverSent) {
  handler.function = [](const Request&, BodySource&, ResponseSink& sink) -> net::awaitable<void> {
    ResponseSink::Head head;
    head.ready = "HTTP/1.1 200 OK\r\n";
    head.content_length = 3;
    sink.begin(head);
    const std::span<const std::byte> piece = bytes_of("long");
    const auto written = co_await sink.write(std::span(&piece, 1));
    EXPECT_EQ(written.error(), net::error::message_size);
  };
  const auto client = connect();
  client->send(get("/"));
  EXPECT_EQ(client->read_to_end(), "");
}

TEST_F(SessionTest, AbortCutsAndResetsWhereCloseIsTheFraming) {
  handler.function = [](const Request&, BodySource&, ResponseSink& sink) -> net::awaitable<void> {
    ResponseSink::Head head;
    head.ready = "HTTP/1.1 200 OK\r\n";
    sink.begin(head);
    const std::span<const std::byte> piece = bytes_of("part");
    (void)co_await sink.write(std::span(&piece, 1));
    sink.abort();
    EXPECT_TRUE((co_await sink.write(std::span(&piece, 1))).has_error());
  };
  const auto chunked = connect();
  chunked->send(get("/"));
  const RawResponse cut = chunked->read_response();
  EXPECT_EQ(cut.body, "part");
  EXPECT_FALSE(cut.whole);
  EXPECT_FALSE(chunked->was_reset());

  const auto closed = connect();
  closed->send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_FALSE(closed->read_response().whole);
  EXPECT_TRUE(closed->was_reset());
}

TEST_F(SessionTest, AHandlerWithoutAnAnswerGets500) {
  handler.function = [](const Request&, BodySource&, ResponseSink&) -> net::awaitable<void> {
    co_return;
  };
  const auto client = connect();
  client->send(get("/"));
  EXPECT_EQ(client->read_response().status, 500);
  EXPECT_TRUE(client->wait_closed());

  const auto head = connect();
  head->send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(head->read_to_end().ends_with("\r\n\r\n"));
}

TEST_F(SessionTest, AHandlerThatThrowsCostsItsConnectionOnly) {
  handler.function = [](const Request& request, BodySource& body,
                        ResponseSink& sink) -> net::awaitable<void> {
    if (request.target == "/throw") throw std::runtime_error("on purpose");
    co_await echo(request, body, sink);
  };
  const auto other = connect();
  const auto client = connect();
  client->send(get("/throw"));
  EXPECT_EQ(client->read_to_end(), "");
  other->send(get("/"));
  EXPECT_EQ(other->read_response().status, 200);
  EXPECT_EQ(sessions.count(), 1u);
}

TEST_F(SessionTest, MalformedRequestsAreAnsweredAndClosed) {
  const std::vector<std::pair<std::string, int>> cases{
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: a\n\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n", 413},
      {"GET /" + std::string(40'000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", 414},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(40'000, 'a') + "\r\n\r\n", 431},
      {"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 501},
      {"GET / HTTP/2.0\r\n\r\n", 505}};
  for (const auto& [text, status] : cases) {
    const auto client = connect();
    client->send(text);
    const RawResponse response = client->read_response();
    EXPECT_EQ(response.status, status) << text.substr(0, 80);
    EXPECT_TRUE(response.whole);
    EXPECT_EQ(response.field("Connection"), "close");
    EXPECT_TRUE(client->wait_closed());
    EXPECT_FALSE(client->was_reset()) << text.substr(0, 80);
  }
  EXPECT_EQ(malformed(RequestFault::Host), 1u);
  EXPECT_EQ(malformed(RequestFault::TwoLengths), 1u);
  EXPECT_EQ(malformed(RequestFault::RequestLineTooLong), 1u);
}

TEST_F(SessionTest, ARequestBehindAMalformedOneIsNotAnswered) {
  const auto client = connect();
  client->send(get("/1") + "BAD\r\n\r\n" + get("/2"));
  EXPECT_EQ(client->read_response().body, "GET /1");
  EXPECT_EQ(client->read_response().status, 400);
  EXPECT_EQ(client->read_to_end(), "");
}

TEST_F(SessionTest, TheAnswerToARefusedUploadArrives) {
  const auto client = connect();
  client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000000\r\n\r\n");
  client->send(std::string(500'000, 'x'));
  EXPECT_EQ(client->read_response().status, 413);
  client->shutdown_send();
  EXPECT_TRUE(client->wait_closed());
  EXPECT_FALSE(client->was_reset());
}

TEST_F(SessionTest, BadChunksGet400AndTooManyBytes413) {
  settings.max_request_body = 8;
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const auto& [body, status] : std::vector<std::pair<std::string, int>>{
           {"5\r\nhello\r\nx\r\n", 400}, {"5 \r\nhello\r\n", 400}, {"5\r\nhello\r\n4\r\n", 413}}) {
    const auto client = connect();
    client->send(post + body);
    EXPECT_EQ(client->read_response().status, status) << body;
    client->shutdown_send();
    EXPECT_TRUE(client->wait_closed());
  }
  EXPECT_EQ(malformed(RequestFault::Chunk), 2u);
  EXPECT_EQ(malformed(RequestFault::BodyTooLarge), 1u);
}

TEST_F(SessionTest, StreamsALargeUploadThroughOneBuffer) {
  const std::string body = pattern(3'000'000);
  std::size_t largest = 0;
  std::size_t at = 0;
  handler.function = [&](const Request&, BodySource& source,
                         ResponseSink& sink) -> net::awaitable<void> {
    for (;;) {
      const auto piece = co_await source.next();
      if (piece.has_error()) co_return;
      if (piece->empty()) break;
      largest = std::max(largest, piece->size());
      const auto expected = bytes_of(body).subspan(at, piece->size());
      EXPECT_TRUE(std::equal(piece->begin(), piece->end(), expected.begin()));
      at += piece->size();
    }
    co_await respond(sink, "done");
  };
  const auto client = connect();
  client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n");
  client->send(body);
  client->send(get("/"));
  EXPECT_EQ(client->read_response().body, "done");
  EXPECT_EQ(at, body.size());
  EXPECT_LE(largest, settings.max_header_bytes + 1_KiB);
  EXPECT_EQ(client->read_response().body, "done");
}

TEST_F(SessionTest, SendsContinueWhenTheBodyIsPulledAndOnlyThen) {
  const std::string head =
      "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
  const auto client = connect();
  client->send(head);
  EXPECT_EQ(client->read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client->send("hello");
  EXPECT_EQ(client->read_response().body, "POST / hello");
  // A body that is already there needs no invitation.
  client->send(head + "world");
  EXPECT_TRUE(client->read_until("\r\n\r\n").starts_with("HTTP/1.1 200"));

  handler.function = [](const Request&, BodySource&, ResponseSink& sink) -> net::awaitable<void> {
    co_await respond(sink, "no");
  };
  const auto refused = connect();
  refused->send(head);
  const std::string answer = refused->read_until("no");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200"));
  EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos);
}

TEST_F(SessionTest, SkipsAnUnreadBodyIfItIsSmall) {
  handler.function = [](const Request&, BodySource&, ResponseSink& sink) -> net::awaitable<void> {
    co_await respond(sink, "ok");
  };
  const std::string small(60'000, 'x');
  const auto client = connect();
  client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n" + small + get("/"));
  EXPECT_EQ(client->read_response().field("Connection"), "");
  EXPECT_EQ(client->read_response().status, 200);

  const auto large = connect();
  large->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n" + small);
  EXPECT_EQ(large->read_response().field("Connection"), "close");
  large->shutdown_send();
  EXPECT_TRUE(large->wait_closed());
  EXPECT_FALSE(large->was_reset());

  const auto chunked = connect();
  chunked->send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n20000\r\n" +
                std::string(0x20000, 'x') + "\r\n0\r\n\r\n" + get("/"));
  EXPECT_EQ(chunked->read_response().status, 200);
  EXPECT_EQ(chunked->read_to_end(), "");
}

/// A body in pieces of 64 KiB, which counts how far ahead of the client it got.
net::awaitable<void> write_large(ResponseSink& sink, const std::string& body, std::size_t& written,
                                 boost::system::error_code& error) {
  ResponseSink::Head head;
  head.ready = "HTTP/1.1 200 OK\r\n";
  head.content_length = body.size();
  sink.begin(head);
  while (written < body.size()) {
    const auto piece = bytes_of(body).subspan(written, std::min(64_KiB, body.size() - written));
    const auto result = co_await sink.write(std::span(&piece, 1));
    if (result.has_error()) {
      error = result.error();
      co_return;
    }
    written += piece.size();
  }
  (void)co_await sink.finish();
}

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
  advance(settings.body_timeout);
  EXPECT_EQ(error, net::error::timed_out);
  EXPECT_EQ(sessions.count(), 0u);
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
