#include <cstdlib>
#include <iostream>
#include <random>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include "tests/proxy/session_fixture.h"

namespace secondsight::proxy {
namespace {

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

net::awaitable<void> hint_and_answer(ResponseSink& sink) {
  (void)co_await sink.send_interim("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n");
  (void)co_await sink.send_interim("HTTP/1.1 102 Processing\r\n");
  co_await respond(sink, "x");
}

TEST_F(SessionTest, SendsInterimHeadsAtOnceButNotToAnOldClient) {
  net::steady_timer gate(io, net::steady_timer::time_point::max());
  handler.function = [&](const Request&, BodySource&, ResponseSink& sink) -> net::awaitable<void> {
    (void)co_await sink.send_interim("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n");
    (void)co_await gate.async_wait(use_result);
    co_await hint_and_answer(sink);
  };
  const auto client = connect();
  client->send(get("/"));
  const std::string hint = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
  EXPECT_EQ(client->read_until("\r\n\r\n"), hint) << "before the final head is known";
  gate.cancel();
  const std::string expected = hint + "HTTP/1.1 102 Processing\r\n\r\n" +
                               "HTTP/1.1 200 OK\r\nX-Stored: yes\r\nAge: 1\r\n"
                               "Content-Length: 1\r\n\r\nx";
  EXPECT_EQ(client->read_exactly(expected.size()), expected);

  handler.function = [](const Request&, BodySource&, ResponseSink& sink) -> net::awaitable<void> {
    co_await hint_and_answer(sink);
  };
  const auto old = connect();
  old->send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(old->read_to_end().starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST_F(SessionTest, KeepsContinueOutOfAnInterimHeadThatIsBeingSent) {
  const std::string large(1 << 20, 'x');
  handler.function = [&](const Request&, BodySource& body,
                         ResponseSink& sink) -> net::awaitable<void> {
    net::steady_timer ended(io, net::steady_timer::time_point::max());
    auto pull = [](BodySource& from, net::steady_timer& at_end) -> net::awaitable<void> {
      co_await net::post(net::use_awaitable);  // when the head is half out
      (void)co_await from.next();
      at_end.cancel();
    };
    net::co_spawn(io, pull(body, ended), net::detached);
    const std::string head = "HTTP/1.1 103 Early Hints\r\nX: " + large + "\r\n";
    (void)co_await sink.send_interim(head);
    (void)co_await ended.async_wait(use_result);
    co_await respond(sink, "x");
  };
  const auto client = connect(4096, 4096);
  client->send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
  const std::string hint = "HTTP/1.1 103 Early Hints\r\nX: " + large + "\r\n\r\n";
  const std::string next = "HTTP/1.1 100 Continue\r\n\r\n";
  const std::string got = client->read_exactly(hint.size() + next.size());
  EXPECT_TRUE(got == hint + next) << got.substr(0, 100);
  client->send("y");
  EXPECT_EQ(client->read_response().body, "x");
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

}  // namespace
}  // namespace secondsight::proxy
