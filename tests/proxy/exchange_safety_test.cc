// What must never happen: bytes under another version's name, an answer made for one request given
// to others, and content from before an unsafe request after it.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/proxy/running_proxy.h"

namespace secondsight::proxy::test {
namespace {

using namespace literals;
using std::chrono::seconds;

bool says(const RawResponse& response, std::string_view word) {
  return response.field("Cache-Status").find(word) != std::string::npos;
}

bool has(const std::string& request, std::string_view text) {
  return request.find(text) != std::string::npos;
}

/// Asks until it is so; false when it never was.
template <class Condition>
bool eventually(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + seconds{20};
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

void keep_all(Settings& s) {
  s.admission.policy = PolicyName::Always;
}

TEST(ExchangeSafety, AVariantThatIsNotThatVersionIsNotServedForIt) {
  std::atomic<bool> moved_on{false};
  ScriptedOrigin origin([&](OriginConnection& c) {
    for (;;) {
      const std::string request = c.read_request();
      if (request.empty()) return;
      const std::string fields = std::string("Cache-Control: max-age=60\r\nVary: X-V\r\nETag: ") +
                                 (moved_on ? "\"v2\"" : "\"v1\"") + "\r\n";
      if (moved_on && has(request, "X-V: a")) {  // the new version's head, and little of its body
        c.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n" + fields + "\r\nnew");
        return c.close();
      }
      if (moved_on && has(request, "\"v2\"")) {
        c.send("HTTP/1.1 304 Not Modified\r\n" + fields + "\r\n");
        continue;
      }
      c.send(ok(fields, moved_on ? "new body" : "old body"));
    }
  });
  RunningProxy proxy(origin.url());
  EXPECT_EQ(proxy.get("/a", "X-V: a\r\n").body, "old body");
  moved_on = true;
  EXPECT_FALSE(proxy.get("/a", "X-V: a\r\nCache-Control: no-cache\r\n").whole);
  const RawResponse other = proxy.get("/a", "X-V: b\r\n");
  EXPECT_EQ(other.field("ETag"), "\"v2\"");
  EXPECT_EQ(other.body, "new body");
}

TEST(ExchangeSafety, A304OfAnotherVersionOrWithAnotherVaryFreshensNothing) {
  struct Row {
    const char* what;
    const char* told;   // by the 304
    const char* other;  // a later request's fields
    const char* body;   // it gets
  };
  for (const Row& row : {
           Row{"another version", "ETag: \"v2\"\r\n", "", "new"},
           Row{"another Vary", "ETag: \"v1\"\r\nVary: X-Foo\r\n", "X-Foo: b\r\n", "new"},
           Row{"the same", "ETag: \"v1\"\r\n", "", "old"},
       }) {
    SCOPED_TRACE(row.what);
    std::atomic<int> requests{0};
    RoutedOrigin origin;
    origin.on("/a", [&](const std::string& request) -> std::string {
      ++requests;
      if (has(request, "If-None-Match: \"v1\""))
        return "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\n" +
               std::string(row.told) + "\r\n";
      return ok("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", requests == 1 ? "old" : "new");
    });
    RunningProxy proxy(origin.url(), keep_all);
    proxy.get("/a");
    proxy.drain();
    proxy.clock.advance(seconds{61});
    EXPECT_EQ(proxy.get("/a").status, 200);
    EXPECT_EQ(proxy.get("/a", row.other).body, row.body);
  }
}

TEST(ExchangeSafety, AHeadThatAddsAVaryEndsWhatIsStored) {
  std::atomic<int> gets{0};
  RoutedOrigin origin;
  origin.on("/a", [&](const std::string& request) -> std::string {
    if (has(request, "HEAD "))
      return "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nVary: X-Foo\r\n\r\n";
    ++gets;
    return ok("Cache-Control: max-age=10\r\n", "x");
  });
  RunningProxy proxy(origin.url());
  proxy.get("/a");
  proxy.clock.advance(seconds{11});
  proxy.send("HEAD", "/a");
  proxy.get("/a", "X-Foo: b\r\n");
  EXPECT_EQ(gets, 2);
}

TEST(ExchangeSafety, WhatOneRequestsOwnFieldsCameToIsNotForOthers) {
  struct Row {
    const char* request;
    const char* status;
  };
  for (const Row& row : {Row{"Range: bytes=100-\r\n", "416 Range Not Satisfiable"},
                         Row{"If-Match: \"x\"\r\n", "412 Precondition Failed"},
                         Row{"Expect: x\r\n", "417 Expectation Failed"}}) {
    SCOPED_TRACE(row.status);
    std::atomic<bool> first{true};
    RoutedOrigin origin;
    origin.on("/a", [&](const std::string&) -> std::string {
      if (!first.exchange(false)) return ok("Cache-Control: max-age=60\r\n", "good");
      return "HTTP/1.1 " + std::string(row.status) +
             "\r\nCache-Control: max-age=60\r\nContent-Length: 3\r\n\r\nbad";
    });
    RunningProxy proxy(origin.url(), keep_all);
    EXPECT_EQ(proxy.get("/a", row.request).body, "bad");
    EXPECT_EQ(proxy.get("/a").body, "good");
  }
}

TEST(ExchangeSafety, AnErrorThatAStaleResponseHidesDoesNotTakeItsPlace) {
  std::atomic<bool> fails{false};
  RoutedOrigin origin;
  origin.on("/a", [&](const std::string&) -> std::string {
    if (!fails) return ok("Cache-Control: max-age=1, stale-if-error=600\r\n", "good");
    return "HTTP/1.1 503 Service Unavailable\r\nCache-Control: max-age=60\r\nContent-Length: "
           "0\r\n\r\n";
  });
  RunningProxy proxy(origin.url(), keep_all);
  proxy.get("/a");
  fails = true;
  proxy.clock.advance(seconds{10});
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(proxy.get("/a").body, "good");
    proxy.clock.advance(seconds{10});
  }
}

TEST(ExchangeSafety, AFailingOriginIsSparedBehindStaleAnswers) {
  std::atomic<bool> fails{false};
  RoutedOrigin origin;
  origin.on("/a", [&](const std::string&) -> std::string {
    if (!fails) return ok("Cache-Control: max-age=1, stale-while-revalidate=600\r\n", "good");
    return "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
  });
  RunningProxy proxy(origin.url());
  proxy.get("/a");
  fails = true;
  proxy.clock.advance(seconds{10});
  proxy.get("/a");
  ASSERT_TRUE(eventually([&] { return origin.count("/a") == 2; }));
  ASSERT_TRUE(eventually([&] { return proxy.metric("secondsight_flights") == 0; }));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(proxy.get("/a").body, "good");
  EXPECT_EQ(origin.count("/a"), 2U);
}

TEST(ExchangeSafety, ARequestWithAuthorizationPurgesNothing) {
  for (const char* fields : {"Authorization: x\r\nCache-Control: no-cache\r\n",
                             "Cache-Control: no-cache, no-store\r\n"}) {
    for (const char* method : {"GET", "HEAD"}) {
      SCOPED_TRACE(std::string(method) + " " + fields);
      RoutedOrigin origin;
      origin.on("/a", [](const std::string& request) -> std::string {
        const std::string head = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n";
        if (has(request, "If-None-Match")) return "HTTP/1.1 304 Not Modified\r\n" + head + "\r\n";
        if (has(request, "HEAD ")) return "HTTP/1.1 200 OK\r\n" + head + "\r\n";
        return ok(head, "x");
      });
      RunningProxy proxy(origin.url(), keep_all);
      proxy.get("/a");
      proxy.send(method, "/a", fields);
      EXPECT_TRUE(says(proxy.get("/a"), "hit"));
    }
  }
}

TEST(ExchangeSafety, ACompletedPartOfTheWrongLengthIsNotKept) {
  for (const std::size_t bytes : {50U, 5000U}) {
    RoutedOrigin origin;
    origin.on("/a", [&](const std::string& request) -> std::string {
      const std::string fields = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n";
      if (has(request, "\r\nRange: bytes=0-99"))
        return "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-99/1000\r\nContent-Length: "
               "100\r\n" +
               fields + "\r\n" + std::string(100, 'a');
      if (has(request, "\r\nRange: bytes=100-")) {
        char size[20];
        std::snprintf(size, sizeof size, "%zx\r\n", bytes);
        return "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 100-999/1000\r\n"
               "Transfer-Encoding: chunked\r\n" +
               fields + "\r\n" + size + std::string(bytes, 'b') + "\r\n0\r\n\r\n";
      }
      return ok(fields, std::string(1000, 'c'));
    });
    RunningProxy proxy(origin.url());
    proxy.get("/a", "Range: bytes=0-99\r\n");
    const RawResponse first = proxy.get("/a");
    EXPECT_EQ(first.whole, bytes > 900) << "what was promised, or cut";
    EXPECT_FALSE(says(proxy.get("/a"), "hit"));
  }
}

TEST(ExchangeSafety, APartDoesNotOutliveAWholeThatGoesBy) {
  std::atomic<int> version{1};
  RoutedOrigin origin;
  origin.on("/a", [&](const std::string& request) -> std::string {
    const std::string tag = "ETag: \"v" + std::to_string(version) + "\"\r\n";
    const std::string byte(10, static_cast<char>('0' + version));
    if (has(request, "\r\nRange: bytes=10-19"))
      return "HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=60\r\nContent-Range: bytes "
             "10-19/100\r\nContent-Length: 10\r\n" +
             tag + "\r\n" + byte;
    return ok("Cache-Control: no-store\r\n" + tag, std::string(100, byte[0]));
  });
  RunningProxy proxy(origin.url());
  EXPECT_EQ(proxy.get("/a", "Range: bytes=10-19\r\n").body, "1111111111");
  version = 2;
  EXPECT_EQ(proxy.get("/a").body, std::string(100, '2'));
  EXPECT_EQ(proxy.get("/a", "Range: bytes=10-19\r\n").body, "2222222222");
}

TEST(ExchangeSafety, WhoComesLateToAFetchGetsWhatTheCacheWouldGiveIt) {
  struct Row {
    const char* response;
    const char* request;
    bool shares;
  };
  for (const Row& row : {
           Row{"max-age=60", "", true},
           Row{"max-age=2", "", false},
           Row{"no-cache", "", false},
           Row{"max-age=60", "Cache-Control: max-age=1\r\n", false},
           Row{"max-age=60", "Cache-Control: min-fresh=59\r\n", false},
       }) {
    SCOPED_TRACE(std::string(row.response) + " " + row.request);
    ScriptedOrigin origin([&](OriginConnection& c) {
      while (!c.read_request().empty()) {
        const std::string answer =
            ok("ETag: \"a\"\r\nCache-Control: " + std::string(row.response) + "\r\n", "0123456789");
        c.send(std::string_view(answer).substr(0, answer.size() - 5));
        c.checkpoint();
        c.send(std::string_view(answer).substr(answer.size() - 5));
      }
    });
    RunningProxy proxy(origin.url());
    RawClient first(proxy.port());
    first.send("GET /a HTTP/1.1\r\nHost: example.test\r\n\r\n");
    ASSERT_EQ(first.read_until("\r\n\r\n01234").substr(0, 15), "HTTP/1.1 200 OK");
    proxy.clock.advance(seconds{3});
    RawClient late(proxy.port());
    late.send("GET /a HTTP/1.1\r\nHost: example.test\r\n" + std::string(row.request) + "\r\n");
    if (row.shares) {
      EXPECT_TRUE(
          eventually([&] { return proxy.metric("secondsight_collapsed_requests_total") == 1; }));
    } else {
      EXPECT_TRUE(eventually([&] { return origin.requests().size() == 2; }));
    }
    origin.release();
    origin.release();
    EXPECT_EQ(late.read_response().body, "0123456789");
  }
}

TEST(ExchangeSafety, TheNewerOfTwoResponsesStays) {
  std::atomic<int> requests{0};
  ScriptedOrigin origin([&](OriginConnection& c) {
    while (!c.read_request().empty()) {
      const bool is_first = ++requests == 1;
      const std::string answer =
          ok("Cache-Control: max-age=60\r\n", is_first ? "version 1" : "version 2");
      c.send(std::string_view(answer).substr(0, answer.size() - 5));
      if (is_first) c.checkpoint();
      c.send(std::string_view(answer).substr(answer.size() - 5));
    }
  });
  RunningProxy proxy(origin.url());
  RawClient slow(proxy.port());
  slow.send("GET /a HTTP/1.1\r\nHost: example.test\r\n\r\n");
  slow.read_until("\r\n\r\nvers");
  proxy.clock.advance(seconds{1});
  EXPECT_EQ(proxy.get("/a", "Cache-Control: no-cache\r\n").body, "version 2");
  origin.release();
  slow.read_until("on 1");
  ASSERT_TRUE(eventually([&] { return proxy.metric("secondsight_flights") == 0; }));
  const RawResponse after = proxy.get("/a");
  EXPECT_TRUE(says(after, "hit"));
  EXPECT_EQ(after.body, "version 2");
}

TEST(ExchangeSafety, AnUnsafeRequestOutdatesWhatIsBeingValidatedMeanwhile) {
  for (const char* way : {"GET", "HEAD", "variant"}) {
    SCOPED_TRACE(way);
    std::atomic<int> version{1};
    ScriptedOrigin origin([&](OriginConnection& c) {
      for (;;) {
        const std::string request = c.read_request();
        if (request.empty()) return;
        if (has(request, "POST ")) {
          c.send("HTTP/1.1 204 No Content\r\n\r\n");
          continue;
        }
        const std::string fields = std::string("Cache-Control: max-age=10\r\nETag: \"v") +
                                   std::to_string(version) + "\"\r\n" +
                                   (way == std::string("variant") ? "Vary: X-V\r\n" : "");
        std::string answer = ok(fields, "version " + std::to_string(version));
        if (has(request, "If-None-Match: \"v1\"") && version == 1)
          answer = "HTTP/1.1 304 Not Modified\r\n" + fields + "\r\n";
        if (has(request, "HEAD ")) answer = "HTTP/1.1 200 OK\r\n" + fields + "\r\n";
        if (has(request, "X-Slow")) c.checkpoint();  // what it says is old by then
        c.send(answer);
      }
    });
    RunningProxy proxy(origin.url(), keep_all);
    proxy.get("/a", "X-V: a\r\n");
    proxy.drain();
    if (way != std::string("variant")) proxy.clock.advance(seconds{11});
    RawClient slow(proxy.port());
    const std::string method = way == std::string("HEAD") ? "HEAD" : "GET";
    slow.send(method + " /a HTTP/1.1\r\nHost: example.test\r\nX-V: " +
              (way == std::string("variant") ? "b" : "a") + "\r\nX-Slow: 1\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return origin.at_checkpoint() == 1; }));
    version = 2;
    EXPECT_EQ(proxy.send("POST", "/a", "", "x").status, 204);
    origin.release();
    EXPECT_EQ(slow.read_response(method).status, 200);
    EXPECT_EQ(proxy.get("/a", "X-V: a\r\n").body, "version 2");
    EXPECT_EQ(proxy.get("/a", "X-V: b\r\n").body, "version 2");
  }
}

TEST(ExchangeSafety, ALargeObjectIsFreshenedOnDiskHoweverShortItsLifetime) {
  const std::string body(600'000, 'x');
  RoutedOrigin origin;
  origin.on("/a", [&](const std::string& request) -> std::string {
    const std::string fields = "Cache-Control: max-age=10\r\nETag: \"v1\"\r\n";
    if (has(request, "If-None-Match")) return "HTTP/1.1 304 Not Modified\r\n" + fields + "\r\n";
    return ok(fields, body);
  });
  RunningProxy proxy(origin.url(), [](Settings& s) {
    keep_all(s);
    s.cache.memory_bytes = 1_MiB;
  });
  proxy.get("/a");
  proxy.drain();
  proxy.clock.advance(seconds{11});
  proxy.get("/a");
  proxy.drain();
  EXPECT_TRUE(says(proxy.get("/a"), "hit"));
  EXPECT_EQ(origin.count("/a"), 2U);
}

}  // namespace
}  // namespace secondsight::proxy::test
