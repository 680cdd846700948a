// Purges as operators ask for them and clients see them.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/proxy/running_proxy.h"
#include "tests/support/gated_file_system.h"
#include "tests/support/sim_file_system.h"

namespace secondsight::proxy::test {
namespace {

using namespace literals;
using std::chrono::seconds;

bool says(const RawResponse& response, std::string_view word) {
  return response.field("Cache-Status").find(word) != std::string::npos;
}

template <class Condition>
bool eventually(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + seconds{20};
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

void with_admin(Settings& s) {
  s.admission.policy = PolicyName::Always;
  s.admin.enabled = true;
}
void with_purgers(Settings& s) {
  with_admin(s);
  s.purge.allow = {AddressRange{IpAddress::of_v4({127, 0, 0, 0}), 96 + 8}};
}

RawResponse post(const RunningProxy& proxy, const std::string& json, std::string_view more = {}) {
  RawClient client(proxy.admin_port());
  client.send("POST /purge HTTP/1.1\r\nHost: admin\r\n" + std::string(more) +
              "Content-Length: " + std::to_string(json.size()) + "\r\n\r\n" + json);
  return client.read_response("POST");
}

/// Three objects; what each answers names how often it was asked for.
class PurgeProxyTest : public ::testing::Test {
 protected:
  PurgeProxyTest() {
    for (const char* target : {"/shop/1", "/shop/2", "/news"}) {
      origin_.on(target, [this, target](const std::string& request) -> std::string {
        const std::string tags = std::string(target) == "/news" ? "news" : "shop item";
        if (request.find("If-None-Match: \"1\"") != std::string::npos)
          return "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n";
        return ok(
            "Cache-Control: max-age=60\r\nETag: \"1\"\r\nSurrogate-Key: " + tags + "\r\n" + extra_,
            "body");
      });
    }
  }
  void fetch_all(const RunningProxy& proxy) {
    for (const char* target : {"/shop/1", "/shop/2", "/news"}) proxy.get(target);
  }
  /// Which of the three are answered from the cache.
  std::string hits(const RunningProxy& proxy) {
    std::string text;
    for (const char* target : {"/shop/1", "/shop/2", "/news"}) {
      const RawResponse answer = proxy.get(target, "Cache-Control: only-if-cached\r\n");
      if (says(answer, "hit")) text.append(text.empty() ? "" : " ").append(target);
    }
    return text;
  }
  std::string extra_;
  RoutedOrigin origin_;
};

TEST_F(PurgeProxyTest, EveryScopeTakesWhatItNames) {
  struct Row {
    const char* json;
    const char* left;
    const char* told;
  };
  for (
      const Row& row : {
          Row{R"({"url": "http://example.test/shop/1"})", "/shop/2 /news",
              R"({"purged":[{"url":"http://example.test/shop/1"}],"soft":false,"durable":true})"},
          Row{R"({"prefix": "http://example.test/shop/"})", "/news",
              R"({"purged":[{"prefix":"http://example.test/shop/"}],"soft":false,"durable":true})"},
          Row{R"({"tag": "item"})", "/news",
              R"({"purged":[{"tag":"item"}],"soft":false,"durable":true})"},
          Row{R"({"tags": ["x", "news"]})", "/shop/1 /shop/2",
              R"({"purged":[{"tag":"x"},{"tag":"news"}],"soft":false,"durable":true})"},
          Row{R"({"everything": true})", "",
              R"({"purged":[{"everything":true}],"soft":false,"durable":true})"},
          Row{R"({"url": "http://other.test/shop/1"})", "/shop/1 /shop/2 /news",
              R"({"purged":[{"url":"http://other.test/shop/1"}],"soft":false,"durable":true})"},
      }) {
    for (const std::uint64_t memory_bytes : {std::uint64_t{0}, 4_MiB}) {
      SCOPED_TRACE(std::string(row.json) + " " + std::to_string(memory_bytes));
      RunningProxy proxy(origin_.url(), [&](Settings& s) {
        with_admin(s);
        s.cache.memory_bytes = memory_bytes;
      });
      fetch_all(proxy);
      proxy.drain();
      ASSERT_EQ(hits(proxy), "/shop/1 /shop/2 /news");
      const RawResponse answer = post(proxy, row.json);
      EXPECT_EQ(answer.status, 200);
      EXPECT_EQ(answer.field("Content-Type"), "application/json");
      EXPECT_EQ(answer.body, row.told + std::string("\n"));
      EXPECT_EQ(hits(proxy), row.left);
      proxy.restart();
      EXPECT_EQ(hits(proxy), row.left);
      if (*row.left == '\0') {
        EXPECT_TRUE(says(proxy.get("/news"), "fwd=uri-miss")) << "a plain miss";
        EXPECT_TRUE(says(proxy.get("/news"), "hit"));
      }
    }
  }
}

TEST_F(PurgeProxyTest, ASoftPurgeLeavesSomethingToValidateAndToFallBackOn) {
  extra_ = "Cache-Control: stale-while-revalidate=5\r\n";
  for (const std::uint64_t memory_bytes : {std::uint64_t{0}, 4_MiB}) {
    SCOPED_TRACE(memory_bytes);
    RunningProxy proxy(origin_.url(), [&](Settings& s) {
      with_admin(s);
      s.cache.memory_bytes = memory_bytes;
    });
    fetch_all(proxy);
    proxy.drain();
    const auto before = origin_.count("/news");
    EXPECT_EQ(post(proxy, R"({"everything": true, "soft": true})").body,
              "{\"purged\":[{\"everything\":true}],\"soft\":true,\"durable\":true}\n");
    proxy.clock.advance(seconds{5});
    EXPECT_TRUE(says(proxy.get("/news"), "hit; ttl=-5")) << "stale while it is asked for";
    EXPECT_TRUE(eventually([&] { return says(proxy.get("/news"), "hit; ttl=60"); }))
        << proxy.get("/news").field("Cache-Status");
    EXPECT_EQ(origin_.count("/news"), before + 1);
    proxy.clock.advance(seconds{1});
    const RawResponse validated = proxy.get("/shop/1");
    EXPECT_TRUE(says(validated, "fwd=stale; fwd-status=304; ttl=60"))
        << validated.field("Cache-Status");
    EXPECT_TRUE(says(proxy.get("/shop/1"), "hit; ttl=60"));
  }
}

TEST_F(PurgeProxyTest, WhatIsWrongIsToldAndNothingPurged) {
  RunningProxy proxy(origin_.url(), with_admin);
  fetch_all(proxy);
  const RawResponse answer = post(proxy, R"({"everything": true, "tag": 1, "x": 2})");
  EXPECT_EQ(answer.status, 400);
  EXPECT_TRUE(answer.body.starts_with(
      R"({"errors":["\"tag\" must be a text, not a number","unknown member \"x\")"))
      << answer.body;
  EXPECT_EQ(post(proxy, R"({"everything": true})", "Origin: http://a\r\n").status, 403);
  EXPECT_EQ(hits(proxy), "/shop/1 /shop/2 /news");
  RawClient client(proxy.admin_port());
  client.send("GET /purge HTTP/1.1\r\nHost: admin\r\n\r\n");
  const RawResponse got = client.read_response("GET");
  EXPECT_EQ(got.status, 405);
  EXPECT_EQ(got.field("Allow"), "POST");
}

TEST_F(PurgeProxyTest, PurgeIsAMethodForWhoIsListed) {
  RunningProxy proxy(origin_.url(), with_purgers);
  fetch_all(proxy);
  const RawResponse answer = proxy.send("PURGE", "/shop/1");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(
      answer.body,
      "{\"purged\":[{\"url\":\"http://example.test/shop/1\"}],\"soft\":false,\"durable\":true}\n");
  EXPECT_EQ(answer.field("Cache-Status"), "secondsight; detail=purge");
  EXPECT_EQ(answer.field("Content-Type"), "application/json");
  EXPECT_EQ(hits(proxy), "/shop/2 /news");
  EXPECT_EQ(proxy.send("PURGE", "/shop/2", "Soft-Purge: 1\r\n").status, 200);
  EXPECT_TRUE(says(proxy.get("/shop/2"), "fwd=stale; fwd-status=304"));
  EXPECT_EQ(proxy.metric("secondsight_purges_total{kind=\"hard\",scope=\"url\"}") +
                proxy.metric("secondsight_purges_total{scope=\"url\",kind=\"hard\"}"),
            1);
  for (const std::string& request : origin_.requests())
    EXPECT_FALSE(request.starts_with("PURGE")) << "not for the origin";
}

TEST_F(PurgeProxyTest, AUrlBeyondTheBoundIsRefused) {
  RunningProxy proxy(origin_.url(), [](Settings& s) {
    with_purgers(s);
    s.proxy.max_header_bytes = 128U << 10;
  });
  fetch_all(proxy);
  const RawResponse answer = proxy.send("PURGE", "/" + std::string(40'000, 'x'));
  EXPECT_EQ(answer.status, 414);
  EXPECT_EQ(answer.body,
            "{\"errors\":[\"the URL has more than 32768 bytes: purge it by a prefix\"]}\n");
  EXPECT_EQ(hits(proxy), "/shop/1 /shop/2 /news");
}

TEST_F(PurgeProxyTest, OthersMayNotPurge) {
  RunningProxy proxy(origin_.url(), [](Settings& s) {
    s.purge.allow = {AddressRange{IpAddress::of_v4({10, 0, 0, 0}), 96 + 8}};
  });
  fetch_all(proxy);
  const RawResponse answer = proxy.send("PURGE", "/shop/1");
  EXPECT_EQ(answer.status, 403);
  EXPECT_EQ(answer.body, "{\"errors\":[\"PURGE is not allowed from this address\"]}\n");
  EXPECT_EQ(hits(proxy), "/shop/1 /shop/2 /news");
}

TEST_F(PurgeProxyTest, WithoutAListPurgeIsTheOriginsBusiness) {
  RunningProxy proxy(origin_.url(), with_admin);
  fetch_all(proxy);
  proxy.send("PURGE", "/other");
  EXPECT_TRUE(origin_.requests().back().starts_with("PURGE /other "));
  EXPECT_EQ(hits(proxy), "/shop/1 /shop/2 /news");
}

TEST_F(PurgeProxyTest, AUrlGoesInAllVariants) {
  extra_ = "Vary: X-V\r\n";
  RunningProxy proxy(origin_.url(), with_admin);
  for (const char* fields : {"X-V: a\r\n", "X-V: b\r\n"}) proxy.get("/news", fields);
  proxy.drain();
  for (const char* fields : {"X-V: a\r\n", "X-V: b\r\n"})
    EXPECT_TRUE(says(proxy.get("/news", fields), "hit"));
  EXPECT_EQ(post(proxy, R"({"url": "http://example.test/news"})").status, 200);
  for (const char* fields : {"X-V: a\r\n", "X-V: b\r\n"})
    EXPECT_FALSE(says(proxy.get("/news", fields), "hit")) << fields;
  for (const char* fields : {"X-V: a\r\n", "X-V: b\r\n"})
    EXPECT_TRUE(says(proxy.get("/news", fields), "hit")) << fields;
}

TEST(PurgeProxy, AFetchUnderWayIsNeitherKeptNorJoined) {
  for (const char* json :
       {R"({"url": "http://example.test/a"})", R"({"prefix": "http://example.test/"})",
        R"({"tag": "t"})", R"({"everything": true})", R"({"tag": "t", "soft": true})"}) {
    SCOPED_TRACE(json);
    std::atomic<int> requests{0};
    ScriptedOrigin origin([&](OriginConnection& c) {
      while (!c.read_request().empty()) {
        const int number = requests++;
        if (number == 0) c.checkpoint();
        c.send(ok("Cache-Control: max-age=60\r\nSurrogate-Key: t\r\n", std::to_string(number)));
      }
    });
    RunningProxy proxy(origin.url(), with_admin);
    RawClient first(proxy.port());
    first.send("GET /a HTTP/1.1\r\nHost: example.test\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return origin.at_checkpoint() == 1; }));
    EXPECT_EQ(post(proxy, json).status, 200);
    RawClient second(proxy.port());
    second.send("GET /a HTTP/1.1\r\nHost: example.test\r\n\r\n");
    // A tag is known when the answer comes: until then the second may wait for it.
    if (std::string_view(json).find("tag") == std::string_view::npos) {
      EXPECT_EQ(second.read_response("GET").body, "1");
      origin.release();
      EXPECT_EQ(first.read_response("GET").body, "0");
    } else {
      origin.release();
      EXPECT_EQ(first.read_response("GET").body, "0");
      EXPECT_EQ(second.read_response("GET").body, "1");
    }
    proxy.drain();
    EXPECT_EQ(proxy.get("/a").body, "1");
    EXPECT_EQ(requests, 2);
    proxy.restart();
    EXPECT_NE(proxy.get("/a").body, "0");
  }
}

TEST(PurgeProxy, ADiskThatFailsIsSaid) {
  RoutedOrigin origin;
  origin.on("/a", ok("Cache-Control: max-age=60\r\n", "a"));
  auto gate = std::make_shared<secondsight::test::DiskGate>();
  RunningProxy proxy(origin.url(), with_purgers,
                     std::make_unique<secondsight::test::GatedFileSystem>(
                         std::make_unique<secondsight::test::SimFileSystem>(1), gate));
  proxy.get("/a");
  proxy.drain();
  gate->fail_change(gate->changes(), boost::system::errc::io_error);
  const RawResponse answer = proxy.send("PURGE", "/a");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body,
            "{\"purged\":[{\"url\":\"http://example.test/a\"}],\"soft\":false,\"durable\":false,"
            "\"reason\":\"Input/output error\"}\n");
  EXPECT_TRUE(says(proxy.get("/a"), "fwd=uri-miss")) << "in effect all the same";
  EXPECT_EQ(proxy.metric("secondsight_purges_not_durable_total"), 1);
  EXPECT_TRUE(eventually([&] {
    proxy.try_disk_again();
    return proxy.metric("secondsight_purges_owed") == 0;
  }));
}

}  // namespace
}  // namespace secondsight::proxy::test
