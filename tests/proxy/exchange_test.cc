#include <array>
#include <string>

#include <gtest/gtest.h>

#include "tests/proxy/running_proxy.h"

namespace secondsight::proxy::test {
namespace {

using namespace literals;
using std::chrono::seconds;

constexpr const char* kFresh = "Cache-Control: max-age=60\r\n";

bool says(const RawResponse& response, std::string_view word) {
  return response.field("Cache-Status").find(word) != std::string::npos;
}

TEST(Exchange, SecondRequestIsServedFromMemoryAndThenWritten) {
  RoutedOrigin origin;
  origin.on("/a", ok(kFresh, "hello"));
  RunningProxy proxy(origin.url());

  const RawResponse first = proxy.get("/a");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "hello");
  EXPECT_EQ(first.field("Cache-Status"),
            "secondsight; fwd=uri-miss; ttl=60; stored; detail=first-sighting");
  EXPECT_EQ(first.field("Via"), "1.1 secondsight");
  proxy.drain();
  EXPECT_EQ(proxy.metric("secondsight_index_objects"), 0) << "a first sighting writes nothing";

  const RawResponse second = proxy.get("/a");
  EXPECT_EQ(second.body, "hello");
  EXPECT_EQ(second.field("Cache-Status"), "secondsight; hit; ttl=60; stored; detail=memory");
  EXPECT_EQ(second.field("Age"), "0");
  EXPECT_EQ(origin.count("/a"), 1U) << "no second fetch for an object that is in memory";
  proxy.drain();
  EXPECT_EQ(proxy.metric("secondsight_index_objects"), 1);

  EXPECT_EQ(proxy.get("/a").field("Cache-Status"), "secondsight; hit; ttl=60; detail=memory")
      << "written once";
}

TEST(Exchange, WithoutAMemoryTierTheSecondFetchIsWritten) {
  RoutedOrigin origin;
  origin.on("/a", ok(kFresh, "hello"));
  RunningProxy proxy(origin.url(), [](Settings& s) { s.cache.memory_bytes = 0; });
  EXPECT_EQ(proxy.get("/a").field("Cache-Status"),
            "secondsight; fwd=uri-miss; detail=first-sighting");
  EXPECT_EQ(proxy.get("/a").field("Cache-Status"),
            "secondsight; fwd=uri-miss; ttl=60; stored; detail=repeat");
  const RawResponse third = proxy.get("/a");
  EXPECT_TRUE(says(third, "hit")) << third.field("Cache-Status");
  EXPECT_EQ(third.body, "hello");
  EXPECT_EQ(origin.count("/a"), 2U);
}

TEST(Exchange, PoliciesDecideWhatIsWritten) {
  struct Row {
    PolicyName policy;
    const char* first;
    double objects_after_two;
  };
  for (const Row& row :
       {Row{PolicyName::Always, "detail=always", 1}, Row{PolicyName::Never, "detail=never", 0},
        Row{PolicyName::SecondSighting, "detail=first-sighting", 1}}) {
    RoutedOrigin origin;
    origin.on("/a", ok(kFresh, "hello"));
    RunningProxy proxy(origin.url(), [&](Settings& s) { s.admission.policy = row.policy; });
    EXPECT_TRUE(says(proxy.get("/a"), row.first)) << row.first;
    proxy.get("/a");
    proxy.drain();
    EXPECT_EQ(proxy.metric("secondsight_index_objects"), row.objects_after_two) << row.first;
  }
}

TEST(Exchange, TheThirdSightingIsWrittenFromWhereverItIsAnswered) {
  struct Row {
    std::uint64_t memory_bytes;
    std::array<const char*, 4> statuses;
    std::size_t fetches;
  };
  for (const Row& row :
       {Row{0,
            {"fwd=uri-miss; detail=first-sighting", "fwd=uri-miss; detail=few-sightings",
             "fwd=uri-miss; ttl=60; stored; detail=repeat", "hit; ttl=60; detail=disk"},
            3},
        Row{64_MiB,
            {"fwd=uri-miss; ttl=60; stored; detail=first-sighting", "hit; ttl=60; detail=memory",
             "hit; ttl=60; stored; detail=memory", "hit; ttl=60; detail=memory"},
            1}}) {
    RoutedOrigin origin;
    origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
    RunningProxy proxy(origin.url(), [&](Settings& s) {
      s.admission.policy = PolicyName::NthSighting;
      s.admission.sightings = 3;
      s.cache.memory_bytes = row.memory_bytes;
    });
    for (std::size_t i = 0; i < row.statuses.size(); ++i) {
      EXPECT_EQ(proxy.get("/a").field("Cache-Status"),
                std::string("secondsight; ") + row.statuses[i]);
      proxy.drain();
      EXPECT_EQ(proxy.metric("secondsight_index_objects"), i < 2 ? 0 : 1) << i;
    }
    EXPECT_EQ(origin.count("/a"), row.fetches);
  }
}

TEST(Exchange, ARangeFetchesTheWholeAtTheThirdSighting) {
  RoutedOrigin origin;
  origin.on("/a", ok("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", "hello"));
  RunningProxy proxy(origin.url(), [](Settings& s) {
    s.admission.policy = PolicyName::NthSighting;
    s.admission.sightings = 3;
    s.cache.memory_bytes = 0;
  });
  for (int i = 0; i < 3; ++i) {
    proxy.get("/a", "Range: bytes=1-2\r\n");
    proxy.drain();
    EXPECT_EQ(proxy.metric("secondsight_index_objects"), i < 2 ? 0 : 1) << i;
  }
}

TEST(Exchange, WhatMayNotBeKeptIsFetchedEachTimeAndNeverSighted) {
  for (const char* fields : {"Cache-Control: no-store\r\n", "Cache-Control: private\r\n",
                             "Vary: *\r\nCache-Control: max-age=60\r\n", "X: y\r\n"}) {
    RoutedOrigin origin;
    origin.on("/a", ok(fields, "x"));
    RunningProxy proxy(origin.url());
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(says(proxy.get("/a"), "stored")) << fields;
    EXPECT_EQ(origin.count("/a"), 3U) << fields;
    EXPECT_EQ(proxy.metric("secondsight_filter_marked_keys"), 0) << fields;
  }
}

TEST(Exchange, AgeGrowsAndTheStaleIsValidated) {
  RoutedOrigin origin;
  origin.on("/a", [](const std::string& request) -> std::string {
    if (request.find("If-None-Match: \"v1\"") != std::string::npos)
      return "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: max-age=100\r\nX-New: "
             "yes\r\n\r\n";
    return ok("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", "hello");
  });
  RunningProxy proxy(origin.url());
  proxy.get("/a");
  proxy.clock.advance(seconds{30});
  EXPECT_EQ(proxy.get("/a").field("Age"), "30");
  proxy.clock.advance(seconds{31});
  const RawResponse validated = proxy.get("/a");
  EXPECT_EQ(validated.status, 200);
  EXPECT_EQ(validated.body, "hello");
  EXPECT_EQ(validated.field("X-New"), "yes") << "the 304 freshens the stored head";
  EXPECT_EQ(validated.field("Cache-Status").substr(0, 43),
            "secondsight; fwd=stale; fwd-status=304; ttl");
  proxy.clock.advance(seconds{90});
  EXPECT_TRUE(says(proxy.get("/a"), "hit")) << "its lifetime is the 304's";
  EXPECT_EQ(origin.count("/a"), 2U);
}

TEST(Exchange, AFreshenedHeadOutlivesARestart) {
  RoutedOrigin origin;
  origin.on("/a", [](const std::string& request) -> std::string {
    if (request.find("If-None-Match") != std::string::npos)
      return "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: max-age=1000\r\n\r\n";
    return ok("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", "hello");
  });
  RunningProxy proxy(origin.url(), [](Settings& s) { s.cache.memory_bytes = 0; });
  proxy.get("/a");
  proxy.get("/a");
  proxy.drain();
  proxy.clock.advance(seconds{61});
  EXPECT_EQ(proxy.get("/a").body, "hello");
  proxy.drain();
  proxy.restart();
  proxy.clock.advance(seconds{500});
  const RawResponse after = proxy.get("/a");
  EXPECT_TRUE(says(after, "hit")) << after.field("Cache-Status");
  EXPECT_EQ(after.body, "hello") << "the new head goes with the old body";
  EXPECT_EQ(origin.count("/a"), 3U);
}

TEST(Exchange, StaleIsServedWhileItIsRevalidatedAndWhenTheOriginFails) {
  RoutedOrigin origin;
  origin.on("/swr", ok("Cache-Control: max-age=10, stale-while-revalidate=60\r\n", "old"));
  origin.on("/sie", ok("Cache-Control: max-age=10, stale-if-error=60\r\n", "old"));
  RunningProxy proxy(origin.url());
  proxy.get("/swr");
  proxy.get("/sie");
  proxy.clock.advance(seconds{20});
  origin.on("/swr", ok("Cache-Control: max-age=100\r\n", "new"));
  origin.on("/sie", "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(proxy.get("/swr").body, "old");
  // The fetch behind it ends at its own time: ask until it has.
  std::string body;
  for (int i = 0; i < 1000 && body != "new"; ++i) body = proxy.get("/swr").body;
  EXPECT_EQ(body, "new");
  const RawResponse on_error = proxy.get("/sie");
  EXPECT_EQ(on_error.status, 200);
  EXPECT_EQ(on_error.body, "old");
  EXPECT_TRUE(says(on_error, "fwd=stale; fwd-status=503")) << on_error.field("Cache-Status");
}

TEST(Exchange, WhatIsFetchedBehindAStaleAnswerIsTheWholeWhateverWasAskedFor) {
  RoutedOrigin origin;
  origin.on("/a", ok("Cache-Control: max-age=10, stale-while-revalidate=60\r\n", "old body"));
  RunningProxy proxy(origin.url());
  proxy.get("/a");
  proxy.clock.advance(seconds{20});
  origin.on("/a", [](const std::string& request) -> std::string {
    const bool is_plain = request.starts_with("GET") && request.find("Range") == std::string::npos;
    return is_plain ? ok("Cache-Control: max-age=100\r\n", "new body")
                    : "HTTP/1.1 500 Not plain\r\nContent-Length: 0\r\n\r\n";
  });
  EXPECT_EQ(proxy.send("HEAD", "/a").status, 200);
  EXPECT_EQ(origin.count("/a"), 1U) << "a HEAD fetches nothing behind";
  EXPECT_EQ(proxy.get("/a", "Range: bytes=0-2\r\n").body, "old");
  std::string body;
  for (int i = 0; i < 1000 && body != "new body"; ++i) body = proxy.get("/a").body;
  EXPECT_EQ(body, "new body");
}

TEST(Exchange, VariantsAreKeptApartAndSurviveARestart) {
  RoutedOrigin origin;
  origin.on("/v", [](const std::string& request) {
    const bool german = request.find("Accept-Language: de") != std::string::npos;
    return ok("Cache-Control: max-age=600\r\nVary: Accept-Language\r\n",
              german ? "hallo" : "hello");
  });
  RunningProxy proxy(origin.url());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(proxy.get("/v", "Accept-Language: de\r\n").body, "hallo");
    EXPECT_EQ(proxy.get("/v", "Accept-Language: en\r\n").body, "hello");
  }
  EXPECT_EQ(origin.count("/v"), 2U);
  proxy.restart();
  EXPECT_EQ(proxy.get("/v", "Accept-Language: de\r\n").body, "hallo");
  EXPECT_EQ(proxy.get("/v", "Accept-Language: en\r\n").body, "hello");
  EXPECT_EQ(origin.count("/v"), 2U);
}

TEST(Exchange, AMarkerOnDiskIsNoResponse) {
  RoutedOrigin origin;
  origin.on("/v", ok("Cache-Control: max-age=600\r\nVary: Accept-Language\r\n", "v"));
  RunningProxy proxy(origin.url(), [](Settings& s) { s.cache.memory_bytes = 0; });
  for (int i = 0; i < 2; ++i) proxy.get("/v", "Accept-Language: de\r\n");
  proxy.drain();
  EXPECT_TRUE(says(proxy.get("/v", "Accept-Language: en\r\n"), "fwd=vary-miss"));
  origin.on("/v", "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
  const RawResponse failed =
      proxy.get("/v", "Accept-Language: en\r\nCache-Control: stale-if-error=100\r\n");
  EXPECT_EQ(failed.status, 503) << "nothing is stored for this variant";
}

TEST(Exchange, AnUnsafeRequestInvalidatesWhatIsStoredWithAllVariants) {
  RoutedOrigin origin;
  origin.on("/a", ok(kFresh, "a"));
  origin.on("/v", ok("Cache-Control: max-age=600\r\nVary: Accept-Language\r\n", "v"));
  RunningProxy proxy(origin.url());
  for (int i = 0; i < 3; ++i) {
    proxy.get("/a");
    proxy.get("/v", "Accept-Language: de\r\n");
  }
  proxy.drain();
  EXPECT_EQ(proxy.send("POST", "/a", {}, "x").status, 200);
  EXPECT_EQ(proxy.send("DELETE", "/v").status, 200);
  EXPECT_FALSE(says(proxy.get("/a"), "hit"));
  EXPECT_FALSE(says(proxy.get("/v", "Accept-Language: de\r\n"), "hit"));
  proxy.drain();
  proxy.restart();
  EXPECT_EQ(origin.count("/a"), 3U);
}

TEST(Exchange, AnInvalidatedObjectDoesNotComeBackWithARestart) {
  RoutedOrigin origin;
  origin.on("/a", ok(kFresh, "a"));
  RunningProxy proxy(origin.url());
  proxy.get("/a");
  proxy.get("/a");
  proxy.drain();
  proxy.send("DELETE", "/a");
  proxy.drain();
  proxy.restart();
  EXPECT_EQ(proxy.metric("secondsight_index_objects"), 0);
  EXPECT_FALSE(says(proxy.get("/a"), "hit"));
}

TEST(Exchange, AnErrorAnswerToAnUnsafeRequestInvalidatesNothing) {
  RoutedOrigin origin;
  origin.on("/a", [](const std::string& request) -> std::string {
    if (request.starts_with("POST")) return "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n";
    return ok(kFresh, "a");
  });
  RunningProxy proxy(origin.url());
  proxy.get("/a");
  EXPECT_EQ(proxy.send("POST", "/a", {}, "x").status, 500);
  EXPECT_TRUE(says(proxy.get("/a"), "hit"));
}

TEST(Exchange, ConditionsRangesAndHeadAreAnsweredFromTheCache) {
  RoutedOrigin origin;
  origin.on("/a", ok("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", "0123456789"));
  RunningProxy proxy(origin.url());
  proxy.get("/a");

  const RawResponse condition = proxy.get("/a", "If-None-Match: \"v1\"\r\n");
  EXPECT_EQ(condition.status, 304);
  EXPECT_EQ(condition.field("ETag"), "\"v1\"");
  EXPECT_EQ(proxy.get("/a", "If-None-Match: \"v2\"\r\n").status, 200);

  const RawResponse range = proxy.get("/a", "Range: bytes=2-4\r\n");
  EXPECT_EQ(range.status, 206);
  EXPECT_EQ(range.body, "234");
  EXPECT_EQ(range.field("Content-Range"), "bytes 2-4/10");
  EXPECT_EQ(proxy.get("/a", "Range: bytes=-3\r\n").body, "789");
  const RawResponse beyond = proxy.get("/a", "Range: bytes=10-\r\n");
  EXPECT_EQ(beyond.status, 416);
  EXPECT_EQ(beyond.field("Content-Range"), "bytes */10");

  const RawResponse head = proxy.send("HEAD", "/a");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.field("Content-Length"), "10");
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(origin.count("/a"), 1U);
}

TEST(Exchange, ARangeMissIsPassedOnAndCountsForTheWholeObject) {
  RoutedOrigin origin;
  origin.on("/a", [](const std::string& request) -> std::string {
    if (request.find("Range: bytes=0-1") == std::string::npos) return ok(kFresh, "0123456789");
    return "HTTP/1.1 206 Partial Content\r\nContent-Length: 2\r\nContent-Range: bytes 0-1/10\r\n"
           "Cache-Control: max-age=60\r\n\r\n01";
  });
  RunningProxy proxy(origin.url());
  const RawResponse part = proxy.get("/a", "Range: bytes=0-1\r\n");
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "01");
  EXPECT_FALSE(says(part, "stored"));
  EXPECT_TRUE(says(proxy.get("/a"), "stored; detail=repeat"));
}

TEST(Exchange, RequestBodiesReachTheOrigin) {
  RoutedOrigin origin;
  origin.on("/in", [](const std::string& request) {
    return ok("", std::to_string(request.size() - request.find("\r\n\r\n") - 4));
  });
  RunningProxy proxy(origin.url());
  const std::string body(300'000, 'b');
  EXPECT_EQ(proxy.send("PUT", "/in", {}, body).body, "300000");
  RawClient client(proxy.port());
  client.send(
      "POST /in HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  EXPECT_EQ(client.read_response("POST").status, 200);
}

TEST(Exchange, OnlyIfCachedIsAnswered504WithoutAskingTheOrigin) {
  RoutedOrigin origin;
  origin.on("/a", ok(kFresh, "a"));
  RunningProxy proxy(origin.url());
  EXPECT_EQ(proxy.get("/a", "Cache-Control: only-if-cached\r\n").status, 504);
  EXPECT_EQ(origin.count("/a"), 0U);
}

TEST(Exchange, AnUnreachableOriginGives502) {
  RunningProxy proxy("http://127.0.0.1:" + std::to_string(secondsight::test::refusing_port()));
  EXPECT_EQ(proxy.get("/a").status, 502);
  EXPECT_EQ(proxy.send("POST", "/a", {}, "x").status, 502);
}

TEST(Exchange, ASilentOriginGives504) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    connection.read_request();
    connection.wait_for_close();
  });
  RunningProxy proxy(origin.url());
  RawClient client(proxy.port());
  client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  while (origin.requests().empty()) {
  }
  // The worker's tick notices; it may come before the fetch is noted, so time goes on until it
  // does.
  std::string answer;
  for (int i = 0; i < 2000 && answer.empty(); ++i) {
    proxy.clock.advance(seconds{31});
    answer = client.read_until("\r\n");
  }
  EXPECT_EQ(answer, "HTTP/1.1 504 Gateway Timeout\r\n");
}

TEST(Exchange, ATruncatedBodyIsCutAndNeverStored) {
  for (const PolicyName policy : {PolicyName::Always, PolicyName::SecondSighting}) {
    ScriptedOrigin origin([](OriginConnection& connection) {
      if (connection.read_request().empty()) return;
      connection.send(
          "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nCache-Control: max-age=60\r\n\r\nshort");
    });
    RunningProxy proxy(origin.url(), [&](Settings& s) { s.admission.policy = policy; });
    for (int i = 0; i < 3; ++i) {
      const RawResponse response = proxy.get("/a");
      EXPECT_EQ(response.status, 200);
      EXPECT_FALSE(response.whole);
    }
    proxy.drain();
    EXPECT_EQ(proxy.metric("secondsight_index_objects"), 0);
    EXPECT_EQ(proxy.metric("secondsight_memory_objects"), 0);
  }
}

TEST(Exchange, WhatIsBrokenFromTheStartGives502) {
  for (const char* answer :
       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: max-age=60\r\n\r\nzz\r\n",
        "HTTP/1.1 304 Not Modified\r\n\r\n", "HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 2"}) {
    ScriptedOrigin origin([answer](OriginConnection& connection) {
      if (!connection.read_request().empty()) connection.send(answer);
    });
    RunningProxy proxy(origin.url());
    const RawResponse response = proxy.get("/a");
    EXPECT_EQ(response.status, 502) << answer;
    EXPECT_TRUE(response.whole) << answer;
  }
}

TEST(Exchange, AlreadyStaleWithoutAValidatorIsNotKept) {
  RoutedOrigin origin;
  origin.on("/a", ok("Cache-Control: max-age=60, must-revalidate\r\nAge: 70\r\n", "old"));
  RunningProxy proxy(origin.url());
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(proxy.get("/a").field("Cache-Status"),
              "secondsight; fwd=uri-miss; detail=no-lifetime");
}

TEST(Exchange, WhatCameStaleServesMaxStale) {
  RoutedOrigin origin;
  origin.on("/a", ok("Cache-Control: max-age=60\r\nAge: 70\r\n", "old"));
  RunningProxy proxy(origin.url());
  EXPECT_TRUE(says(proxy.get("/a"), "stored"));
  EXPECT_TRUE(says(proxy.get("/a", "Cache-Control: max-stale=100\r\n"), "hit"));
  EXPECT_FALSE(says(proxy.get("/a", "Cache-Control: max-stale=5\r\n"), "hit"));
  EXPECT_FALSE(says(proxy.get("/a"), "hit"));
}

TEST(Exchange, ATargetedFieldDecidesAndGoesOn) {
  RoutedOrigin origin;
  origin.on("/a", ok("Cache-Control: no-store\r\nCDN-Cache-Control: max-age=60\r\n", "a"));
  origin.on("/b", ok("Cache-Control: max-age=60\r\nSurrogate-Control: no-store\r\n", "b"));
  RunningProxy proxy(origin.url());
  proxy.get("/a");
  const RawResponse hit = proxy.get("/a");
  EXPECT_TRUE(says(hit, "hit"));
  EXPECT_EQ(hit.field("CDN-Cache-Control"), "max-age=60");
  EXPECT_EQ(hit.field("Cache-Control"), "no-store");
  proxy.get("/b");
  EXPECT_TRUE(says(proxy.get("/b"), "detail=no-store"));
}

TEST(Exchange, AChangedByteOnDiskIsAMissNeverAWrongByte) {
  RoutedOrigin origin;
  const std::string body(20'000, 'b');
  origin.on("/a", ok(kFresh, body));
  RunningProxy proxy(origin.url(), [](Settings& s) { s.cache.memory_bytes = 0; });
  proxy.get("/a");
  proxy.get("/a");
  proxy.drain();
  for (const auto& file : std::filesystem::directory_iterator(proxy.directory() / "cache")) {
    if (file.path().extension() != ".segment") continue;
    std::FILE* segment = std::fopen(file.path().c_str(), "r+b");
    ASSERT_NE(segment, nullptr);
    std::fseek(segment, 10'000, SEEK_SET);
    std::fputc('X', segment);
    std::fclose(segment);
  }
  const RawResponse response = proxy.get("/a");
  EXPECT_FALSE(says(response, "hit"));
  EXPECT_EQ(response.body, body);
  EXPECT_EQ(proxy.metric("secondsight_unreadable_objects_total"), 1);
}

}  // namespace
}  // namespace secondsight::proxy::test
