#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include "tests/proxy/origin_fixture.h"

namespace secondsight::proxy::test {
namespace {

using secondsight::test::answer_always;
using namespace std::chrono_literals;

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const std::string kOkSummary = "none 200 OK [Content-Length=2|] ok";

// Gives its pieces one by one; waits for more until it is told that there are none.
class Pieces final : public BodySource {
 public:
  explicit Pieces(net::io_context& io) : wake_(io, SteadyTime::max()) {}

  void add(std::string piece) {
    pieces_.push_back(std::move(piece));
    wake_.cancel();
  }
  void end() { add({}); }
  void fail() {
    failed_ = true;
    wake_.cancel();
  }

  net::awaitable<Result<std::span<const std::byte>>> next() override {
    ++calls;
    suspended = true;
    while (pieces_.empty() && !failed_) {
      const auto [error] = co_await wake_.async_wait(use_result);
      const auto state = co_await net::this_coro::cancellation_state;
      if (state.cancelled() != net::cancellation_type::none) {
        suspended = false;
        cancelled = true;
        co_return boost::system::error_code(error);
      }
    }
    suspended = false;
    if (failed_) co_return net::error::make_error_code(net::error::connection_reset);
    current_ = std::move(pieces_.front());
    pieces_.pop_front();
    co_return std::as_bytes(std::span<const char>(current_));
  }

  std::size_t calls = 0;
  bool suspended = false;
  bool cancelled = false;

 private:
  net::steady_timer wake_;
  std::deque<std::string> pieces_;
  std::string current_;
  bool failed_ = false;
};

OriginRequest upload(BodySource& body, std::optional<std::uint64_t> length) {
  OriginRequest request = make_request("POST", "/upload");
  request.fields.add("Content-Type", "x/y");
  request.body = &body;
  request.content_length = length;
  return request;
}

const std::string kUploadHead =
    "POST /upload HTTP/1.1\r\nHost: example.test\r\nContent-Type: x/y\r\n";

TEST(OriginBody, SendsAKnownLength) {
  ScriptedOrigin origin(answer_always(kOk));
  OriginClientTest test({origin.url()});
  Pieces body(test.io);
  body.add("hello ");
  body.add("world");
  EXPECT_EQ(test.fetch(upload(body, 11)), kOkSummary);
  EXPECT_EQ(origin.requests().at(0), kUploadHead + "Content-Length: 11\r\n\r\nhello world");
}

TEST(OriginBody, SendsAnEmptyBody) {
  ScriptedOrigin origin(answer_always(kOk));
  OriginClientTest test({origin.url()});
  Pieces body(test.io);
  EXPECT_EQ(test.fetch(upload(body, 0)), kOkSummary);
  EXPECT_EQ(origin.requests().at(0), kUploadHead + "Content-Length: 0\r\n\r\n");
  EXPECT_EQ(body.calls, 0U);
}

TEST(OriginBody, SendsAnUnknownLengthInChunks) {
  ScriptedOrigin origin(answer_always(kOk));
  OriginClientTest test({origin.url()});
  Pieces body(test.io);
  body.add("hello ");
  body.add("world");
  body.end();
  EXPECT_EQ(test.fetch(upload(body, std::nullopt)), kOkSummary);
  EXPECT_EQ(origin.requests().at(0),
            "POST /upload HTTP/1.1\r\nHost: example.test\r\nTransfer-Encoding: chunked\r\n"
            "Content-Type: x/y\r\n\r\n6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n");
}

TEST(OriginBody, SendsChunksAlsoAfterAnHttp10Response) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    if (connection.read_request().empty()) return;
    connection.send("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  OriginClientTest test({origin.url()});
  for (int i = 0; i < 2; ++i) {
    Pieces body(test.io);
    body.add("x");
    body.end();
    EXPECT_EQ(test.fetch(upload(body, std::nullopt)), kOkSummary);
  }
}

TEST(OriginBody, SendsAsTheClientDelivers) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    connection.read_head();
    for (std::string got; got.size() < 6;) {
      got += connection.read_some();
      connection.checkpoint();
    }
    connection.send(kOk);
    connection.wait_for_close();
  });
  OriginClientTest test({origin.url()}, [](OriginSettings& s) { s.response_timeout = 1000ms; });
  Pieces body(test.io);
  Recorder recorder;
  const auto fetch = test.start(upload(body, 6), recorder);
  for (const char* piece : {"ab", "cd", "ef"}) {
    ASSERT_TRUE(test.run_until([&] { return body.suspended; }));
    test.drain();
    // A slow client is not a slow origin.
    test.pass(1000ms);
    test.pass(1000ms);
    ASSERT_FALSE(recorder.done);
    body.add(piece);
    ASSERT_TRUE(test.run_until([&] { return origin.at_checkpoint() == 1; }));
    origin.release();
    ASSERT_TRUE(test.run_until([&] { return origin.at_checkpoint() == 0; }));
  }
  ASSERT_TRUE(test.run_until([&] { return recorder.done.has_value(); }));
  EXPECT_EQ(summary(recorder), kOkSummary);
}

TEST(OriginBody, SendsMuch) {
  constexpr std::size_t kPieces = 64;
  ScriptedOrigin origin(answer_always(kOk));
  OriginClientTest test({origin.url()});
  for (const bool known : {true, false}) {
    Pieces body(test.io);
    std::string all;
    for (std::size_t i = 0; i < kPieces; ++i) {
      std::string piece(100'000 + i, static_cast<char>('a' + i % 26));
      all += piece;
      body.add(std::move(piece));
    }
    body.end();
    EXPECT_EQ(
        test.fetch(upload(body, known ? std::optional<std::uint64_t>(all.size()) : std::nullopt)),
        kOkSummary);
    const auto requests = origin.requests();
    if (known) {
      EXPECT_TRUE(requests.back().ends_with("\r\n\r\n" + all));
    } else {
      EXPECT_GT(requests.back().size(), all.size());
    }
  }
}

TEST(OriginBody, FailsWithItsSource) {
  struct Case {
    const char* name;
    std::optional<std::uint64_t> length;
    void (*feed)(Pieces&);
  };
  const std::vector<Case> cases{
      {"fails at once", 5, [](Pieces& body) { body.fail(); }},
      {"ends early", 5,
       [](Pieces& body) {
         body.add("abc");
         body.end();
       }},
      {"is too long", 5, [](Pieces& body) { body.add("abcdef"); }},
      {"is too long in the end", 5,
       [](Pieces& body) {
         body.add("abc");
         body.add("def");
       }},
      {"fails in chunks", std::nullopt, [](Pieces& body) { body.fail(); }},
  };
  for (const auto& [name, length, feed] : cases) {
    ScriptedOrigin origin([](OriginConnection& connection) { connection.wait_for_close(); });
    OriginClientTest test({origin.url()});
    Pieces body(test.io);
    feed(body);
    EXPECT_EQ(test.fetch(upload(body, length)), "request-body") << name;
    EXPECT_EQ(test.errors(OriginError::RequestBody), 1U);
  }
}

TEST(OriginBody, TakesAnAnswerThatComesBeforeTheBodyWasRead) {
  struct Case {
    std::string answer, expected;
  };
  const std::vector<Case> cases{
      {"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno",
       "none 413 Too Large [Content-Length=2|] no"},
      {"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
       "none 413 Too Large [Content-Length=2|Connection=close|] no"},
      {"HTTP/1.1 413 Too Large\r\n\r\nno", "none 413 Too Large [] no"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
       "none 200 OK [Content-Length=2|Connection=close|] no"},
      {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nno", "none 200 OK [Connection=close|] no"},
  };
  for (const auto& [answer, expected] : cases) {
    // The body that is not read is still to come, or already there.
    for (const bool is_there : {false, true}) {
      ScriptedOrigin origin([&](OriginConnection& connection) {
        connection.read_head();
        connection.send(answer);
        connection.finish_sending();
        connection.checkpoint();
      });
      OriginClientTest test({origin.url()});
      Pieces body(test.io);
      if (is_there)
        for (int i = 0; i < 64; ++i) body.add(std::string(1'000'000, 'x'));
      Recorder recorder;
      const auto fetch = test.start(upload(body, 64'000'000), recorder);
      EXPECT_TRUE(test.run_until([&] {
        test.pass(std::chrono::milliseconds(0));
        return recorder.done.has_value();
      }));
      EXPECT_EQ(summary(recorder), expected) << is_there;
      EXPECT_TRUE(test.run_until([&] { return !body.suspended; }));
      EXPECT_LT(body.calls, 64U);
    }
  }
}

TEST(OriginBody, IsContentWithAWholeAnswerWhenTheBodyIsNeverRead) {
  ScriptedOrigin origin([&](OriginConnection& connection) {
    connection.read_head();
    connection.send(kOk);
    connection.checkpoint();
  });
  OriginClientTest test({origin.url()});
  Pieces body(test.io);
  for (int i = 0; i < 64; ++i) body.add(std::string(1'000'000, 'x'));
  Recorder recorder;
  const auto fetch = test.start(upload(body, 64'000'000), recorder);
  ASSERT_TRUE(test.run_until([&] { return recorder.body == "ok"; }));
  EXPECT_TRUE(test.run_until([&] {
    test.pass(test.settings.idle_timeout);
    return recorder.done.has_value();
  }));
  EXPECT_EQ(summary(recorder), kOkSummary);
}

OriginRequest hesitant(BodySource& body, std::optional<std::uint64_t> length) {
  OriginRequest request = upload(body, length);
  request.expects_continue = true;
  return request;
}

TEST(OriginBody, WaitsForTheOriginsContinue) {
  for (const bool known : {true, false}) {
    std::string head;
    ScriptedOrigin origin([&](OriginConnection& connection) {
      head = connection.read_head();
      connection.checkpoint();
      connection.send("HTTP/1.1 100 Continue\r\n\r\n");
      for (std::string got; got.find("hello") == std::string::npos;) got += connection.read_some();
      connection.send(kOk);
      connection.wait_for_close();
    });
    OriginClientTest test({origin.url()});
    Pieces body(test.io);
    body.add("hello");
    body.end();
    Recorder recorder;
    const auto fetch = test.start(
        hesitant(body, known ? std::optional<std::uint64_t>(5) : std::nullopt), recorder);
    ASSERT_TRUE(test.run_until([&] { return origin.at_checkpoint() == 1; }));
    test.drain();
    EXPECT_EQ(body.calls, 0U);
    origin.release();
    ASSERT_TRUE(test.run_until([&] { return recorder.done.has_value(); }));
    EXPECT_EQ(summary(recorder), kOkSummary);
    EXPECT_NE(head.find("Expect: 100-continue\r\n"), std::string::npos) << head;
  }
}

TEST(OriginBody, SendsUnaskedWhenTheOriginNeverSaysContinue) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    connection.read_head();
    connection.checkpoint();
    for (std::string got; got.size() < 5;) got += connection.read_some();
    connection.send(kOk);
    connection.wait_for_close();
  });
  OriginClientTest test({origin.url()});
  Pieces body(test.io);
  body.add("hello");
  Recorder recorder;
  const auto fetch = test.start(hesitant(body, 5), recorder);
  ASSERT_TRUE(test.run_until([&] { return origin.at_checkpoint() == 1; }));
  ASSERT_TRUE(test.run_until([&] {  // once the head is out
    test.pass(0ms);
    test.drain();
    test.pass(kContinuePatience - 1ms);
    test.drain();
    return body.calls == 0;
  }));
  test.pass(1ms);
  test.drain();
  EXPECT_EQ(body.calls, 1U);
  origin.release();
  ASSERT_TRUE(test.run_until([&] { return recorder.done.has_value(); }));
  EXPECT_EQ(summary(recorder), kOkSummary);
}

TEST(OriginBody, NeverAsksForABodyThatWasRefused) {
  struct Case {
    std::string answer, expected;
  };
  for (const auto& [answer, expected] : std::vector<Case>{
           {"HTTP/1.1 417 No\r\nContent-Length: 2\r\n\r\nno", "none 417 No [Content-Length=2|] no"},
           {"HTTP/1.1 413 Large\r\nContent-Length: 2\r\n\r\nno",
            "none 413 Large [Content-Length=2|] no"},
           {"HTTP/1.1 401 Who\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
            "none 401 Who [Transfer-Encoding=chunked|] no"},
           {"HTTP/1.1 303 There\r\nContent-Length: 0\r\n\r\n",
            "none 303 There [Content-Length=0|] "},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            "none 200 OK [Transfer-Encoding=chunked|] ok"},
           {kOk, kOkSummary}}) {
    for (const bool known : {true, false}) {
      ScriptedOrigin origin([&](OriginConnection& connection) {
        if (connection.number() > 0) return answer_always(kOk)(connection);
        connection.read_head();
        connection.send(answer);
        connection.wait_for_close();
      });
      OriginClientTest test({origin.url()});
      Pieces body(test.io);
      EXPECT_EQ(test.fetch(hesitant(body, known ? std::optional<std::uint64_t>(5) : std::nullopt)),
                expected);
      EXPECT_EQ(body.calls, 0U) << answer;
      EXPECT_EQ(test.fetch("/next"), kOkSummary);
      EXPECT_EQ(origin.connections(), 2U) << "that connection is not used again: " << answer;
    }
  }
}

TEST(OriginBody, TakesAHeadRequestWithABody) {
  ScriptedOrigin origin(answer_always("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"));
  OriginClientTest test({origin.url()});
  Pieces body(test.io);
  body.add("abc");
  OriginRequest request = upload(body, 3);
  request.method = "HEAD";
  EXPECT_EQ(test.fetch(std::move(request)), "none 200 OK [Content-Length=99|] ");
}

TEST(OriginBody, LeavesTheSourceAloneAfterTheFetch) {
  ScriptedOrigin origin([](OriginConnection& connection) { connection.wait_for_close(); });
  OriginClientTest test({origin.url()});
  auto body = std::make_unique<Pieces>(test.io);
  Recorder recorder;
  auto fetch = test.start(upload(*body, 5), recorder);
  ASSERT_TRUE(test.run_until([&] { return body->suspended; }));
  fetch.reset();
  ASSERT_TRUE(test.run_until([&] { return body->cancelled; }));
  EXPECT_EQ(body->calls, 1U);
  body.reset();
  test.drain();
  EXPECT_FALSE(recorder.done);
}

TEST(OriginBody, NeverAsksTheSourceWithoutAConnection) {
  OriginClientTest test({"http://127.0.0.1:" + std::to_string(secondsight::test::refusing_port())});
  Pieces body(test.io);
  body.add("abc");
  EXPECT_EQ(test.fetch(upload(body, 3)), "unreachable");
  EXPECT_EQ(body.calls, 0U);
}

}  // namespace
}  // namespace secondsight::proxy::test
