#include <arpa/inet.h>
#include <memory>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/proxy/origin_fixture.h"

namespace secondsight::proxy::test {
namespace {

using secondsight::test::answer_always;
using secondsight::test::refusing_port;
using namespace std::chrono_literals;
using namespace std::string_literals;

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const std::string kOkSummary = "none 200 OK [Content-Length=2|] ok";

std::string refusing_url() {
  return "http://127.0.0.1:" + std::to_string(refusing_port());
}

enum class End : std::uint8_t { Fin, Reset };

// What becomes of a response that breaks off.
std::string outcome(const std::string& bytes, End end) {
  ScriptedOrigin origin([&](OriginConnection& connection) {
    connection.read_request();
    connection.send(bytes);
    if (end == End::Reset) {
      // The reset must not overtake the bytes.
      connection.checkpoint();
      connection.reset();
    }
  });
  OriginClientTest test({origin.url()});
  Recorder recorder;
  const auto fetch = test.get("/", recorder);
  if (end == End::Reset) {
    test.run_until([&] { return origin.at_checkpoint() == 1; });
    test.drain();
    origin.release();
  }
  test.run_until([&] { return recorder.done.has_value(); });
  if (recorder.done && *recorder.done != OriginError::None) {
    EXPECT_EQ(test.errors(*recorder.done), 1U);
  }
  EXPECT_EQ(origin.requests().size(), 1U);
  return recorder.done ? std::string(to_string(*recorder.done)) : "pending";
}

TEST(OriginErrors, TellsABrokenHeadFromABrokenBody) {
  struct Case {
    std::string bytes;
    std::string at_fin, at_reset;
  };
  const std::vector<Case> cases{
      {"", "disconnected", "disconnected"},
      {"HTTP/1.", "disconnected", "disconnected"},
      {"HTTP/1.1 200 OK\r\n", "disconnected", "disconnected"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "disconnected", "disconnected"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y", "disconnected", "disconnected"},
      {"HTTP/1.1 103 Early Hints\r\n\r\n", "disconnected", "disconnected"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "truncated", "truncated"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "truncated", "truncated"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "truncated", "truncated"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhell", "truncated", "truncated"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", "truncated",
       "truncated"},
      {"HTTP/1.1 200 OK\r\n\r\nhello", "none", "truncated"},
  };
  for (const auto& [bytes, at_fin, at_reset] : cases) {
    EXPECT_EQ(outcome(bytes, End::Fin), at_fin) << bytes;
    EXPECT_EQ(outcome(bytes, End::Reset), at_reset) << bytes;
  }
}

TEST(OriginErrors, RefusesMalformedResponses) {
  const std::vector<std::string> cases{
      "garbage\r\n\r\n",
      "<html>",
      "HTTP/1.1 200 OK\n\n",
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
      "HTTP/1.1 2000 OK\r\n\r\n",
      "HTTP/1.3 200 OK\r\n\r\n",
      "HTTP/2 200 OK\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n"s,
      "HTTP/1.1 200 OK\r\nNoColon\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n",
      "HTTP/1.1 200 OK\r\nLong: " + std::string(70'000, 'x') + "\r\n\r\n",
      "HTTP/1.1 200 OK\r\nLong: " + std::string(200'000, 'x'),
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: " + std::string(70'000, 'x') +
          "\r\n\r\n",
  };
  for (const auto& bytes : cases)
    EXPECT_EQ(outcome(bytes, End::Fin), "malformed") << bytes.substr(0, 80);
}

TEST(OriginErrors, RefusesTooManyFields) {
  std::string head = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 10'000; ++i) head += "A: b\r\n";
  EXPECT_EQ(outcome(head + "Content-Length: 0\r\n\r\n", End::Fin), "none");
  for (int i = 0; i < 1'000; ++i) head += "A: b\r\n";
  EXPECT_EQ(outcome(head + "Content-Length: 0\r\n\r\n", End::Fin), "malformed");
}

TEST(OriginErrors, NeverSendsTwiceWhatAnOriginMayHaveReceived) {
  for (const End end : {End::Fin, End::Reset}) {
    for (const std::string& partial : {""s, "HTTP/1.1 2"s}) {
      ScriptedOrigin origin([&](OriginConnection& connection) {
        connection.read_request();
        connection.send(kOk);
        if (connection.read_request().empty()) return;
        connection.send(partial);
        if (end == End::Reset) connection.reset();
      });
      OriginClientTest test({origin.url()});
      EXPECT_EQ(test.fetch("/first"), kOkSummary);
      EXPECT_EQ(test.fetch("/second"), "disconnected");
      EXPECT_EQ(test.errors(OriginError::Disconnected), 1U);
      const auto requests = origin.requests();
      ASSERT_EQ(requests.size(), 2U);
      EXPECT_TRUE(requests[1].starts_with("GET /second "));
      // The client is as good as new.
      EXPECT_EQ(test.fetch("/third"), kOkSummary);
    }
  }
}

TEST(OriginErrors, TriesEveryOriginBeforeItGivesUp) {
  ScriptedOrigin origin(answer_always(kOk));
  const auto refusing = refusing_url();
  {
    OriginClientTest test({refusing, refusing_url(), origin.url()});
    for (int i = 0; i < 6; ++i) EXPECT_EQ(test.fetch("/" + std::to_string(i)), kOkSummary);
    EXPECT_EQ(test.errors(OriginError::Unreachable), 0U);
  }
  EXPECT_EQ(origin.requests().size(), 6U);
  EXPECT_EQ(origin.connections(), 1U);
  OriginClientTest test({refusing, refusing_url()});
  EXPECT_EQ(test.fetch("/"), "unreachable");
  EXPECT_EQ(test.fetch("/"), "unreachable");
  EXPECT_EQ(test.errors(OriginError::Unreachable), 2U);
  EXPECT_EQ(test.connections(), 0U);
}

TEST(OriginErrors, DoesNotTryAnotherOriginAfterSending) {
  ScriptedOrigin closing([](OriginConnection& connection) { connection.read_request(); });
  ScriptedOrigin answering(answer_always(kOk));
  OriginClientTest test({closing.url(), answering.url()});
  EXPECT_EQ(test.fetch("/"), "disconnected");
  EXPECT_EQ(test.fetch("/"), kOkSummary);
  EXPECT_EQ(answering.requests().size(), 1U);
}

TEST(OriginErrors, ReportsANameThatDoesNotResolve) {
  // RFC 6761: never resolves.
  OriginClientTest test({"http://nowhere.invalid"});
  EXPECT_EQ(test.fetch("/"), "unreachable");
}

TEST(OriginErrors, ReportsAnOriginThatSpeaksNoTls) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    connection.read_some();
    connection.send("HTTP/1.1 400 Bad Request\r\n\r\n");
  });
  OriginClientTest test({"https://127.0.0.1:" + std::to_string(origin.port())});
  EXPECT_EQ(test.fetch("/"), "unreachable");
}

// A listener that accepts nothing and whose queue is full drops further connection attempts.
TEST(OriginErrors, GivesUpConnectingInTime) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener, generic, size), 0);
  ASSERT_EQ(::listen(listener, 0), 0);
  ASSERT_EQ(::getsockname(listener, generic, &size), 0);
  std::vector<int> fillers;
  for (int i = 0; i < 8; ++i) {
    fillers.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    ::connect(fillers.back(), generic, size);
  }
  const auto full = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  const auto hurry = [](OriginSettings& settings) { settings.connect_timeout = 50ms; };
  {
    OriginClientTest test({full}, hurry);
    EXPECT_EQ(test.fetch("/"), "connect-timeout");
    EXPECT_EQ(test.errors(OriginError::ConnectTimeout), 1U);
  }
  ScriptedOrigin origin(answer_always(kOk));
  OriginClientTest test({full, origin.url()}, hurry);
  EXPECT_EQ(test.fetch("/"), kOkSummary);
  for (const int filler : fillers) ::close(filler);
  ::close(listener);
}

TEST(OriginErrors, WaitsForTheHeadOnlySoLong) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    connection.read_request();
    connection.send("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n");
    connection.checkpoint();
  });
  OriginClientTest test({origin.url()}, [](OriginSettings& s) { s.response_timeout = 1000ms; });
  Recorder recorder;
  const auto fetch = test.get("/", recorder);
  ASSERT_TRUE(test.run_until([&] { return origin.at_checkpoint() == 1; }));
  test.drain();
  test.pass(999ms);
  EXPECT_FALSE(recorder.done);
  test.pass(1ms);
  EXPECT_EQ(recorder.done, OriginError::ResponseTimeout);
  EXPECT_EQ(test.errors(OriginError::ResponseTimeout), 1U);
}

TEST(OriginErrors, CountsTheWaitForAConnection) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    connection.read_request();
    connection.checkpoint();
  });
  OriginClientTest test({origin.url()}, [](OriginSettings& settings) {
    settings.max_connections = 1;
    settings.response_timeout = 1000ms;
  });
  Recorder first, second;
  const auto fetch1 = test.get("/1", first);
  ASSERT_TRUE(test.run_until([&] { return origin.at_checkpoint() == 1; }));
  test.pass(500ms);
  const auto fetch2 = test.get("/2", second);
  test.drain();
  test.pass(500ms);
  EXPECT_EQ(first.done, OriginError::ResponseTimeout);
  EXPECT_FALSE(second.done);
  test.pass(500ms);
  EXPECT_EQ(second.done, OriginError::ResponseTimeout);
}

TEST(OriginErrors, WaitsForProgressOfTheBodyUnlessPaused) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    connection.read_request();
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
    for (const char* piece : {"a", "b", "c"}) {
      connection.send(piece);
      connection.checkpoint();
    }
  });
  OriginClientTest test({origin.url()}, [](OriginSettings& s) { s.idle_timeout = 1000ms; });
  Recorder recorder;
  recorder.at_body = [&] {
    return recorder.body == "ab" ? OriginReceiver::Flow::Pause : OriginReceiver::Flow::Go;
  };
  const auto fetch = test.get("/", recorder);
  ASSERT_TRUE(test.run_until([&] { return recorder.body == "a"; }));
  test.pass(100ms);
  test.pass(999ms);
  origin.release();
  ASSERT_TRUE(test.run_until([&] { return recorder.body == "ab"; }));
  for (int i = 0; i < 5; ++i) test.pass(10s);  // paused: not the origin's fault
  EXPECT_FALSE(recorder.done);
  fetch->resume();
  test.pass(0ms);
  test.pass(999ms);
  EXPECT_FALSE(recorder.done);
  origin.release();
  ASSERT_TRUE(test.run_until([&] { return recorder.body == "abc"; }));
  test.pass(0ms);
  test.pass(1000ms);
  EXPECT_EQ(recorder.done, OriginError::ResponseTimeout);
}

TEST(OriginErrors, NamesEveryError) {
  const std::vector<std::pair<OriginError, std::string>> names{
      {OriginError::None, "none"},
      {OriginError::Unreachable, "unreachable"},
      {OriginError::ConnectTimeout, "connect-timeout"},
      {OriginError::ResponseTimeout, "response-timeout"},
      {OriginError::Disconnected, "disconnected"},
      {OriginError::Malformed, "malformed"},
      {OriginError::Truncated, "truncated"},
      {OriginError::RequestBody, "request-body"},
      {OriginError::Cancelled, "cancelled"},
  };
  for (const auto& [error, name] : names) EXPECT_EQ(to_string(error), name);
}

}  // namespace
}  // namespace secondsight::proxy::test
