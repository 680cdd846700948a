// What stands in while the origin fails, and what a HEAD tells of what is stored.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/proxy/running_proxy.h"

namespace secondsight::proxy::test {
namespace {

using namespace literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

bool says(const RawResponse& response, std::string_view word) {
  return response.field("Cache-Status").find(word) != std::string::npos;
}

/// An origin that fails in one way from when it is told to.
class FailingOrigin {
 public:
  enum class Way { Closes, Errs, Garbles };
  FailingOrigin(Way way, std::string good)
      : way_(way), good_(std::move(good)), origin_([this](OriginConnection& c) { talk(c); }) {}
  std::string url() const { return origin_.url(); }
  void fail(bool fails = true) { fails_ = fails; }
  std::size_t requests() const { return origin_.requests().size(); }

 private:
  void talk(OriginConnection& c) {
    while (!c.read_request().empty()) {
      if (!fails_) {
        c.send(good_);
        continue;
      }
      if (way_ == Way::Errs) {
        c.send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\ndown");
        continue;
      }
      if (way_ == Way::Garbles) c.send("220 mail.example ESMTP\r\n");
      return c.close();
    }
  }

  const Way way_;
  const std::string good_;
  std::atomic<bool> fails_{false};
  ScriptedOrigin origin_;
};

TEST(ExchangeStale, AStaleResponseStandsInForAnOriginThatFails) {
  using Way = FailingOrigin::Way;
  for (const Way way : {Way::Closes, Way::Errs, Way::Garbles}) {
    SCOPED_TRACE(static_cast<int>(way));
    FailingOrigin origin(way, ok("Cache-Control: max-age=10\r\n", "good"));
    RunningProxy proxy(origin.url());
    proxy.get("/a");
    origin.fail();
    proxy.clock.advance(seconds{11});
    const RawResponse stale = proxy.get("/a");
    EXPECT_EQ(stale.status, 200);
    EXPECT_EQ(stale.body, "good");
    EXPECT_EQ(stale.field("Age"), "11");
    EXPECT_TRUE(says(stale, "fwd=stale")) << stale.field("Cache-Status");
    const char* reason = way == Way::Errs     ? "memory"
                         : way == Way::Closes ? "disconnected"
                                              : "malformed";
    EXPECT_TRUE(says(stale, std::string("ttl=-1; stored; detail=") + reason))
        << stale.field("Cache-Status");
    EXPECT_EQ(says(stale, "fwd-status=503"), way == Way::Errs);
    EXPECT_EQ(origin.requests(), 2U);
    EXPECT_TRUE(says(proxy.get("/a"), "hit; ttl=-1; detail=stale-if-error"))
        << "it is not asked again at once";
    EXPECT_EQ(origin.requests(), 2U);
    EXPECT_EQ(proxy.get("/a", "Cache-Control: no-cache\r\n").status, way == Way::Errs ? 503 : 502)
        << "who wants no stored response gets none";
    proxy.clock.advance(seconds{6});
    origin.fail(false);
    EXPECT_TRUE(says(proxy.get("/a"), "fwd=stale; ttl=10; stored")) << "after a while it is";
    EXPECT_EQ(origin.requests(), 4U);
  }
}

TEST(ExchangeStale, NotWhereTheResponseOrTheOperatorForbidsIt) {
  struct Row {
    const char* directives;
    seconds configured;
    int status;
  };
  for (const Row& row : {
           Row{"max-age=10", seconds{3600}, 200},
           Row{"max-age=10", seconds{0}, 502},
           Row{"max-age=10", seconds{5}, 502},
           Row{"max-age=10, stale-if-error=60", seconds{0}, 200},
           Row{"max-age=10, stale-if-error=5", seconds{3600}, 502},
           Row{"max-age=10, must-revalidate", seconds{3600}, 502},
           Row{"max-age=10, proxy-revalidate", seconds{3600}, 502},
           Row{"max-age=10, s-maxage=10", seconds{3600}, 502},
           Row{"max-age=10, no-cache", seconds{3600}, 502},
       }) {
    SCOPED_TRACE(row.directives);
    FailingOrigin origin(
        FailingOrigin::Way::Closes,
        ok("ETag: \"a\"\r\nCache-Control: " + std::string(row.directives) + "\r\n", "good"));
    RunningProxy proxy(origin.url(), [&](Settings& s) { s.cache.stale_if_error = row.configured; });
    proxy.get("/a");
    origin.fail();
    proxy.clock.advance(seconds{20});
    EXPECT_EQ(proxy.get("/a").status, row.status);
  }
}

TEST(ExchangeStale, AnOriginThatCannotBeReachedIsTriedOnceForEachBackOff) {
  const auto port = std::to_string(secondsight::test::refusing_port());
  RoutedOrigin origin;
  for (const char* target : {"/a", "/b", "/c"})
    origin.on(target, ok("Cache-Control: max-age=10\r\n", target));
  TemporaryDirectory cache;
  {
    RunningProxy proxy(origin.url(), [&](Settings& s) {
      s.cache.directory = cache.path().string();
      s.admission.policy = PolicyName::Always;
    });
    for (const char* target : {"/a", "/b", "/c"}) proxy.get(target);
    proxy.drain();
  }
  RunningProxy proxy("http://127.0.0.1:" + port, [&](Settings& s) {
    s.cache.directory = cache.path().string();
    s.proxy.workers = 1;
  });
  proxy.clock.advance(seconds{60});
  const auto unreachable = [&] {
    return proxy.metric("secondsight_origin_errors_total{error=\"unreachable\"}");
  };
  EXPECT_EQ(proxy.get("/a").body, "/a");
  EXPECT_EQ(unreachable(), 1);
  EXPECT_EQ(proxy.get("/b").body, "/b");
  EXPECT_EQ(proxy.get("/c").body, "/c");
  EXPECT_EQ(unreachable(), 1) << "the others did not try";
  EXPECT_EQ(proxy.get("/never-seen").status, 502);
  EXPECT_EQ(unreachable(), 2) << "what cannot do without tries";
  proxy.clock.advance(milliseconds{1500});
  EXPECT_EQ(proxy.get("/b").body, "/b");
  EXPECT_EQ(unreachable(), 3) << "its back-off is over";
  EXPECT_EQ(proxy.get("/c").body, "/c");
  EXPECT_EQ(unreachable(), 3);
}

TEST(ExchangeStale, ConditionalRequestsShareOneRevalidation) {
  for (const bool has_changed : {false, true}) {
    ScriptedOrigin origin([&](OriginConnection& c) {
      for (int i = 0;; ++i) {
        const std::string request = c.read_request();
        if (request.empty()) return;
        if (request.find("If-None-Match") == std::string::npos) {
          c.send(ok("Cache-Control: max-age=10\r\nETag: \"a\"\r\n", "first"));
          continue;
        }
        c.checkpoint();
        c.send(has_changed ? ok("Cache-Control: max-age=10\r\nETag: \"b\"\r\n", "second")
                           : "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n");
      }
    });
    RunningProxy proxy(origin.url());
    proxy.get("/a");
    proxy.clock.advance(seconds{11});
    RawClient has_a(proxy.port());
    RawClient has_b(proxy.port());
    RawClient has_none(proxy.port());
    const std::string ask = "GET /a HTTP/1.1\r\nHost: example.test\r\n";
    has_a.send(ask + "If-None-Match: \"a\"\r\n\r\n");
    has_b.send(ask + "If-None-Match: \"b\"\r\n\r\n");
    has_none.send(ask + "\r\n");
    const auto deadline = std::chrono::steady_clock::now() + seconds{20};
    while (proxy.metric("secondsight_collapsed_requests_total") < 2 &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    origin.release();
    EXPECT_EQ(has_a.read_response().status, has_changed ? 200 : 304);
    EXPECT_EQ(has_b.read_response().status, has_changed ? 304 : 200);
    EXPECT_EQ(has_none.read_response().body, has_changed ? "second" : "first");
    EXPECT_EQ(origin.requests().size(), 2U);
  }
}

TEST(ExchangeStale, A200ToHeadFreshensWhatIsStoredOrEndsIt) {
  struct Row {
    const char* head_fields;
    std::size_t gets_after;  // that reach the origin
    const char* x;
  };
  for (const Row& row : {
           Row{"ETag: \"a\"\r\nCache-Control: max-age=100\r\nX: new\r\nContent-Length: 4\r\n", 1,
               "new"},
           Row{"Cache-Control: max-age=100\r\nX: new\r\n", 1, "new"},
           Row{"ETag: \"b\"\r\nCache-Control: max-age=100\r\nX: new\r\nContent-Length: 4\r\n", 2,
               "old"},
           Row{"ETag: \"a\"\r\nCache-Control: max-age=100\r\nX: new\r\nContent-Length: 5\r\n", 2,
               "old"},
           Row{"ETag: \"a\"\r\nCache-Control: no-store\r\nContent-Length: 4\r\n", 2, "old"},
       }) {
    for (const bool in_memory : {true, false}) {
      SCOPED_TRACE(row.head_fields);
      std::atomic<std::size_t> gets{0};
      RoutedOrigin origin;
      origin.on("/a", [&](const std::string& request) -> std::string {
        if (request.starts_with("HEAD"))
          return "HTTP/1.1 200 OK\r\n" + std::string(row.head_fields) + "\r\n";
        ++gets;
        return ok("ETag: \"a\"\r\nCache-Control: max-age=10\r\nX: old\r\n", "body");
      });
      RunningProxy proxy(origin.url(), [&](Settings& s) {
        s.admission.policy = PolicyName::Always;
        if (!in_memory) s.cache.memory_bytes = 0;
      });
      proxy.get("/a");
      proxy.drain();
      proxy.clock.advance(seconds{11});
      const RawResponse head = proxy.send("HEAD", "/a");
      EXPECT_EQ(head.status, 200);
      proxy.drain();
      const RawResponse after = proxy.get("/a");
      EXPECT_EQ(after.body, "body");
      EXPECT_EQ(after.field("X"), row.x);
      EXPECT_EQ(gets, row.gets_after);
    }
  }
}

}  // namespace
}  // namespace secondsight::proxy::test
