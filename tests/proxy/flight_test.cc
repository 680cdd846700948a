#include <gtest/gtest.h>

#include "tests/proxy/flight_fixture.h"

namespace secondsight::proxy::test {
namespace {

using namespace literals;
using std::chrono::seconds;
using Clients = std::vector<std::unique_ptr<RawClient>>;

void always(Settings& s) {
  s.admission.policy = PolicyName::Always;
}

/// The disk is large enough for parts of 1 MiB.
void large_disk(Settings& s) {
  s.cache.disk_bytes = 256_MiB;
}

TEST(Flight, OneFetchServesAllWhoAskAtTheSameTime) {
  const std::string body = body_of(100'000);
  ScriptedOrigin origin(answer_when_released(ok(kFresh, body)));
  RunningProxy proxy(origin.url());
  Clients clients;
  for (int i = 0; i < 8; ++i) clients.push_back(ask(proxy, "/a"));
  ASSERT_TRUE(collapsed(proxy, 7));
  origin.release();
  int sharing = 0;
  for (const auto& client : clients) {
    const RawResponse response = client->read_response();
    EXPECT_TRUE(response.whole);
    EXPECT_EQ(response.body, body);
    if (says(response, "collapsed")) ++sharing;
  }
  EXPECT_EQ(sharing, 7) << "all but the one who started it";
  EXPECT_EQ(origin.requests().size(), 1U);
  proxy.drain();
  EXPECT_EQ(proxy.metric("secondsight_index_objects"), 1)
      << "the second of them was the second sighting";
}

TEST(Flight, NobodyFetchesWhatLandedBetweenTheLookUpAndTheTakeOff) {
  constexpr std::size_t kKeys = 150;
  for (const std::uint64_t memory_bytes : {std::uint64_t{0}, 4_MiB}) {
    ScriptedOrigin origin(secondsight::test::answer_always(ok(kFresh, "hello")));
    RunningProxy proxy(origin.url(), [&](Settings& s) {
      always(s);
      s.cache.memory_bytes = memory_bytes;
    });
    for (std::size_t key = 0; key < kKeys; ++key) {
      Clients clients;
      for (int i = 0; i < 6; ++i) clients.push_back(ask(proxy, "/" + std::to_string(key)));
      for (const auto& client : clients) EXPECT_EQ(client->read_response().body, "hello");
    }
    EXPECT_EQ(origin.requests().size(), kKeys);
  }
}

TEST(Flight, TwoFirstRequestsAtOnceAreAdmittedFromTheFlightsOwnBytes) {
  for (const std::uint64_t memory_bytes : {std::uint64_t{0}, 4_MiB}) {
    ScriptedOrigin origin(answer_when_released(ok(kFresh, "hello")));
    RunningProxy proxy(origin.url(), [&](Settings& s) { s.cache.memory_bytes = memory_bytes; });
    const auto one = ask(proxy, "/a");
    const auto two = ask(proxy, "/a");
    ASSERT_TRUE(collapsed(proxy, 1));
    origin.release();
    EXPECT_EQ(one->read_response().body, "hello");
    EXPECT_EQ(two->read_response().body, "hello");
    proxy.drain();
    EXPECT_EQ(proxy.metric("secondsight_index_objects"), 1);
    EXPECT_TRUE(says(proxy.get("/a"), "hit"));
    EXPECT_EQ(origin.requests().size(), 1U);
  }
}

TEST(Flight, GoesOnWhenTheOneWhoStartedItLeavesBeforeTheHead) {
  ScriptedOrigin origin(answer_when_released(ok(kFresh, "hello")));
  RunningProxy proxy(origin.url());
  const auto leader = ask(proxy, "/a");
  ASSERT_TRUE(eventually([&] { return origin.at_checkpoint() == 1; }));
  const auto two = ask(proxy, "/a");
  const auto three = ask(proxy, "/a");
  ASSERT_TRUE(collapsed(proxy, 2));
  leader->reset();
  origin.release();
  EXPECT_EQ(two->read_response().body, "hello");
  EXPECT_EQ(three->read_response().body, "hello");
  EXPECT_TRUE(says(proxy.get("/a"), "hit"));
  EXPECT_EQ(origin.requests().size(), 1U);
}

/// Sends a head and the first half of a body, and the other half when released.
ScriptedOrigin::Script two_halves(std::string head, std::string body, std::size_t first_bytes) {
  return [=](OriginConnection& connection) {
    if (connection.read_request().empty()) return;
    connection.send(head + body.substr(0, first_bytes));
    connection.checkpoint();
    connection.send(body.substr(first_bytes));
    connection.wait_for_close();
  };
}

TEST(Flight, GoesOnWhenTheOneWhoStartedItLeavesInTheBody) {
  const std::string body = body_of(400'000);
  for (const bool others : {true, false}) {
    ScriptedOrigin origin(two_halves(head_of(body.size(), kFresh), body, 200'000));
    RunningProxy proxy(origin.url());
    const auto leader = ask(proxy, "/a");
    EXPECT_EQ(leader->read_until("\r\n\r\n").substr(0, 12), "HTTP/1.1 200");
    std::unique_ptr<RawClient> other;
    if (others) {
      other = ask(proxy, "/a");
      ASSERT_TRUE(collapsed(proxy, 1));
    }
    leader->reset();
    origin.release();
    if (other) {
      EXPECT_EQ(other->read_response().body, body);
    }
    ASSERT_TRUE(eventually([&] { return proxy.metric("secondsight_memory_objects") == 1; }));
    const RawResponse later = proxy.get("/a");
    EXPECT_TRUE(says(later, "hit"));
    EXPECT_EQ(later.body, body);
    EXPECT_EQ(origin.requests().size(), 1U);
  }
}

TEST(Flight, ASlowReaderOfAWholeBodyHoldsNobodyUp) {
  const std::string body = body_of(1'900'000);
  ScriptedOrigin origin(answer_when_released(ok(kFresh, body)));
  RunningProxy proxy(origin.url(), [](Settings& s) { s.cache.memory_bytes = 64_MiB; });
  const auto slow = ask(proxy, "/a", {}, kSlow);
  const auto fast = ask(proxy, "/a");
  ASSERT_TRUE(collapsed(proxy, 1));
  origin.release();
  const RawResponse whole = fast->read_response();
  EXPECT_TRUE(whole.whole);
  EXPECT_EQ(whole.body, body);
  EXPECT_EQ(slow->read_response().body, body);
}

TEST(Flight, ASlowReaderOfAFillReadsBehindItFromDisk) {
  const std::string body = body_of(32_MiB);
  for (const bool leader_is_slow : {true, false}) {
    ScriptedOrigin origin(answer_when_released(ok(kFresh, body)));
    RunningProxy proxy(origin.url(), [](Settings& s) {
      always(s);
      large_disk(s);
    });
    const auto leader = ask(proxy, "/a", {}, leader_is_slow ? kSlow : 0);
    ASSERT_TRUE(eventually([&] { return origin.at_checkpoint() == 1; }));
    const auto other = ask(proxy, "/a", {}, leader_is_slow ? 0 : kSlow);
    ASSERT_TRUE(collapsed(proxy, 1));
    origin.release();
    RawClient& fast = leader_is_slow ? *other : *leader;
    RawClient& slow = leader_is_slow ? *leader : *other;
    const RawResponse whole = fast.read_response();
    EXPECT_TRUE(whole.whole);
    EXPECT_TRUE(whole.body == body);
    const RawResponse late = slow.read_response();
    EXPECT_TRUE(late.whole);
    EXPECT_TRUE(late.body == body);
    proxy.drain();
    EXPECT_EQ(proxy.metric("secondsight_index_objects"), 1);
    EXPECT_EQ(proxy.metric("secondsight_writer_queue_bytes"), 0);
    EXPECT_TRUE(eventually([&] { return proxy.metric("secondsight_flights") == 0; }));
    EXPECT_TRUE(proxy.get("/a").body == body);
    EXPECT_EQ(origin.requests().size(), 1U);
  }
}

TEST(Flight, WhoComesLateToAFillGetsTheWhole) {
  const std::string body = body_of(8_MiB);
  ScriptedOrigin origin(two_halves(head_of(body.size(), kFresh), body, 5_MiB));
  RunningProxy proxy(origin.url(), [](Settings& s) {
    always(s);
    large_disk(s);
  });
  const auto first = ask(proxy, "/a");
  const std::string head = first->read_until("\r\n\r\n");
  EXPECT_TRUE(first->read_exactly(4_MiB) == body.substr(0, 4_MiB));
  const auto late = ask(proxy, "/a");
  ASSERT_TRUE(collapsed(proxy, 1));
  origin.release();
  EXPECT_TRUE(first->read_exactly(4_MiB) == body.substr(4_MiB));
  const RawResponse whole = late->read_response();
  EXPECT_TRUE(whole.whole);
  EXPECT_TRUE(whole.body == body);
}

TEST(Flight, ALargeFirstSightingKeepsTheOriginWaitingAndNobodyElse) {
  const std::string body = body_of(48_MiB);
  std::vector<std::atomic<std::size_t>> sent(2);
  ScriptedOrigin origin([&](OriginConnection& connection) {
    if (connection.read_request().empty()) return;
    connection.send(head_of(body.size(), kFresh));
    for (std::size_t at = 0; at < body.size(); at += 64_KiB) {
      if (!connection.send(std::string_view(body).substr(at, 64_KiB))) return;
      sent.at(connection.number()) += 64_KiB;
    }
    connection.wait_for_close();
  });
  RunningProxy proxy(origin.url(), large_disk);
  const auto slow = ask(proxy, "/a", {}, kSlow);
  const std::string head = slow->read_until("\r\n\r\n");
  EXPECT_NE(head.find("detail=first-sighting"), std::string::npos) << head;
  EXPECT_EQ(head.find("stored"), std::string::npos) << head;
  const RawResponse second = proxy.get("/a");
  EXPECT_TRUE(says(second, "stored; detail=repeat")) << second.field("Cache-Status");
  EXPECT_FALSE(says(second, "collapsed"));
  EXPECT_TRUE(second.body == body);
  // What lies between is the kernel's buffers of two connections and the flight's.
  EXPECT_LT(sent[0], 24_MiB) << "the origin was read ahead of the only reader";
  EXPECT_TRUE(slow->read_exactly(body.size()) == body);
  EXPECT_EQ(origin.requests().size(), 2U);
  proxy.drain();
  EXPECT_EQ(proxy.metric("secondsight_index_objects"), 1);
}

TEST(Flight, BodiesOfUnknownLengthAreKeptLikeOthers) {
  const std::string small = body_of(20'000);
  const std::string large = body_of(2_MiB);
  for (const bool is_chunked : {true, false}) {
    const auto answer = [&](const std::string& body) {
      return is_chunked ? chunked_head(kFresh) + chunked(body, 5'000)
                        : "HTTP/1.1 200 OK\r\n" + std::string(kFresh) + "\r\n" + body;
    };
    ScriptedOrigin origin([&](OriginConnection& connection) {
      const std::string request = connection.read_request();
      if (!request.empty()) connection.send(answer(request.starts_with("GET /s") ? small : large));
    });
    RunningProxy proxy(origin.url());
    EXPECT_EQ(proxy.get("/s").body, small);
    const RawResponse hit = proxy.get("/s");
    EXPECT_TRUE(says(hit, "hit"));
    EXPECT_EQ(hit.body, small);

    const RawResponse passed = proxy.get("/l");
    EXPECT_TRUE(says(passed, "detail=first-sighting"));
    EXPECT_TRUE(passed.whole);
    EXPECT_TRUE(passed.body == large);
    proxy.drain();
    EXPECT_EQ(proxy.metric("secondsight_index_objects"), 1) << "the small one";
    EXPECT_TRUE(proxy.get("/l").body == large);
    proxy.drain();
    EXPECT_EQ(proxy.metric("secondsight_index_objects"), 2);
    const RawResponse stored = proxy.get("/l");
    EXPECT_TRUE(says(stored, "hit"));
    EXPECT_TRUE(stored.body == large);
  }
}

TEST(Flight, ABodyThatOutgrowsWhatMayBeKeptIsPassedOn) {
  struct Row {
    std::uint64_t max_object, bytes;
  };
  // Within memory, in a fill, and more than half of the disk.
  for (const Row& row : {Row{50'000, 100'000}, Row{1_MiB, 3_MiB}, Row{1_GiB, 10_MiB}}) {
    SCOPED_TRACE(row.bytes);
    const std::string body = body_of(row.bytes);
    ScriptedOrigin origin([&](OriginConnection& connection) {
      while (!connection.read_request().empty())
        connection.send(chunked_head(kFresh) + chunked(body, 10'000));
    });
    RunningProxy proxy(origin.url(), [&](Settings& s) {
      always(s);
      s.cache.max_object = row.max_object;
      s.cache.disk_bytes = 16_MiB;
    });
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(proxy.get("/a").body == body);
    EXPECT_EQ(origin.requests().size(), 2U);
    proxy.drain();
    EXPECT_EQ(proxy.metric("secondsight_index_objects"), 0);
    EXPECT_EQ(proxy.metric("secondsight_memory_objects"), 0);
    EXPECT_EQ(proxy.metric("secondsight_writer_queue_bytes"), 0);
  }
}

TEST(Flight, ABodyInTinyPiecesCostsItsBytes) {
  for (const std::size_t bytes : {std::size_t{200'000}, std::size_t{3'000'000}}) {
    const std::string body = body_of(bytes);
    const std::string framed = chunked_head(kFresh) + chunked(body, 3);
    ScriptedOrigin origin([&](OriginConnection& connection) {
      if (!connection.read_request().empty()) connection.send(framed);
    });
    RunningProxy proxy(origin.url(), always);
    EXPECT_TRUE(proxy.get("/a").body == body);
    proxy.drain();
    EXPECT_EQ(proxy.metric("secondsight_index_objects"), 1);
    if (proxy.metric("secondsight_memory_objects") == 1) {
      EXPECT_LT(proxy.metric("secondsight_memory_bytes"), static_cast<double>(bytes) * 1.1);
    } else {
      EXPECT_GT(bytes, 1_MiB) << "the small one has to be in memory";
    }
    EXPECT_TRUE(proxy.get("/a").body == body);
    EXPECT_EQ(origin.requests().size(), 1U);
  }
}

TEST(Flight, WhatOutgrowsMemoryIsNotFetchedForNobody) {
  const std::string piece = chunked(body_of(64_KiB), 64_KiB).substr(0, 7 + 64_KiB + 2);
  std::atomic<bool> was_given_up{false};
  ScriptedOrigin origin([&](OriginConnection& connection) {
    if (connection.read_request().empty()) return;
    connection.send(chunked_head(kFresh) + piece);
    connection.checkpoint();
    while (connection.send(piece)) {
    }  // a stream without an end
    was_given_up = true;
  });
  RunningProxy proxy(origin.url());
  const auto client = ask(proxy, "/a");
  EXPECT_NE(client->read_until("\r\n\r\n"), "");
  client->reset();
  origin.release();
  EXPECT_TRUE(eventually([&] { return was_given_up.load(); }));
}

TEST(Flight, ATruncatedChunkedBodyIsNeverKept) {
  for (const std::size_t bytes : {std::size_t{3'000}, std::size_t{2'000'000}}) {
    std::string framed = chunked_head(kFresh) + chunked(body_of(bytes), 1'000);
    framed.resize(framed.size() - 5);  // the last chunk
    ScriptedOrigin origin([&](OriginConnection& connection) {
      if (!connection.read_request().empty()) connection.send(framed);
    });
    RunningProxy proxy(origin.url(), always);
    for (int i = 0; i < 2; ++i) EXPECT_FALSE(proxy.get("/a").whole);
    proxy.drain();
    EXPECT_EQ(proxy.metric("secondsight_index_objects"), 0);
    EXPECT_EQ(proxy.metric("secondsight_memory_objects"), 0);
    EXPECT_EQ(proxy.metric("secondsight_writer_queue_bytes"), 0);
  }
}

TEST(Flight, WhatMayNotBeSharedIsNotQueuedUp) {
  constexpr std::size_t kHerd = 20;
  ScriptedOrigin origin(answer_when_released(ok("Cache-Control: no-store\r\n", "mine")));
  RunningProxy proxy(origin.url());
  Clients clients;
  for (std::size_t i = 0; i < kHerd; ++i) clients.push_back(ask(proxy, "/a"));
  ASSERT_TRUE(collapsed(proxy, kHerd - 1));
  EXPECT_EQ(origin.at_checkpoint(), 1U);
  origin.release();
  EXPECT_TRUE(eventually([&] { return origin.at_checkpoint() == kHerd - 1; }))
      << "all the others at once";
  release(origin, kHerd - 1);
  for (const auto& client : clients) EXPECT_EQ(client->read_response().body, "mine");
  EXPECT_EQ(origin.requests().size(), kHerd);
}

TEST(Flight, EachGetsTheVariantItAskedFor) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    for (;;) {
      const std::string request = connection.read_request();
      if (request.empty()) return;
      const auto at = request.find("Accept-Language: ") + 17;
      connection.checkpoint();
      connection.send(ok("Cache-Control: max-age=60\r\nVary: Accept-Language\r\n",
                         "in " + request.substr(at, 2)));
    }
  });
  RunningProxy proxy(origin.url());
  const std::vector<std::string> languages = {"de", "en", "fr", "de", "en", "fr"};
  Clients clients;
  for (const auto& language : languages)
    clients.push_back(ask(proxy, "/v", "Accept-Language: " + language + "\r\n"));
  ASSERT_TRUE(collapsed(proxy, 5));
  origin.release();
  EXPECT_TRUE(eventually([&] { return origin.at_checkpoint() == 2; })) << "one fetch a variant";
  release(origin, 2);
  for (std::size_t i = 0; i < clients.size(); ++i)
    EXPECT_EQ(clients[i]->read_response().body, "in " + languages[i]);
  EXPECT_EQ(origin.requests().size(), 3U);
}

TEST(Flight, WhatAnUnsafeRequestOvertakesIsNotKept) {
  struct Row {
    const char* what;
    const char* vary;
    const char* more;  // of the request that is overtaken
    std::size_t bytes;
    bool in_the_body;  // or before the head
  };
  for (const Row& row :
       {Row{"shared", "", "", 10, false}, Row{"shared, in the body", "", "", 10'000, true},
        Row{"of a known variant", "Vary: A\r\n", "A: 1\r\n", 10, false},
        Row{"alone", "", "Cache-Control: no-cache\r\n", 10, false},
        Row{"a fill", "", "", 3'000'000, true}}) {
    SCOPED_TRACE(row.what);
    const std::string old_body = body_of(row.bytes, 1);
    const std::string new_body = body_of(row.bytes, 2);
    const std::string fields = "Cache-Control: max-age=60\r\n" + std::string(row.vary);
    std::atomic<int> gets{0};
    ScriptedOrigin origin([&](OriginConnection& connection) {
      for (;;) {
        const std::string request = connection.read_request();
        if (request.empty()) return;
        if (request.starts_with("POST")) {
          connection.send(ok("", "done"));
        } else if (request.find("A: 2") != std::string::npos) {
          connection.send(ok(fields, "other"));  // makes the resource known to vary
        } else if (gets++ > 0) {
          connection.send(ok(fields, new_body));
        } else {
          const std::string answer = ok(fields, old_body);
          const std::size_t first = row.in_the_body ? answer.size() / 2 : 0;
          connection.send(answer.substr(0, first));
          connection.checkpoint();
          connection.send(answer.substr(first));
        }
      }
    });
    RunningProxy proxy(origin.url(), [](Settings& s) {
      always(s);
      large_disk(s);
    });
    if (*row.vary != '\0') proxy.get("/a", "A: 2\r\n");
    const auto overtaken = ask(proxy, "/a", row.more);
    std::string head;
    if (row.in_the_body) head = overtaken->read_until("\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return origin.at_checkpoint() == 1; }));
    EXPECT_EQ(proxy.send("POST", "/a", {}, "x").body, "done");
    EXPECT_TRUE(proxy.get("/a", row.more).body == new_body) << "joined what began before";
    origin.release();
    if (row.in_the_body) {
      EXPECT_TRUE(overtaken->read_exactly(row.bytes) == old_body);
    } else {
      EXPECT_TRUE(overtaken->read_response().body == old_body);
    }
    ASSERT_TRUE(eventually([&] { return proxy.metric("secondsight_flights") == 0; }));
    proxy.drain();
    const std::string_view plain = std::string_view(row.more).starts_with("Cache") ? "" : row.more;
    EXPECT_TRUE(proxy.get("/a", plain).body == new_body);
    EXPECT_EQ(proxy.metric("secondsight_writer_queue_bytes"), 0);
  }
}

TEST(Flight, AllReadersAreCutWhenTheOriginDiesInTheBody) {
  const std::string body = body_of(8_MiB);
  for (const std::size_t bytes : {std::size_t{300'000}, std::size_t{8_MiB}}) {
    ScriptedOrigin origin([&](OriginConnection& connection) {
      if (connection.read_request().empty()) return;
      connection.checkpoint();
      connection.send(head_of(bytes, kFresh) + body.substr(0, bytes / 2));
    });
    RunningProxy proxy(origin.url(), [](Settings& s) {
      always(s);
      large_disk(s);
    });
    Clients clients;
    for (int i = 0; i < 4; ++i) clients.push_back(ask(proxy, "/a", {}, i == 0 ? kSlow : 0));
    ASSERT_TRUE(collapsed(proxy, 3));
    origin.release();
    for (const auto& client : clients) {
      const RawResponse response = client->read_response();
      EXPECT_EQ(response.status, 200);
      EXPECT_FALSE(response.whole);
      EXPECT_TRUE(body.starts_with(response.body));
    }
    proxy.drain();
    EXPECT_EQ(proxy.metric("secondsight_index_objects"), 0);
    EXPECT_EQ(proxy.metric("secondsight_memory_objects"), 0);
    EXPECT_EQ(proxy.metric("secondsight_writer_queue_bytes"), 0);
    EXPECT_EQ(proxy.metric("secondsight_flights"), 0);
  }
}

TEST(Flight, StaleRequestsShareOneValidation) {
  for (const bool is_modified : {false, true}) {
    ScriptedOrigin origin([&](OriginConnection& connection) {
      for (;;) {
        const std::string request = connection.read_request();
        if (request.empty()) return;
        const bool conditional = request.find("If-None-Match: \"v1\"") != std::string::npos;
        if (conditional) connection.checkpoint();
        connection.send(!conditional ? ok("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", "old")
                        : is_modified
                            ? ok("Cache-Control: max-age=60\r\nETag: \"v2\"\r\n", "new")
                            : "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nETag: "
                              "\"v1\"\r\n\r\n");
      }
    });
    RunningProxy proxy(origin.url());
    proxy.get("/a");
    proxy.clock.advance(seconds{61});
    Clients clients;
    for (int i = 0; i < 6; ++i) clients.push_back(ask(proxy, "/a"));
    ASSERT_TRUE(collapsed(proxy, 5));
    origin.release();
    for (const auto& client : clients)
      EXPECT_EQ(client->read_response().body, is_modified ? "new" : "old");
    EXPECT_EQ(origin.requests().size(), 2U);
    EXPECT_TRUE(says(proxy.get("/a"), "hit"));
  }
}

TEST(Flight, AValidatedObjectIsWrittenOnceWithItsNewHead) {
  RoutedOrigin origin;
  origin.on("/a", [](const std::string& request) -> std::string {
    if (request.find("If-None-Match") != std::string::npos)
      return "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: max-age=600\r\n\r\n";
    return ok("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", "hello");
  });
  RunningProxy proxy(origin.url());
  proxy.get("/a");
  proxy.clock.advance(seconds{61});
  EXPECT_TRUE(says(proxy.get("/a"), "stored")) << "its second sighting";
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(says(proxy.get("/a"), "stored"));
  proxy.drain();
  EXPECT_EQ(proxy.metric("secondsight_objects_written_total"), 1);
  proxy.restart();
  proxy.clock.advance(seconds{100});
  EXPECT_TRUE(says(proxy.get("/a"), "hit")) << "the new head was written";
}

TEST(Flight, WhatGoesOnBehindAStaleAnswerIsAPlainRequest) {
  struct Row {
    const char* method;
    const char* more;
    const char* body;
    bool fetches;
  };
  for (const Row& row :
       {Row{"GET", "", "", true}, Row{"GET", "Range: bytes=0-0\r\n", "", true},
        Row{"GET", "If-None-Match: \"x\"\r\n", "", true}, Row{"GET", "", "with a body", false},
        Row{"HEAD", "", "", false}, Row{"GET", "Authorization: a\r\n", "", false},
        Row{"GET", "Cache-Control: no-store\r\n", "", false}}) {
    SCOPED_TRACE(std::string(row.method) + " " + row.more + row.body);
    RoutedOrigin origin;
    origin.on("/a", ok("Cache-Control: max-age=10, stale-while-revalidate=60\r\n", "old"));
    RunningProxy proxy(origin.url());
    proxy.get("/a");
    proxy.clock.advance(seconds{20});
    origin.on("/a", ok(kFresh, "new"));
    EXPECT_LT(proxy.send(row.method, "/a", row.more, row.body).status, 300);
    if (row.fetches) {
      EXPECT_TRUE(eventually([&] { return origin.count("/a") == 2; }));
      for (const std::string& request : origin.requests()) {
        EXPECT_EQ(request.find("Range"), std::string::npos);
        EXPECT_EQ(request.find("If-None-Match"), std::string::npos);
      }
    }
    EXPECT_TRUE(eventually([&] { return proxy.get("/a").body == "new"; }));
    EXPECT_EQ(origin.count("/a"), 2U) << "one fetch, by this request or by the next";
  }
}

TEST(Flight, OneFetchGoesOnBehindAllStaleAnswers) {
  std::atomic<int> requests{0};
  ScriptedOrigin origin([&](OriginConnection& connection) {
    while (!connection.read_request().empty()) {
      if (requests++ == 0) {
        connection.send(ok("Cache-Control: max-age=10, stale-while-revalidate=60\r\n", "old"));
        continue;
      }
      connection.checkpoint();
      connection.send(ok(kFresh, "new"));
    }
  });
  RunningProxy proxy(origin.url());
  proxy.get("/a");
  proxy.clock.advance(seconds{20});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(proxy.get("/a").body, "old");
  ASSERT_TRUE(eventually([&] { return origin.at_checkpoint() == 1; }));
  EXPECT_EQ(origin.requests().size(), 2U);
  origin.release();
  EXPECT_TRUE(eventually([&] { return proxy.get("/a").body == "new"; }));
  EXPECT_EQ(origin.requests().size(), 2U);
}

}  // namespace
}  // namespace secondsight::proxy::test
