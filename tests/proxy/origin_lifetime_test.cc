#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/proxy/origin_fixture.h"

namespace secondsight::proxy::test {
namespace {

using Flow = OriginReceiver::Flow;
using secondsight::test::answer_always;

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const std::string kOkSummary = "none 200 OK [Content-Length=2|] ok";

// Answers "/" in three pieces, each let go by the test; everything else at once.
void in_pieces(OriginConnection& connection) {
  while (true) {
    const std::string request = connection.read_request();
    if (request.empty()) return;
    if (!request.starts_with("GET / ")) {
      connection.send(kOk);
      continue;
    }
    for (const char* piece : {"HTTP/1.1 200 OK\r\n", "Content-Length: 2\r\n\r\n", "o", "k"}) {
      connection.send(piece);
      connection.checkpoint();
    }
  }
}

// The client still works, and by a connection of its own: the cancelled one was not pooled.
void expect_usable(OriginClientTest& test) {
  EXPECT_EQ(test.fetch("/other"), kOkSummary);
}

TEST(OriginLifetime, IsDestroyedBeforeAnythingHappened) {
  ScriptedOrigin origin(in_pieces);
  OriginClientTest test({origin.url()});
  Recorder recorder;
  test.get("/", recorder).reset();
  test.drain();
  EXPECT_FALSE(recorder.head || recorder.done);
  EXPECT_EQ(test.errors(OriginError::Cancelled), 1U);
  EXPECT_EQ(origin.connections(), 0U);
  expect_usable(test);
}

TEST(OriginLifetime, IsDestroyedBetweenAnyTwoSteps) {
  for (int pieces = 1; pieces <= 3; ++pieces) {
    ScriptedOrigin origin(in_pieces);
    OriginClientTest test({origin.url()});
    Recorder recorder;
    auto fetch = test.get("/", recorder);
    for (int piece = 0; piece < pieces; ++piece) {
      if (piece > 0) origin.release();
      ASSERT_TRUE(test.run_until([&] { return origin.at_checkpoint() == 1; }));
      test.drain();
    }
    fetch.reset();
    const bool had_head = recorder.head.has_value();
    for (int i = 0; i < 4; ++i) origin.release();
    expect_usable(test);
    EXPECT_EQ(recorder.head.has_value(), had_head);
    EXPECT_FALSE(recorder.done);
    EXPECT_EQ(origin.connections(), 2U);
  }
}

TEST(OriginLifetime, IsDestroyedAtEveryTurnOfTheLoop) {
  ScriptedOrigin origin(answer_always(kOk));
  bool finished = false;
  for (int turns = 0; !finished; ++turns) {
    OriginClientTest test({origin.url()});
    Recorder recorder;
    auto fetch = test.get("/", recorder);
    for (int i = 0; i < turns && !recorder.done; ++i) test.io.run_one_for(std::chrono::seconds(10));
    finished = recorder.done.has_value();
    fetch.reset();
    expect_usable(test);
    ASSERT_LT(turns, 1000);
  }
}

TEST(OriginLifetime, IsDestroyedWhileItsNameIsLookedUp) {
  OriginClientTest test({"http://nowhere.invalid"});
  Recorder recorder;
  for (int turns = 0; turns < 4; ++turns) {
    auto fetch = test.get("/", recorder);
    for (int i = 0; i < turns && !recorder.done; ++i) test.io.run_one_for(std::chrono::seconds(10));
    fetch.reset();
  }
  test.drain();
  EXPECT_FALSE(recorder.head);
}

TEST(OriginLifetime, IsDestroyedWhilePaused) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    while (!connection.read_request().empty()) {
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n");
      connection.send(std::string(500'000, 'x'));
    }
  });
  OriginClientTest test({origin.url()});
  for (const bool resumed : {false, true}) {
    Recorder recorder;
    recorder.at_body = [] { return Flow::Pause; };
    auto fetch = test.get("/", recorder);
    ASSERT_TRUE(test.run_until([&] { return recorder.body_bytes > 0; }));
    test.drain();
    if (resumed) fetch->resume();
    fetch.reset();
    const auto before = recorder.body_bytes;
    test.drain();
    EXPECT_EQ(recorder.body_bytes, before);
    EXPECT_FALSE(recorder.done);
  }
}

TEST(OriginLifetime, IsDestroyedInItsOwnCallbacks) {
  ScriptedOrigin origin(answer_always(kOk));
  OriginClientTest test({origin.url()});
  for (const char* where : {"head", "body", "done"}) {
    Recorder recorder;
    std::unique_ptr<OriginFetch> fetch;
    bool called = false;
    const auto destroy = [&] {
      fetch.reset();
      called = true;
    };
    if (where == std::string("head")) recorder.at_head = destroy;
    if (where == std::string("done")) recorder.at_done = destroy;
    if (where == std::string("body"))
      recorder.at_body = [&] {
        destroy();
        return Flow::Pause;
      };
    fetch = test.get("/x", recorder);
    ASSERT_TRUE(test.run_until([&] { return called; })) << where;
    test.drain();
    EXPECT_EQ(recorder.done.has_value(), where == std::string("done")) << where;
    expect_usable(test);
  }
}

TEST(OriginLifetime, StartsAndEndsOthersFromItsCallbacks) {
  ScriptedOrigin origin(answer_always(kOk));
  OriginClientTest test({origin.url()});
  for (const char* where : {"head", "body", "done"}) {
    Recorder first, victim, next, dropped;
    std::unique_ptr<OriginFetch> first_fetch, victim_fetch, next_fetch;
    const auto act = [&] {
      if (next_fetch) return;
      victim_fetch.reset();
      next_fetch = test.get("/next", next);
      test.get("/dropped", dropped).reset();
    };
    if (where == std::string("head")) first.at_head = act;
    if (where == std::string("done")) first.at_done = act;
    if (where == std::string("body"))
      first.at_body = [&] {
        act();
        return Flow::Go;
      };
    first_fetch = test.get("/first", first);
    ASSERT_TRUE(test.run_until([&] { return first.done && next.done; })) << where;
    EXPECT_EQ(summary(first), kOkSummary);
    EXPECT_EQ(summary(next), kOkSummary);
    test.drain();
    EXPECT_FALSE(dropped.head || dropped.done);
  }
  for (const auto& request : origin.requests())
    EXPECT_FALSE(request.starts_with("GET /dropped ")) << request;
}

TEST(OriginLifetime, EndsAnotherThatIsUnderWay) {
  ScriptedOrigin origin(in_pieces);
  OriginClientTest test({origin.url()});
  Recorder victim, other;
  auto victim_fetch = test.get("/", victim);
  ASSERT_TRUE(test.run_until([&] { return origin.at_checkpoint() == 1; }));
  other.at_head = [&] { victim_fetch.reset(); };
  const auto other_fetch = test.get("/other", other);
  ASSERT_TRUE(test.run_until([&] { return other.done.has_value(); }));
  EXPECT_EQ(summary(other), kOkSummary);
  for (int i = 0; i < 4; ++i) origin.release();
  expect_usable(test);
  EXPECT_FALSE(victim.head || victim.done);
}

TEST(OriginLifetime, EndsAnotherFromATimeout) {
  ScriptedOrigin origin([](OriginConnection& connection) { connection.wait_for_close(); });
  OriginClientTest test({origin.url()});
  Recorder first, second;
  auto first_fetch = test.get("/", first);
  auto second_fetch = test.get("/", second);
  std::unique_ptr<OriginFetch> next_fetch;
  Recorder next;
  first.at_done = [&] {
    second_fetch.reset();
    next_fetch = test.get("/", next);
  };
  test.drain();
  test.pass(test.settings.response_timeout);
  EXPECT_EQ(first.done, OriginError::ResponseTimeout);
  EXPECT_FALSE(second.done);
  EXPECT_FALSE(next.done);
}

TEST(OriginLifetime, OutlivesItsClient) {
  ScriptedOrigin origin(in_pieces);
  OriginClientTest test({origin.url()});
  Recorder waiting, fresh;
  const auto waiting_fetch = test.get("/", waiting);
  ASSERT_TRUE(test.run_until([&] { return origin.at_checkpoint() == 1; }));
  const auto fresh_fetch = test.get("/x", fresh);
  test.client.reset();
  test.drain();
  waiting_fetch->resume();
  EXPECT_FALSE(waiting.done || fresh.done);
}

TEST(OriginLifetime, LeavesWaitsBehindThatHarmNobody) {
  ScriptedOrigin origin(in_pieces);
  OriginClientTest test({origin.url()});
  test.fetch("/other");
  Recorder recorder;
  const auto fetch = test.get("/", recorder);
  ASSERT_TRUE(test.run_until([&] { return origin.at_checkpoint() == 1; }));
  test.client.reset();
  // Completions of waits for closed sockets, and of the timer.
  EXPECT_TRUE(test.run_until([&] { return test.io.stopped(); }));
  EXPECT_FALSE(recorder.done);
}

}  // namespace
}  // namespace secondsight::proxy::test
