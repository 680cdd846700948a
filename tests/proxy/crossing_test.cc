// Messages that cross the proxy beside a request and its response.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/proxy/flight_fixture.h"

namespace secondsight::proxy::test {
namespace {

using namespace literals;

const std::string kHint =
    "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n";
const std::string kHintForTheClient =
    "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\nVia: 1.1 secondsight\r\n\r\n";

TEST(Crossing, InterimHeadsReachTheClientAndAreNotKept) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    while (!connection.read_request().empty()) {
      connection.send("HTTP/1.1 102 Processing\r\n\r\n" + kHint);
      connection.checkpoint();
      connection.send("HTTP/1.1 100 Continue\r\n\r\n" + ok(kFresh, "hello"));
    }
  });
  RunningProxy proxy(origin.url());
  const auto client = ask(proxy, "/a");
  EXPECT_EQ(client->read_until("\r\n\r\n"),
            "HTTP/1.1 102 Processing\r\nVia: 1.1 secondsight\r\n\r\n");
  EXPECT_EQ(client->read_until("\r\n\r\n"), kHintForTheClient) << "before there is an answer";
  origin.release();
  const std::string head = client->read_until("\r\n\r\n");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n")) << head;
  EXPECT_EQ(head.find("Link"), std::string::npos) << head;
  EXPECT_EQ(client->read_exactly(5), "hello");

  const auto again = ask(proxy, "/a");
  const std::string stored = again->read_until("\r\n\r\n");
  EXPECT_TRUE(stored.starts_with("HTTP/1.1 200 OK\r\n")) << stored;
  EXPECT_NE(stored.find("secondsight; hit"), std::string::npos) << stored;
  EXPECT_EQ(stored.find("Link"), std::string::npos) << stored;
}

TEST(Crossing, InterimHeadsReachOnlyWhoseRequestIsFetched) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    while (!connection.read_request().empty()) {
      connection.checkpoint();
      connection.send(kHint);
      connection.checkpoint();
      connection.send(head_of(10, kFresh) + "hello");
      connection.checkpoint();
      connection.send("world");
    }
  });
  RunningProxy proxy(origin.url());
  const auto leader = ask(proxy, "/a");
  ASSERT_TRUE(eventually([&] { return origin.at_checkpoint() == 1; }));
  std::vector<std::unique_ptr<RawClient>> others;
  for (int i = 0; i < 7; ++i) others.push_back(ask(proxy, "/a"));
  ASSERT_TRUE(collapsed(proxy, 7));
  origin.release();
  EXPECT_EQ(leader->read_until("\r\n\r\n"), kHintForTheClient);
  others.push_back(ask(proxy, "/a"));  // joins behind the hint, before the head
  ASSERT_TRUE(collapsed(proxy, 8));
  origin.release();
  const std::string head = leader->read_until("\r\n\r\n");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n")) << head;
  others.push_back(ask(proxy, "/a"));  // joins the body
  ASSERT_TRUE(collapsed(proxy, 9));
  origin.release();
  EXPECT_EQ(leader->read_exactly(10), "helloworld");
  for (const auto& client : others) {
    const std::string first_head = client->read_until("\r\n\r\n");
    EXPECT_TRUE(first_head.starts_with("HTTP/1.1 200 OK\r\n")) << first_head;
    EXPECT_EQ(client->read_exactly(10), "helloworld");
  }
  EXPECT_EQ(origin.requests().size(), 1U);
}

TEST(Crossing, AnInterimHeadOfAPrivateAnswerIsForItsOwnClient) {
  std::atomic<int> answers = 0;
  ScriptedOrigin origin([&](OriginConnection& connection) {
    while (!connection.read_request().empty()) {
      connection.checkpoint();
      const std::string whose = std::to_string(answers++);
      connection.send("HTTP/1.1 103 Early Hints\r\nWhose: " + whose + "\r\n\r\n");
      connection.checkpoint();
      connection.send(ok("Cache-Control: private\r\n", whose));
    }
  });
  RunningProxy proxy(origin.url());
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(ask(proxy, "/a"));
  ASSERT_TRUE(collapsed(proxy, 7));
  release(origin, 2 * clients.size());
  for (const auto& client : clients) {
    const std::string hint = client->read_until("\r\n\r\n");
    const std::string head = client->read_until("\r\n\r\n");
    EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n")) << head;
    EXPECT_EQ(hint, "HTTP/1.1 103 Early Hints\r\nWhose: " + client->read_exactly(1) +
                        "\r\nVia: 1.1 secondsight\r\n\r\n");
  }
  EXPECT_EQ(answers, 8);
}

TEST(Crossing, OldClientsGetNoInterimHeads) {
  RoutedOrigin origin;
  origin.on("/a", kHint + ok("", "hello"));
  RunningProxy proxy(origin.url());
  RawClient client(proxy.port());
  client.send("GET /a HTTP/1.0\r\nHost: example.test\r\n\r\n");
  const std::string answer = client.read_to_end();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_EQ(answer.find("103"), std::string::npos) << answer;
}

TEST(Crossing, SixteenInterimHeadsAreEnough) {
  RoutedOrigin origin;
  std::string hints;
  for (int i = 0; i < 20; ++i)
    hints += "HTTP/1.1 103 Early Hints\r\nN: " + std::to_string(i) + "\r\n\r\n";
  origin.on("/a", hints + ok("", "hello"));
  RunningProxy proxy(origin.url());
  const auto client = ask(proxy, "/a");
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(
        client->read_until("\r\n\r\n"),
        "HTTP/1.1 103 Early Hints\r\nN: " + std::to_string(i) + "\r\nVia: 1.1 secondsight\r\n\r\n");
  }
  EXPECT_TRUE(client->read_until("\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST(Crossing, TrailersReachWhoTakesThemAndAreNotKept) {
  RoutedOrigin origin;
  const std::string answer =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Sum, Content-Type, Late\r\n"
      "Trailer: \"x\", Time\r\n" +
      std::string(kFresh) +
      "\r\n5\r\nhello\r\n0\r\nSum: 1\r\nContent-Type: text/evil\r\nSet-Cookie: a=b\r\n"
      "Content-Length: 3\r\nTime:\r\n\r\n";
  for (const char* target : {"/te", "/no-te", "/old"}) origin.on(target, answer);
  RunningProxy proxy(origin.url());

  for (const bool first : {true, false}) {
    const auto client = ask(proxy, "/te", "TE: gzip;q=0.5, Trailers\r\nConnection: TE\r\n");
    const std::string head = client->read_until("\r\n\r\n");
    EXPECT_EQ(head.find("Trailer: Sum, Late, Time\r\n") != std::string::npos, first) << head;
    if (first) {
      const std::string body = client->read_until("\r\n\r\n");
      EXPECT_EQ(body, "5\r\nhello\r\n0\r\nSum: 1\r\nTime: \r\n\r\n");
    } else {
      EXPECT_NE(head.find("secondsight; hit"), std::string::npos) << head;
      EXPECT_EQ(client->read_exactly(5), "hello");
    }
    client->send("GET /te HTTP/1.1\r\nHost: example.test\r\n\r\n");  // the framing is in order
    EXPECT_EQ(client->read_response().body, "hello");
  }
  const auto without = ask(proxy, "/no-te");
  EXPECT_EQ(without->read_until("\r\n\r\n").find("Trailer:"), std::string::npos);
  EXPECT_EQ(without->read_until("\r\n\r\n"), "5\r\nhello\r\n0\r\n\r\n");
  RawClient old(proxy.port());
  old.send("GET /old HTTP/1.0\r\nHost: example.test\r\nTE: trailers\r\n\r\n");
  const std::string all = old.read_to_end();
  EXPECT_TRUE(all.ends_with("\r\n\r\nhello")) << all;

  const auto requests = origin.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_NE(requests[0].find("TE: trailers\r\n"), std::string::npos) << requests[0];
  EXPECT_NE(requests[0].find("Connection: TE\r\n"), std::string::npos) << requests[0];
  EXPECT_EQ(requests[1].find("\r\nTE:"), std::string::npos) << requests[1];
  EXPECT_EQ(requests[2].find("\r\nTE:"), std::string::npos) << requests[2];
}

TEST(Crossing, TrailersNamedByConnectionStayBehind) {
  RoutedOrigin origin;
  origin.on("/a",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Sum, Time, Hop\r\n"
            "Connection: keep-alive, sum\r\nConnection: Hop\r\n\r\n"
            "5\r\nhello\r\n0\r\nSum: 1\r\nTime: 2\r\nhOP: 3\r\n\r\n");
  RunningProxy proxy(origin.url());
  const auto client = ask(proxy, "/a", "TE: trailers\r\n");
  const std::string head = client->read_until("\r\n\r\n");
  EXPECT_NE(head.find("\r\nTrailer: Time\r\n"), std::string::npos) << head;
  EXPECT_EQ(client->read_until("\r\n\r\n"), "5\r\nhello\r\n0\r\nTime: 2\r\n\r\n");
}

TEST(Crossing, TrailersReachAllReadersOfAStream) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    while (!connection.read_request().empty()) {
      connection.checkpoint();
      connection.send(chunked_head(kFresh) + "5\r\nhello\r\n");
      connection.checkpoint();
      connection.send("0\r\nSum: 1\r\n\r\n");
    }
  });
  RunningProxy proxy(origin.url());
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(ask(proxy, "/a", "TE: trailers\r\n"));
  ASSERT_TRUE(collapsed(proxy, 7));
  release(origin, 2);
  for (const auto& client : clients) {
    client->read_until("\r\n\r\n");
    EXPECT_EQ(client->read_until("\r\n\r\n"), "5\r\nhello\r\n0\r\nSum: 1\r\n\r\n");
  }
}

TEST(Crossing, ABodyOfAGetIsPassedOnAndWhatItAsksForIsNotKept) {
  const std::string framed = chunked("question", 3);
  struct Case {
    std::string fields;
    std::string body;
  };
  for (const Case& c : std::vector<Case>{{"Content-Length: 8\r\n", "question"},
                                         {"Transfer-Encoding: chunked\r\n", framed}}) {
    SCOPED_TRACE(c.fields);
    RoutedOrigin origin;
    origin.on("/a", [](const std::string& request) {
      const bool is_asked = request.find("\r\n\r\n") + 4 < request.size();
      return ok(kFresh, is_asked ? "answer" : "plain");
    });
    RunningProxy proxy(origin.url());
    for (std::size_t times = 1; times <= 2; ++times) {
      RawClient client(proxy.port());
      client.send("GET /a HTTP/1.1\r\nHost: example.test\r\n" + c.fields + "\r\n" + c.body);
      const RawResponse answer = client.read_response();
      EXPECT_EQ(answer.body, "answer");
      EXPECT_TRUE(says(answer, "fwd=uri-miss")) << answer.head;
      EXPECT_FALSE(says(answer, "stored")) << answer.head;
      ASSERT_EQ(origin.requests().size(), times);
      const std::string got = origin.requests().back();
      std::string body;  // framing apart, in pieces of any size
      for (const char byte : got.substr(got.find("\r\n\r\n") + 4))
        if (byte >= 'a' && byte <= 'z') body += byte;
      EXPECT_EQ(body, "question") << got;
    }
    EXPECT_EQ(proxy.get("/a").body, "plain");
    EXPECT_TRUE(says(proxy.get("/a"), "hit"));
    EXPECT_EQ(origin.requests().size(), 3U);
  }
}

TEST(Crossing, AnUnknownTransferCodingIsReadToTheEnd) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    if (connection.read_request().empty()) return;
    connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: odd\r\n" + std::string(kFresh) +
                    "\r\n5\r\nhello\r\n0\r\n\r\n");
  });
  RunningProxy proxy(origin.url());
  for (const char* how : {"fwd=uri-miss", "hit"}) {
    const RawResponse answer = proxy.get("/a");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "5\r\nhello\r\n0\r\n\r\n") << "as it came";
    EXPECT_NE(answer.field("Transfer-Encoding"), "odd");
    EXPECT_TRUE(says(answer, how)) << answer.head;
  }
  EXPECT_EQ(proxy.get("/b").status, 200);
  EXPECT_EQ(origin.connections(), 2U) << "one connection for each response";
}

TEST(Crossing, OptionsAndTraceGoAsFarAsTheyMay) {
  struct Case {
    const char* clause;
    const char* method;
    std::string fields;
    const char* forwarded;  // the origin's Max-Forwards; null: answered here
  };
  for (const Case& c : std::vector<Case>{
           {"RFC 9110 7.6.2: counts", "OPTIONS", "max-forwards: 3\r\n", "max-forwards: 2\r\n"},
           {"RFC 9110 7.6.2: counts", "TRACE", "Max-Forwards: 1\r\n", "Max-Forwards: 0\r\n"},
           {"RFC 9110 7.6.2: counts", "TRACE", "Max-Forwards: 10\r\n", "Max-Forwards: 9\r\n"},
           {"RFC 9110 7.6.2: 0 is answered", "OPTIONS", "Max-Forwards: 0\r\n", nullptr},
           {"RFC 9110 7.6.2: 0 is answered", "TRACE", "Max-Forwards: 000\r\n", nullptr},
           {"RFC 9110 7.6.2: none", "OPTIONS", "", ""},
           {"RFC 9110 7.6.2: none", "TRACE", "", ""},
           {"unreadable", "OPTIONS", "Max-Forwards: -1\r\n", "Max-Forwards: -1\r\n"},
           {"unreadable", "OPTIONS", "Max-Forwards: 1, 0\r\n", "Max-Forwards: 1, 0\r\n"},
           {"unreadable", "TRACE", "Max-Forwards:\r\n", "Max-Forwards:\r\n"},
           {"unreadable", "TRACE", "Max-Forwards: 99999999999999999999\r\n",
            "Max-Forwards: 99999999999999999999\r\n"},
           {"unreadable: two", "TRACE", "Max-Forwards: 0\r\nMax-Forwards: 0\r\n",
            "Max-Forwards: 0\r\nMax-Forwards: 0\r\n"},
           {"RFC 9110 7.6.2: other methods", "GET", "Max-Forwards: 0\r\n", "Max-Forwards: 0\r\n"},
           {"RFC 9110 7.6.2: other methods", "POST", "Max-Forwards: 2\r\nContent-Length: 0\r\n",
            "Max-Forwards: 2\r\n"}}) {
    SCOPED_TRACE(std::string(c.clause) + ": " + c.method + " " + c.fields);
    RoutedOrigin origin;
    origin.on("/a", ok("X-Origin: yes\r\n", "far"));
    RunningProxy proxy(origin.url());
    const RawResponse answer = proxy.send(c.method, "/a", c.fields);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.field("X-Origin"), c.forwarded ? "yes" : "");
    ASSERT_EQ(origin.requests().size(), c.forwarded ? 1U : 0U);
    if (!c.forwarded) continue;
    const std::string got = origin.requests().front();
    std::string fields;
    for (auto at = got.find("ax-"); at != std::string::npos; at = got.find("ax-", at + 1))
      fields += got.substr(at - 1, got.find('\n', at) + 2 - at);
    EXPECT_EQ(fields, c.forwarded) << got;
  }
}

TEST(Crossing, AnswersForItself) {
  RoutedOrigin origin;
  RunningProxy proxy(origin.url());
  const RawResponse options = proxy.send("OPTIONS", "*", "Max-Forwards: 0\r\n");
  EXPECT_EQ(options.status, 200);
  EXPECT_EQ(options.field("Content-Length"), "0");
  EXPECT_EQ(options.field("Date"), "Thu, 01 Jan 2026 00:00:00 GMT");
  EXPECT_EQ(options.field("Allow"), "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE");

  const RawResponse trace = proxy.send(
      "TRACE", "/a?b",
      "Max-Forwards: 0\r\nAUTHORIZATION: Basic x\r\nCookie: a=b\r\nProxy-Authorization: x\r\n"
      "X-Api-Key: x\r\nX-ApiKey: x\r\nX-Credentials: x\r\nX-Csrf-Token: x\r\n"
      "X-Forwarded-For: 10.0.0.1\r\nX-Real-IP: 10.0.0.1\r\nTrue-Client-IP: 10.0.0.1\r\n"
      "Via: 1.1 other\r\nX: y\r\n");
  EXPECT_EQ(trace.status, 200);
  EXPECT_EQ(trace.field("Content-Type"), "message/http");
  EXPECT_EQ(trace.field("Cache-Control"), "no-store");
  EXPECT_EQ(trace.field("Date"), "Thu, 01 Jan 2026 00:00:00 GMT");
  EXPECT_EQ(trace.body,
            "TRACE /a?b HTTP/1.1\r\nHost: example.test\r\nMax-Forwards: 0\r\nVia: 1.1 other\r\n"
            "X: y\r\n\r\n");
  EXPECT_EQ(proxy.send("TRACE", "/a", "Max-Forwards: 0\r\n", "body").status, 400);
  EXPECT_EQ(proxy.send("TRACE", "/a", "", "body").status, 400);
  EXPECT_EQ(origin.requests().size(), 0U);
  // A request is counted once its answer is on its way.
  const auto count = [&proxy](const std::string& outcome) {
    return proxy.metric("secondsight_requests_total{outcome=\"" + outcome + "\"}");
  };
  while (count("bypass") < 2 || count("error") < 2) std::this_thread::yield();
  EXPECT_EQ(count("bypass"), 2);
  EXPECT_EQ(count("error"), 2);

  origin.on("*", ok("Allow: ALL\r\n", ""));
  EXPECT_EQ(proxy.send("OPTIONS", "*").field("Allow"), "ALL");
}

TEST(Crossing, OurOwnErrorsAreDated) {
  ScriptedOrigin origin([](OriginConnection& connection) { connection.read_request(); });
  RunningProxy proxy(origin.url());
  proxy.clock.advance(std::chrono::seconds{61});
  const std::vector<RawResponse> errors{proxy.get("/a"),
                                        proxy.get("/a", "Cache-Control: only-if-cached\r\n"),
                                        proxy.send("TRACE", "/a", "", "body")};
  std::vector<int> codes;
  for (const RawResponse& error : errors) {
    codes.push_back(error.status);
    EXPECT_EQ(error.field("Date"), "Thu, 01 Jan 2026 00:01:01 GMT") << error.head;
  }
  EXPECT_EQ(codes, (std::vector<int>{502, 504, 400}));
}

TEST(Crossing, ConnectIsRefused) {
  RoutedOrigin origin;
  RunningProxy proxy(origin.url());
  RawClient client(proxy.port());
  client.send(
      "CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\r\nGET / HTTP/1.1\r\n\r\n");
  const RawResponse answer = client.read_response("CONNECT");
  EXPECT_EQ(answer.status, 501);
  EXPECT_EQ(answer.field("Connection"), "close");
  client.shutdown_send();
  EXPECT_TRUE(client.wait_closed());
  EXPECT_EQ(origin.requests().size(), 0U);
}

TEST(Crossing, TheOriginDecidesWhetherABodyIsAskedFor) {
  const std::string request =
      "POST /a HTTP/1.1\r\nHost: example.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
  ScriptedOrigin willing([](OriginConnection& connection) {
    connection.read_head();
    connection.checkpoint();
    connection.send("HTTP/1.1 100 Continue\r\n\r\n");
    if (connection.read_some() == "hello") connection.send(ok("", "thanks"));
    connection.wait_for_close();
  });
  {
    RunningProxy proxy(willing.url());
    RawClient client(proxy.port());
    client.send(request);
    ASSERT_TRUE(eventually([&] { return willing.at_checkpoint() == 1; }));
    EXPECT_EQ(client.read_some(), "");
    willing.release();
    EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("hello");
    EXPECT_EQ(client.read_response("POST").body, "thanks");
  }
  for (const char* status :
       {"401 Unauthorized", "413 Content Too Large", "417 Expectation Failed"}) {
    ScriptedOrigin refusing([&](OriginConnection& connection) {
      while (!connection.read_head().empty())
        connection.send("HTTP/1.1 " + std::string(status) + "\r\nContent-Length: 2\r\n\r\nno");
    });
    RunningProxy proxy(refusing.url());
    RawClient client(proxy.port());
    client.send(request);
    const std::string answer = client.read_until("no");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + std::string(status) + "\r\n")) << answer;
    EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << answer;
    client.shutdown_send();
    EXPECT_TRUE(client.wait_closed());
  }
}

}  // namespace
}  // namespace secondsight::proxy::test
