#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/proxy/origin_fixture.h"

namespace secondsight::proxy::test {
namespace {

using Flow = OriginReceiver::Flow;
using secondsight::test::answer_always;
using namespace std::string_literals;

struct Response {
  std::string method;
  std::string bytes;
  bool closes;  // the end of the connection is the end of the body
  std::string expected;
};

std::vector<Response> responses() {
  return {
      {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: a\r\n\r\nhello", false,
       "none 200 OK [Content-Length=5|X=a|] hello"},
      {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false,
       "none 200 OK [Content-Length=0|] "},
      {"GET",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
       "chunked\r\n\r\n3;x=y\r\nabc\r\n0a\r\n0123456789\r\n0\r\n\r\n",
       false, "none 200 OK [Transfer-Encoding=chunked|] abc0123456789"},
      {"GET",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nT: 1\r\nU: 2\r\n\r\n",
       false, "none 200 OK [Transfer-Encoding=chunked|] a"},
      {"GET",
       "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 999 Odd\r\nContent-Length: 1\r\n\r\nz",
       false, "none 999 Odd [Content-Length=1|] z"},
      {"GET", "HTTP/1.1 204 No Content\r\nE:\r\n\r\n", false, "none 204 No Content [E=|] "},
      {"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n", false,
       "none 304 Not Modified [Content-Length=77|] "},
      {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", false,
       "none 200 OK [Content-Length=5000|] "},
      {"GET", "HTTP/1.1 200 OK\r\nB: \x80\xff\r\n\r\nuntil the end", true,
       "none 200 OK [B=\x80\xff|] until the end"},
      {"GET", "HTTP/1.0 200 OK\r\n\r\n\0\r\n"s, true, "none 200 OK [] \0\r\n"s},
      {"GET",
       "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nLocation: http://x/\r\nContent-Length: "
       "3\r\n\r\nabc",
       false, "none 200 OK [Content-Encoding=gzip|Location=http://x/|Content-Length=3|] abc"},
  };
}

TEST(OriginClient, DeliversEveryFormOfResponse) {
  for (const auto& response : responses()) {
    ScriptedOrigin origin([&](OriginConnection& connection) {
      connection.read_request();
      connection.send(response.bytes);
      if (!response.closes) connection.wait_for_close();
    });
    OriginClientTest test({origin.url()});
    EXPECT_EQ(test.fetch(make_request(response.method, "/")), response.expected) << response.bytes;
  }
}

TEST(OriginClient, DeliversTheSameHoweverTheBytesAreSplit) {
  for (const auto& response : responses()) {
    std::size_t split = 1;
    ScriptedOrigin origin([&](OriginConnection& connection) {
      while (!connection.read_request().empty()) {
        connection.send(std::string_view(response.bytes).substr(0, split));
        connection.checkpoint();
        connection.send(std::string_view(response.bytes).substr(split));
        if (response.closes) return;
      }
    });
    OriginClientTest test({origin.url()});
    for (; split < response.bytes.size(); ++split) {
      Recorder recorder;
      const auto fetch = test.start(make_request(response.method, "/"), recorder);
      ASSERT_TRUE(test.run_until([&] { return origin.at_checkpoint() == 1; }));
      test.drain();
      origin.release();
      ASSERT_TRUE(test.run_until([&] { return recorder.done.has_value(); }));
      ASSERT_EQ(summary(recorder), response.expected) << "split at " << split;
      ASSERT_TRUE(test.run_until([&] { return origin.at_checkpoint() == 0; }));
    }
    EXPECT_EQ(origin.requests().size(), response.bytes.size() - 1);
  }
}

TEST(OriginClient, SendsExactlyWhatItWasGiven) {
  ScriptedOrigin origin(answer_always("HTTP/1.1 204 No Content\r\n\r\n"));
  OriginClientTest test({origin.url()});

  OriginRequest request;
  request.method = "GET";
  request.target = "/a/../b/./%2e%2E//?q=%00&x={y}|\xc3\xa4";
  request.fields.add("Host", "Example.test:81");
  request.fields.add("X-Empty", "");
  request.fields.add("x-Latin", "\xe4;\"");
  request.fields.add("Via", "1.1 secondsight");
  test.fetch(std::move(request));
  test.fetch(make_request("POST", "/"));
  test.fetch(make_request("OPTIONS", "*"));
  test.fetch(make_request("m-search", "/"));
  OriginRequest with_defaults = make_request("GET", "/d");
  with_defaults.fields.add("accept", "a/b");
  with_defaults.fields.add("User-Agent", "u");
  with_defaults.fields.add("Connection", "close");
  with_defaults.fields.add("Content-Length", "7");
  test.fetch(std::move(with_defaults));
  test.fetch(make_request("HEAD", "/h"));

  const auto requests = origin.requests();
  ASSERT_EQ(requests.size(), 6U);
  EXPECT_EQ(requests[0],
            "GET /a/../b/./%2e%2E//?q=%00&x={y}|\xc3\xa4 HTTP/1.1\r\nHost: Example.test:81\r\n"
            "X-Empty:\r\nx-Latin: \xe4;\"\r\nVia: 1.1 secondsight\r\n\r\n");
  EXPECT_EQ(requests[1], "POST / HTTP/1.1\r\nHost: example.test\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(requests[2], "OPTIONS * HTTP/1.1\r\nHost: example.test\r\n\r\n");
  EXPECT_EQ(requests[3], "m-search / HTTP/1.1\r\nHost: example.test\r\n\r\n");
  EXPECT_EQ(requests[4],
            "GET /d HTTP/1.1\r\nHost: example.test\r\naccept: a/b\r\nUser-Agent: u\r\n\r\n");
  EXPECT_EQ(requests[5], "HEAD /h HTTP/1.1\r\nHost: example.test\r\n\r\n");
  EXPECT_EQ(origin.connections(), 1U);
  EXPECT_EQ(test.connections(), 1U);
}

TEST(OriginClient, ReplacesAPooledConnectionThatClosedWhileIdle) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    connection.read_request();
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    connection.checkpoint();
  });
  OriginClientTest test({origin.url()});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(test.fetch("/"), "none 200 OK [Content-Length=2|] ok");
    ASSERT_TRUE(test.run_until([&] { return origin.at_checkpoint() == 1; }));
    origin.release();
    ASSERT_TRUE(test.run_until([&] { return origin.at_checkpoint() == 0; }));
    origin.wait_for_scripts(static_cast<std::size_t>(i) + 1);
  }
  EXPECT_EQ(origin.requests().size(), 3U);
  EXPECT_EQ(origin.connections(), 3U);
  EXPECT_EQ(test.connections(), 3U);
}

TEST(OriginClient, SharesAFewConnectionsBetweenManyFetches) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    while (true) {
      const std::string request = connection.read_request();
      if (request.empty()) return;
      const auto target = request.substr(4, request.find(' ', 4) - 4);
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(target.size()) +
                      "\r\n\r\n" + target);
    }
  });
  constexpr std::size_t kFetches = 200;
  constexpr unsigned kConnections = 16;
  OriginClientTest test({origin.url()},
                        [](OriginSettings& settings) { settings.max_connections = kConnections; });
  std::vector<Recorder> recorders(kFetches);
  std::vector<std::unique_ptr<OriginFetch>> fetches;
  std::size_t done = 0;
  for (std::size_t i = 0; i < kFetches; ++i) {
    recorders[i].at_done = [&] { ++done; };
    fetches.push_back(test.get("/" + std::to_string(i), recorders[i]));
  }
  ASSERT_TRUE(test.run_until([&] { return done == kFetches; }));
  for (std::size_t i = 0; i < kFetches; ++i) {
    EXPECT_EQ(recorders[i].done, OriginError::None);
    EXPECT_EQ(recorders[i].body, "/" + std::to_string(i));
  }
  EXPECT_EQ(origin.requests().size(), kFetches);
  EXPECT_LE(origin.connections(), kConnections);
}

TEST(OriginClient, HoldsBackWhatTheReceiverDoesNotTake) {
  constexpr std::size_t kBody = 10 * 1024 * 1024;
  std::string body(kBody, '\0');
  for (std::size_t i = 0; i < kBody; ++i) body[i] = static_cast<char>(i * 31 + (i >> 12));
  for (const bool chunked : {false, true}) {
    ScriptedOrigin origin([&](OriginConnection& connection) {
      connection.read_request();
      if (!chunked) {
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kBody) + "\r\n\r\n");
        connection.send(body);
      } else {
        connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na00000\r\n");
        connection.send(body);
        connection.send("\r\n0\r\nSum: 1\r\nOther: 2\r\n\r\n");
      }
      connection.wait_for_close();
    });
    OriginClientTest test({origin.url()});
    Recorder recorder;
    std::size_t pauses = 0;
    recorder.at_body = [&] {
      ++pauses;
      return Flow::Pause;
    };
    const auto fetch = test.get("/", recorder);
    while (!recorder.done) {
      const std::size_t seen = pauses;
      ASSERT_TRUE(test.run_until([&] { return pauses > seen || recorder.done; }));
      // Whatever else is ready changes nothing while the receiver pauses.
      const auto before = recorder.body_bytes;
      test.drain();
      if (!recorder.done) {
        ASSERT_EQ(recorder.body_bytes, before);
      }
      fetch->resume();
      ASSERT_EQ(recorder.body_bytes, before) << "delivered from within resume()";
    }
    EXPECT_EQ(recorder.done, OriginError::None);
    EXPECT_TRUE(recorder.body == body);
    EXPECT_EQ(recorder.trailers, chunked ? "Sum: 1\r\nOther: 2\r\n" : "");
    EXPECT_GE(pauses, kBody / (64 * 1024));
  }
}

// What the client takes from the kernel while nobody reads: an origin's blocked send shows it.
TEST(OriginClient, StopsReadingWhilePaused) {
  std::atomic<std::size_t> sent{0};
  ScriptedOrigin origin([&](OriginConnection& connection) {
    connection.read_request();
    connection.send("HTTP/1.1 200 OK\r\n\r\n");
    const std::string piece(64 * 1024, 'x');
    while (connection.send(piece)) sent += piece.size();
  });
  OriginClientTest test({origin.url()});
  Recorder recorder;
  recorder.keeps_body = false;
  recorder.at_body = [] { return Flow::Pause; };
  auto fetch = test.get("/", recorder);
  ASSERT_TRUE(test.run_until([&] { return recorder.body_bytes > 0; }));
  // The origin sends without end; were the client to read on, this would not come to rest.
  std::size_t last = 0;
  for (int quiet = 0; quiet < 20;) {
    test.io.restart();
    test.io.run_one_for(std::chrono::milliseconds(5));
    quiet = sent == last ? quiet + 1 : 0;
    last = sent;
    ASSERT_LT(last, 256U * 1024 * 1024);
  }
  EXPECT_LE(recorder.body_bytes, 64U * 1024);
  fetch.reset();
}

}  // namespace
}  // namespace secondsight::proxy::test
