// Connections that change their protocol.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/proxy/flight_fixture.h"

namespace secondsight::proxy::test {
namespace {

using namespace literals;
using namespace std::chrono_literals;

const std::string kAsk = "Connection: keep-alive, Upgrade\r\nUpgrade: odd/2\r\nKey: k\r\n";
const std::string kSwitch =
    "HTTP/1.1 101 Switching\r\nconnection: Upgrade, X-Hop\r\nupgrade: ODD/2\r\nX-Hop: 1\r\n"
    "Answer: a\r\n\r\n";

std::string first_line(const std::string& text) {
  return text.substr(0, text.find("\r\n"));
}

/// An origin that agrees, and then echoes until the peer ends its side; then it says "bye".
void echo(OriginConnection& connection) {
  if (connection.read_request().empty()) return;
  connection.send(kSwitch);
  for (std::string got; !(got = connection.read_some()).empty();) connection.send(got);
  connection.send("bye");
}

TEST(Tunnel, CarriesBytesBothWaysAndEndsWithBothSides) {
  ScriptedOrigin origin(echo);
  RunningProxy proxy(origin.url());
  const auto client = ask(proxy, "/chat?a=b", kAsk);
  const std::string head = client->read_until("\r\n\r\n");
  EXPECT_EQ(head,
            "HTTP/1.1 101 Switching\r\nAnswer: a\r\nVia: 1.1 secondsight\r\n"
            "Connection: Upgrade\r\nUpgrade: ODD/2\r\n"
            "Cache-Status: secondsight; fwd=bypass\r\n\r\n");
  for (const std::string& text : {std::string("a"), body_of(300'000), std::string("\0\r\n", 3)}) {
    client->send(text);
    EXPECT_TRUE(client->read_exactly(text.size()) == text);
  }
  client->shutdown_send();
  EXPECT_EQ(client->read_to_end(), "bye") << "what the origin still says is passed on";
  EXPECT_FALSE(client->was_reset());
  EXPECT_EQ(first_line(origin.requests().at(0)), "GET /chat?a=b HTTP/1.1");
  EXPECT_NE(origin.requests().at(0).find("\r\nKey: k\r\n"), std::string::npos);
  EXPECT_NE(origin.requests().at(0).find("\r\nConnection: Upgrade\r\nUpgrade: odd/2\r\n"),
            std::string::npos);
  EXPECT_EQ(proxy.metric("secondsight_tunnels_total"), 1);
  EXPECT_TRUE(eventually([&] { return proxy.metric("secondsight_tunnels_closed_total") == 1; }));
  EXPECT_EQ(proxy.metric("secondsight_requests_total{outcome=\"bypass\"}"), 1);
  EXPECT_EQ(proxy.metric("secondsight_sent_body_bytes_total"), 300'000 + 1 + 3 + 3);
}

TEST(Tunnel, PassesOnWhatCameEarly) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    if (connection.read_request().empty()) return;
    connection.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + kSwitch +
                    "hello");
    std::string got;
    while (got.size() < 3) got += connection.read_some();
    connection.send(got);
    connection.wait_for_close();
  });
  RunningProxy proxy(origin.url());
  RawClient client(proxy.port());
  client.send("GET / HTTP/1.1\r\nHost: a\r\n" + kAsk + "\r\nabc");
  EXPECT_EQ(first_line(client.read_until("\r\n\r\n")), "HTTP/1.1 103 Early Hints");
  EXPECT_EQ(first_line(client.read_until("\r\n\r\n")), "HTTP/1.1 101 Switching");
  EXPECT_EQ(client.read_exactly(8), "helloabc");
}

TEST(Tunnel, SixteenInterimHeadsAreEnough) {
  std::string answers;
  for (int i = 0; i < 20; ++i)
    answers += "HTTP/1.1 103 Early Hints\r\nN: " + std::to_string(i) + "\r\n\r\n";
  answers += kSwitch;
  ScriptedOrigin origin([&](OriginConnection& connection) {
    if (connection.read_request().empty()) return;
    connection.send(answers);
    connection.wait_for_close();
  });
  RunningProxy proxy(origin.url());
  const auto client = ask(proxy, "/", kAsk);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(
        client->read_until("\r\n\r\n"),
        "HTTP/1.1 103 Early Hints\r\nN: " + std::to_string(i) + "\r\nVia: 1.1 secondsight\r\n\r\n");
  }
  EXPECT_EQ(first_line(client->read_until("\r\n\r\n")), "HTTP/1.1 101 Switching");
}

TEST(Tunnel, KeepsTheClientsHalfWhenTheOriginEndsItsOwn) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    if (connection.read_request().empty()) return;
    connection.send(kSwitch + "last words");
    connection.finish_sending();
    std::string got;
    for (std::string piece; !(piece = connection.read_some()).empty();) got += piece;
    EXPECT_EQ(got, "still heard");
  });
  RunningProxy proxy(origin.url());
  const auto client = ask(proxy, "/", kAsk);
  client->read_until("\r\n\r\n");
  EXPECT_EQ(client->read_to_end(), "last words");
  EXPECT_FALSE(client->was_reset());
  client->send("still heard");
  client->shutdown_send();
  origin.wait_for_scripts(1);
}

TEST(Tunnel, BreaksOneSideWhenTheOtherBreaks) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    const bool is_breaker = connection.read_request().find("/origin") != std::string::npos;
    connection.send(kSwitch);
    if (!is_breaker) return connection.wait_for_close();
    connection.checkpoint();
    connection.reset();
  });
  RunningProxy proxy(origin.url());
  const auto cut = ask(proxy, "/origin", kAsk);
  cut->read_until("\r\n\r\n");
  origin.release();
  EXPECT_TRUE(cut->wait_closed());
  EXPECT_TRUE(cut->was_reset());
  origin.wait_for_scripts(1);

  const auto leaver = ask(proxy, "/client", kAsk);
  leaver->read_until("\r\n\r\n");
  leaver->reset();
  origin.wait_for_scripts(2);  // it saw its own connection end
  EXPECT_TRUE(eventually([&] { return proxy.metric("secondsight_tunnels_closed_total") == 2; }));
}

TEST(Tunnel, EndsWhenNothingMovesForSoLong) {
  ScriptedOrigin origin(echo);
  RunningProxy proxy(origin.url(), [](Settings& s) { s.proxy.idle_timeout = 60s; });
  const auto client = ask(proxy, "/", kAsk);
  client->read_until("\r\n\r\n");
  client->send("a");
  EXPECT_EQ(client->read_exactly(1), "a");
  // The tick that starts the wait comes at its own time; time is by hand and so never short.
  EXPECT_TRUE(eventually([&] {
    proxy.clock.advance(20s);
    return proxy.metric("secondsight_tunnels_closed_total") == 1;
  }));
  EXPECT_TRUE(client->wait_closed());
  origin.wait_for_scripts(1);
}

TEST(Tunnel, PassesOnAnAnswerThatIsNone) {
  struct Case {
    std::string answer;
    std::string body;
    bool whole;
  };
  for (const Case& c : std::vector<Case>{
           {ok("Cache-Control: max-age=60\r\n", "no"), "no", true},
           {chunked_head(kFresh) + chunked("not today", 4), "not today", true},
           {"HTTP/1.1 426 Upgrade Required\r\n\r\nuntil close", "until close", true},
           {"HTTP/1.1 204 No\r\n\r\n", "", true},
           {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", "short", false},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX", "abc", false}}) {
    ScriptedOrigin origin([&](OriginConnection& connection) {
      if (!connection.read_request().empty()) connection.send(c.answer);
    });
    RunningProxy proxy(origin.url());
    for (int i = 0; i < 2; ++i) {
      const auto client = ask(proxy, "/", kAsk);
      const RawResponse answer = client->read_response();
      EXPECT_EQ(first_line(answer.head), first_line(c.answer).replace(0, 8, "HTTP/1.1"));
      EXPECT_EQ(answer.body, c.body) << c.answer;
      EXPECT_EQ(answer.whole, c.whole) << c.answer;
      EXPECT_TRUE(says(answer, "fwd=bypass")) << answer.head;
      if (c.whole) {
        client->send("GET /next HTTP/1.1\r\nHost: a\r\n" + kAsk + "\r\n");
        EXPECT_NE(client->read_response().status, 0) << "the client's connection goes on";
      }
    }
    EXPECT_EQ(origin.requests().size(), c.whole ? 4U : 2U) << "nothing was kept: " << c.answer;
    EXPECT_EQ(proxy.metric("secondsight_tunnels_total"), 0);
  }
}

TEST(Tunnel, RefusesWhatIsNoAgreement) {
  for (const char* answer :
       {"HTTP/1.1 101 S\r\n\r\n", "HTTP/1.1 101 S\r\nUpgrade: odd/2\r\n\r\n",
        "HTTP/1.1 101 S\r\nConnection: Upgrade\r\n\r\n",
        "HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n",
        "HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: odd/2, other\r\n\r\n",
        "HTTP/1.1 2xx\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n"}) {
    ScriptedOrigin origin([&](OriginConnection& connection) {
      if (!connection.read_request().empty()) connection.send(answer);
    });
    RunningProxy proxy(origin.url());
    const RawResponse refusal = ask(proxy, "/", kAsk)->read_response();
    EXPECT_EQ(refusal.status, 502) << answer;
    EXPECT_TRUE(says(refusal, "detail=malformed")) << answer << refusal.head;
  }
}

TEST(Tunnel, SaysWhyThereIsNoAnswer) {
  RunningProxy nobody("http://127.0.0.1:" + std::to_string(secondsight::test::refusing_port()));
  const RawResponse unreachable = ask(nobody, "/", kAsk)->read_response();
  EXPECT_EQ(unreachable.status, 502);
  EXPECT_TRUE(says(unreachable, "detail=unreachable")) << unreachable.head;

  ScriptedOrigin leaving([](OriginConnection& connection) { connection.read_request(); });
  RunningProxy left(leaving.url());
  EXPECT_TRUE(says(ask(left, "/", kAsk)->read_response(), "detail=disconnected"));

  ScriptedOrigin silent([](OriginConnection& connection) {
    connection.read_request();
    connection.wait_for_close();
  });
  RunningProxy waiting(silent.url());
  const auto client = ask(waiting, "/", kAsk);
  ASSERT_TRUE(eventually([&] { return silent.requests().size() == 1; }));
  ASSERT_TRUE(eventually([&] {
    waiting.clock.advance(10s);
    return waiting.metric("secondsight_requests_total{outcome=\"error\"}") == 1;
  }));
  const RawResponse late = client->read_response();
  EXPECT_EQ(late.status, 504);
  EXPECT_TRUE(says(late, "detail=response-timeout")) << late.head;
}

TEST(Tunnel, TriesTheNextOriginWhenOneCannotBeReached) {
  ScriptedOrigin origin(echo);
  const std::uint16_t nobody = secondsight::test::refusing_port();
  RunningProxy proxy(origin.url(), [&](Settings& s) {
    s.origin.urls.insert(s.origin.urls.begin(),
                         {.tls = false,
                          .host = "localhost",
                          .port = nobody,
                          .text = "http://localhost:" + std::to_string(nobody)});
  });
  for (int i = 0; i < 2; ++i) {
    const auto client = ask(proxy, "/", kAsk);
    EXPECT_EQ(first_line(client->read_until("\r\n\r\n")), "HTTP/1.1 101 Switching");
  }
}

TEST(Tunnel, IsOnlyMadeForWhoAsksProperly) {
  const std::vector<std::string> requests{
      "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: odd\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, keep-alive\r\nUpgrade: odd\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade:\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: o d d, (x)\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: H2C\r\n"
      "HTTP2-Settings: x\r\n\r\n",
      "HEAD / HTTP/1.1\r\nHost: a\r\n" + kAsk + "\r\n",
      "POST / HTTP/1.1\r\nHost: a\r\n" + kAsk + "Content-Length: 0\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\n" + kAsk + "Content-Length: 1\r\n\r\nx",
      "GET / HTTP/1.0\r\nHost: a\r\n" + kAsk + "\r\n",
  };
  for (const std::string& request : requests) {
    RoutedOrigin origin;
    origin.on("/", ok("Cache-Control: no-store\r\n", ""));
    RunningProxy proxy(origin.url());
    RawClient client(proxy.port());
    client.send(request);
    EXPECT_EQ(client.read_response(request.substr(0, request.find(' '))).status, 200) << request;
    ASSERT_EQ(origin.requests().size(), 1U) << request;
    const std::string got = origin.requests().front();
    EXPECT_EQ(got.find("pgrade"), std::string::npos) << got;
    EXPECT_EQ(got.find("HTTP2-Settings"), std::string::npos) << got;
  }
}

TEST(Tunnel, LeavesH2cOutOfAList) {
  ScriptedOrigin origin(echo);
  RunningProxy proxy(origin.url());
  const auto client =
      ask(proxy, "/", "Connection: Upgrade\r\nUpgrade: h2c, , odd/2\r\nUpgrade: third\r\n");
  client->read_until("\r\n\r\n");
  EXPECT_NE(origin.requests().at(0).find("\r\nUpgrade: odd/2, third\r\n"), std::string::npos);
}

TEST(Tunnel, ASlowSideIsWaitedFor) {
  const std::string much = body_of(8 << 20);
  ScriptedOrigin origin([&](OriginConnection& connection) {
    if (connection.read_request().empty()) return;
    connection.send(kSwitch + much);
  });
  RunningProxy proxy(origin.url());
  const auto client = ask(proxy, "/", kAsk, kSlow);
  client->read_until("\r\n\r\n");
  EXPECT_TRUE(client->read_to_end() == much);
}

TEST(Tunnel, DoesNotOutliveTheProxy) {
  ScriptedOrigin origin(echo);
  RunningProxy proxy(origin.url());
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(ask(proxy, "/", kAsk));
    clients.back()->read_until("\r\n\r\n");
  }
  proxy.stop();
  for (const auto& client : clients) EXPECT_TRUE(client->wait_closed());
  origin.wait_for_scripts(6);
}

TEST(Tunnel, OneHurryEndsTheDrainOfAllWorkers) {
  ScriptedOrigin origin(echo);
  RunningProxy proxy(origin.url(), [](Settings& s) { s.proxy.drain_timeout = 10min; });
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 24; ++i) {  // the kernel spreads them: both workers have some
    clients.push_back(ask(proxy, "/", kAsk));
    clients.back()->read_until("\r\n\r\n");
  }
  int asked = 0;
  proxy.stop([&] { return ++asked > 0; });
  EXPECT_EQ(asked, 1) << "the second worker's end was not waited for";
  for (const auto& client : clients) EXPECT_TRUE(client->wait_closed());
  origin.wait_for_scripts(24);
}

}  // namespace
}  // namespace secondsight::proxy::test
