// Range requests: parts of what is stored, of what is still streaming in, and of neither.
#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/proxy/running_proxy.h"

namespace secondsight::proxy::test {
namespace {

using namespace literals;
using std::chrono::seconds;

constexpr const char* kFresh =
    "Cache-Control: max-age=60\r\nETag: \"v1\"\r\nContent-Type: text/x\r\n";

bool says(const RawResponse& response, std::string_view word) {
  return response.field("Cache-Status").find(word) != std::string::npos;
}

/// A body in which every stretch of a few bytes says where it is.
std::string numbered(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; text.size() < bytes; ++i) text += std::to_string(i) + ".";
  text.resize(bytes);
  return text;
}

/// An origin that serves ranges of one body as a good origin does.
std::string serve_ranges(const std::string& request, const std::string& body,
                         std::string_view fields = kFresh) {
  const auto at = request.find("Range: bytes=");
  if (at == std::string::npos || request.compare(at - 1, 1, "-") == 0) return ok(fields, body);
  const std::string spec = request.substr(at + 13, request.find("\r\n", at) - at - 13);
  const auto dash = spec.find('-');
  std::size_t first = 0;
  std::size_t last = body.size() - 1;
  if (dash == 0) {
    first = body.size() - std::stoul(spec.substr(1));
  } else {
    first = std::stoul(spec.substr(0, dash));
    if (dash + 1 < spec.size()) last = std::min(last, std::stoul(spec.substr(dash + 1)));
  }
  const std::string part = body.substr(first, last - first + 1);
  return "HTTP/1.1 206 Partial Content\r\n" + std::string(fields) + "Content-Range: bytes " +
         std::to_string(first) + "-" + std::to_string(last) + "/" + std::to_string(body.size()) +
         "\r\nContent-Length: " + std::to_string(part.size()) + "\r\n\r\n" + part;
}

/// Parts of a multipart/byteranges body: "range: bytes". Fails on anything malformed.
std::vector<std::string> parts_of(const RawResponse& response) {
  const std::string type = response.field("Content-Type");
  const std::string prefix = "multipart/byteranges; boundary=";
  EXPECT_EQ(type.substr(0, prefix.size()), prefix);
  const std::string delimiter = "\r\n--" + type.substr(prefix.size());
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (response.body.compare(at, delimiter.size() + 2, delimiter + "--") != 0) {
    if (response.body.compare(at, delimiter.size(), delimiter) != 0) {
      ADD_FAILURE() << "no delimiter at " << at << ":\n" << response.body;
      return parts;
    }
    const auto head_end = response.body.find("\r\n\r\n", at + delimiter.size());
    const std::string head = response.body.substr(at, head_end - at);
    const auto range = head.find("Content-Range: ");
    const auto next = response.body.find(delimiter, head_end);
    parts.push_back(head.substr(range + 15, head.find("\r\n", range) - range - 15) + ": " +
                    response.body.substr(head_end + 4, next - head_end - 4));
    EXPECT_NE(head.find("Content-Type: text/x"), std::string::npos);
    at = next;
  }
  EXPECT_EQ(response.body.substr(at), delimiter + "--\r\n");
  return parts;
}

TEST(ExchangeRange, SeveralRangesOfAStoredObjectComeAsMultipart) {
  for (const char* memory : {"memory", "disk"}) {
    SCOPED_TRACE(memory);
    const std::string body = numbered(400'000);
    RoutedOrigin origin;
    origin.on("/a", ok(kFresh, body));
    RunningProxy proxy(origin.url(), [&](Settings& s) {
      if (memory == std::string("disk")) s.cache.memory_bytes = 0;
    });
    proxy.get("/a");
    proxy.get("/a");
    proxy.drain();
    const auto fetches = origin.count("/a");
    const RawResponse response = proxy.get("/a", "Range: bytes=5-9,300000-300009,-3\r\n");
    EXPECT_EQ(response.status, 206);
    EXPECT_TRUE(response.whole);
    EXPECT_EQ(response.field("Content-Range"), "");
    EXPECT_EQ(response.field("ETag"), "\"v1\"");
    EXPECT_EQ(parts_of(response),
              (std::vector<std::string>{"bytes 5-9/400000: " + body.substr(5, 5),
                                        "bytes 300000-300009/400000: " + body.substr(300'000, 10),
                                        "bytes 399997-399999/400000: " + body.substr(399'997)}));
    const RawResponse one = proxy.get("/a", "Range: bytes=5-9,500000-\r\n");
    EXPECT_EQ(one.field("Content-Range"), "bytes 5-9/400000") << "one part is no multipart";
    EXPECT_EQ(one.body, body.substr(5, 5));
    EXPECT_EQ(origin.count("/a"), fetches);
  }
}

TEST(ExchangeRange, WhatCannotBeSatisfiedSaysNothingThatACacheCouldKeep) {
  RoutedOrigin origin;
  origin.on("/a", ok(kFresh, "0123456789"));
  RunningProxy proxy(origin.url());
  proxy.get("/a");
  const RawResponse response = proxy.get("/a", "Range: bytes=10-\r\n");
  EXPECT_EQ(response.status, 416);
  EXPECT_EQ(response.field("Content-Range"), "bytes */10");
  EXPECT_EQ(response.field("Cache-Control"), "no-store");
  EXPECT_EQ(response.field("ETag"), "");
  EXPECT_EQ(response.body, "");
}

TEST(ExchangeRange, AMissIsPassedThroughAndTheRepeatFillsTheWhole) {
  const std::string body = numbered(5000);
  RoutedOrigin origin;
  origin.on("/a", [&](const std::string& request) { return serve_ranges(request, body); });
  RunningProxy proxy(origin.url(), [](Settings& s) { s.cache.memory_bytes = 0; });

  const RawResponse first = proxy.get("/a", "Range: bytes=100-199\r\n");
  EXPECT_EQ(first.status, 206);
  EXPECT_EQ(first.body, body.substr(100, 100));
  EXPECT_NE(origin.requests().back().find("Range: bytes=100-199"), std::string::npos);
  EXPECT_EQ(proxy.metric("secondsight_filter_marked_keys"), 1) << "a sighting of the whole";

  const RawResponse second = proxy.get("/a", "Range: bytes=4000-4099\r\nIf-Range: \"v1\"\r\n");
  EXPECT_EQ(second.status, 206);
  EXPECT_EQ(second.field("Content-Range"), "bytes 4000-4099/5000");
  EXPECT_EQ(second.body, body.substr(4000, 100));
  EXPECT_TRUE(says(second, "stored; detail=repeat")) << second.field("Cache-Status");
  EXPECT_EQ(origin.requests().back().find("Range"), std::string::npos) << "asked for the whole";

  proxy.drain();
  const RawResponse whole = proxy.get("/a");
  EXPECT_TRUE(says(whole, "hit")) << whole.field("Cache-Status");
  EXPECT_EQ(whole.body, body);
  EXPECT_EQ(origin.count("/a"), 2U);
}

/// Serves ranges at once, and of a whole the first `bytes_at_once` before it waits to be released.
ScriptedOrigin::Script hesitant(const std::string& body, std::size_t bytes_at_once) {
  return [&body, bytes_at_once](OriginConnection& c) {
    for (;;) {
      const std::string request = c.read_request();
      if (request.empty()) return;
      const std::string response = serve_ranges(request, body);
      if (request.find("\r\nRange:") != std::string::npos) {
        c.send(response);
        continue;
      }
      c.send(std::string_view(response).substr(0, bytes_at_once));
      c.checkpoint();
      c.send(std::string_view(response).substr(bytes_at_once));
    }
  };
}

/// Until the origin has sent what it sends at once, and holds the rest back.
void wait_at_checkpoint(const ScriptedOrigin& origin) {
  const auto deadline = std::chrono::steady_clock::now() + seconds{20};
  while (origin.at_checkpoint() == 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_EQ(origin.at_checkpoint(), 1U);
}

TEST(ExchangeRange, PartsAreServedWhileTheWholeStillComes) {
  const std::string body = numbered(300'000);
  ScriptedOrigin origin(hesitant(body, 200'000));
  RunningProxy proxy(origin.url());
  proxy.get("/a", "Range: bytes=10-19\r\n");
  const RawResponse part = proxy.get("/a", "Range: bytes=1000-1099,150000-150099\r\n");
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(parts_of(part),
            (std::vector<std::string>{"bytes 1000-1099/300000: " + body.substr(1000, 100),
                                      "bytes 150000-150099/300000: " + body.substr(150'000, 100)}));
  wait_at_checkpoint(origin);  // so the rest has not come yet
  const RawResponse joined = proxy.get("/a", "Range: bytes=50-59\r\n");
  EXPECT_TRUE(says(joined, "collapsed")) << joined.field("Cache-Status");
  EXPECT_EQ(joined.body, body.substr(50, 10));
  origin.release();
  const RawResponse end = proxy.get("/a", "Range: bytes=-10\r\n");
  EXPECT_EQ(end.body, body.substr(body.size() - 10));
  EXPECT_EQ(origin.requests().size(), 2U);
}

TEST(ExchangeRange, WhoJumpsFarAheadOfTheStreamIsNotMadeToWait) {
  const std::string body = numbered(24U << 20);
  ScriptedOrigin origin(hesitant(body, 100'000));
  RunningProxy proxy(origin.url(), [](Settings& s) { s.cache.disk_bytes = 64_MiB; });
  proxy.get("/a", "Range: bytes=10-19\r\n");
  const RawResponse jump = proxy.get("/a", "Range: bytes=20000000-20000009\r\n");
  EXPECT_EQ(jump.status, 206);
  EXPECT_EQ(jump.body, body.substr(20'000'000, 10));
  wait_at_checkpoint(origin);  // so the whole goes on without this client
  EXPECT_NE(origin.requests().back().find("Range: bytes=20000000-20000009"), std::string::npos);
  origin.release();
  const RawResponse whole = proxy.get("/a");
  EXPECT_TRUE(whole.body == body);
  EXPECT_EQ(origin.requests().size(), 3U);
}

TEST(ExchangeRange, AWholeThatNobodyKeepsIsNotFetchedForAPart) {
  const std::string body = numbered(3U << 20);
  RoutedOrigin origin;
  origin.on("/a", [&](const std::string& request) { return serve_ranges(request, body); });
  RunningProxy proxy(origin.url(), [](Settings& s) { s.cache.max_object = 1_MiB; });
  for (int i = 0; i < 4; ++i) {
    const std::string first = std::to_string(2'000'000 + 100 * i);
    const RawResponse part = proxy.get("/a", "Range: bytes=" + first + "-" + first + "\r\n");
    EXPECT_EQ(part.status, 206);
    EXPECT_EQ(part.body, body.substr(std::stoul(first), 1));
  }
  EXPECT_EQ(origin.count("/a"), 5U) << "one look at the whole, and then none for a while";
}

TEST(ExchangeRange, TheOriginIsNotAskedTwiceForASmallWholeThatNobodyKeeps) {
  const std::string body = numbered(3000);
  RoutedOrigin origin;
  origin.on("/a", [&](const std::string& request) {
    const bool is_part = request.find("\r\nRange:") != std::string::npos;
    return is_part ? serve_ranges(request, body) : ok("Cache-Control: private\r\n", body);
  });
  RunningProxy proxy(origin.url());
  EXPECT_EQ(proxy.get("/a", "Range: bytes=10-19\r\n").status, 206);
  const RawResponse part = proxy.get("/a", "Range: bytes=2000-2009\r\n");
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, body.substr(2000, 10));
  EXPECT_TRUE(says(part, "detail=private"));
  EXPECT_EQ(origin.requests().back().find("Range:"), std::string::npos);
  EXPECT_EQ(origin.count("/a"), 2U);
  EXPECT_EQ(proxy.get("/a", "Range: bytes=0-9\r\n").status, 206);
  EXPECT_NE(origin.requests().back().find("Range:"), std::string::npos) << "known not to be kept";
}

/// What the last request to the origin asked for.
std::string asked_range(const RoutedOrigin& origin) {
  const std::string request = origin.requests().back();
  const auto at = request.find("\r\nRange: ");
  return at == std::string::npos ? ""
                                 : request.substr(at + 9, request.find("\r\n", at + 2) - at - 9);
}

TEST(ExchangeRange, APartIsKeptAndAnswersWhatLiesWithinIt) {
  const std::string body = numbered(5000);
  RoutedOrigin origin;
  origin.on("/a", [&](const std::string& request) { return serve_ranges(request, body); });
  RunningProxy proxy(origin.url());
  const RawResponse first = proxy.get("/a", "Range: bytes=1000-1999\r\n");
  EXPECT_TRUE(says(first, "stored; detail=part")) << first.field("Cache-Status");
  EXPECT_EQ(first.field("Content-Range"), "bytes 1000-1999/5000");

  const RawResponse inside = proxy.get("/a", "Range: bytes=1500-1509\r\n");
  EXPECT_EQ(inside.status, 206);
  EXPECT_TRUE(says(inside, "hit; ttl=60; detail=memory")) << inside.field("Cache-Status");
  EXPECT_EQ(inside.field("Content-Range"), "bytes 1500-1509/5000");
  EXPECT_EQ(inside.body, body.substr(1500, 10));
  EXPECT_EQ(parts_of(proxy.get("/a", "Range: bytes=1000-1009,1900-1909\r\n")),
            (std::vector<std::string>{"bytes 1000-1009/5000: " + body.substr(1000, 10),
                                      "bytes 1900-1909/5000: " + body.substr(1900, 10)}));
  EXPECT_EQ(origin.count("/a"), 1U);

  const RawResponse beyond = proxy.get("/a", "Range: bytes=1990-2009\r\n");
  EXPECT_TRUE(says(beyond, "fwd=partial")) << beyond.field("Cache-Status");
  EXPECT_EQ(beyond.body, body.substr(1990, 20));
  EXPECT_EQ(asked_range(origin), "") << "the second sighting fetches the whole";
  EXPECT_EQ(proxy.get("/a").body, body);
  EXPECT_EQ(origin.count("/a"), 2U);
}

TEST(ExchangeRange, AKeptBeginningIsCompletedInsteadOfFetchedAgain) {
  const std::string body = numbered(300'000);
  for (const bool by_a_range : {true, false}) {
    RoutedOrigin origin;
    origin.on("/a", [&](const std::string& request) { return serve_ranges(request, body); });
    RunningProxy proxy(origin.url());
    proxy.get("/a", "Range: bytes=0-199999\r\n");
    if (by_a_range) {
      const RawResponse part = proxy.get("/a", "Range: bytes=250000-250009\r\n");
      EXPECT_EQ(part.status, 206);
      EXPECT_EQ(part.body, body.substr(250'000, 10));
    } else {
      const RawResponse whole = proxy.get("/a");
      EXPECT_EQ(whole.status, 200);
      EXPECT_EQ(whole.field("Content-Range"), "");
      EXPECT_EQ(whole.field("Content-Length"), "300000");
      EXPECT_TRUE(whole.body == body);
    }
    EXPECT_EQ(asked_range(origin), "bytes=200000-");
    EXPECT_NE(origin.requests().back().find("If-Range: \"v1\""), std::string::npos);
    EXPECT_EQ(proxy.get("/a").body.size(), body.size());
    EXPECT_EQ(proxy.metric("secondsight_memory_objects"), 1) << "the whole in the part's place";
    proxy.drain();
    proxy.restart();
    const RawResponse stored = proxy.get("/a");
    EXPECT_TRUE(says(stored, "hit")) << stored.field("Cache-Status");
    EXPECT_TRUE(stored.body == body);
    EXPECT_EQ(origin.count("/a"), 2U);
  }
}

TEST(ExchangeRange, ABeginningOfAnotherVersionIsNotCompleted) {
  struct Row {
    const char* what;
    std::string answer;  // to who asks for the rest
  };
  const std::string body = numbered(5000);
  for (const Row& row : {
           Row{"the whole instead", ok("Cache-Control: max-age=60\r\nETag: \"v2\"\r\n", body)},
           Row{"another tag",
               "HTTP/1.1 206 Partial Content\r\nETag: \"v2\"\r\nContent-Range: bytes "
               "100-4999/5000\r\nContent-Length: 4900\r\n\r\n" +
                   body.substr(100)},
           Row{"no tag",
               "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes "
               "100-4999/5000\r\nContent-Length: 4900\r\n\r\n" +
                   body.substr(100)},
           Row{"other bytes",
               "HTTP/1.1 206 Partial Content\r\nETag: \"v1\"\r\nContent-Range: bytes "
               "200-4999/5000\r\nContent-Length: 4800\r\n\r\n" +
                   body.substr(200)},
           Row{"not to the end",
               "HTTP/1.1 206 Partial Content\r\nETag: \"v1\"\r\nContent-Range: bytes "
               "100-199/5000\r\nContent-Length: 100\r\n\r\n" +
                   body.substr(100, 100)},
           Row{"another length",
               "HTTP/1.1 206 Partial Content\r\nETag: \"v1\"\r\nContent-Range: bytes "
               "100-199/200\r\nContent-Length: 100\r\n\r\n" +
                   body.substr(100, 100)},
           Row{"nothing", "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n"},
       }) {
    SCOPED_TRACE(row.what);
    RoutedOrigin origin;
    origin.on("/a", [&](const std::string& request) -> std::string {
      if (request.find("\r\nRange: bytes=100-") != std::string::npos) return row.answer;
      return serve_ranges(request, body);
    });
    RunningProxy proxy(origin.url());
    proxy.get("/a", "Range: bytes=0-99\r\n");
    const RawResponse whole = proxy.get("/a");
    EXPECT_EQ(whole.status, 200);
    EXPECT_TRUE(whole.body == body);
    EXPECT_TRUE(proxy.get("/a").body == body);
  }
}

TEST(ExchangeRange, PartsThatMeetBecomeOneAndAllOfThemTheWhole) {
  const std::string body = numbered(5000);
  RoutedOrigin origin;
  origin.on("/a", [&](const std::string& request) { return serve_ranges(request, body); });
  RunningProxy proxy(origin.url(), [](Settings& s) { s.admission.policy = PolicyName::Never; });
  proxy.get("/a", "Range: bytes=1000-2999\r\n");
  proxy.get("/a", "Range: bytes=2500-3999\r\n");
  EXPECT_TRUE(says(proxy.get("/a", "Range: bytes=2000-3500\r\n"), "hit"));
  proxy.get("/a", "Range: bytes=-1000\r\n");
  proxy.get("/a", "Range: bytes=0-999\r\n");
  EXPECT_EQ(origin.count("/a"), 4U);
  const RawResponse whole = proxy.get("/a");
  EXPECT_TRUE(says(whole, "hit")) << whole.field("Cache-Status");
  EXPECT_EQ(whole.status, 200);
  EXPECT_EQ(whole.body, body);
  EXPECT_EQ(origin.count("/a"), 4U);
}

TEST(ExchangeRange, PartsAreNotKeptWithoutAStrongTagOrAgainstTheRules) {
  for (const char* fields :
       {"Cache-Control: max-age=60\r\n", "Cache-Control: max-age=60\r\nETag: W/\"v1\"\r\n",
        "Cache-Control: no-store\r\nETag: \"v1\"\r\n",
        "Cache-Control: max-age=60\r\nETag: \"v1\"\r\nVary: Accept\r\n"}) {
    SCOPED_TRACE(fields);
    const std::string body = numbered(5000);
    RoutedOrigin origin;
    origin.on("/a",
              [&](const std::string& request) { return serve_ranges(request, body, fields); });
    RunningProxy proxy(origin.url(), [](Settings& s) { s.admission.policy = PolicyName::Never; });
    for (int i = 0; i < 2; ++i) {
      const RawResponse part = proxy.get("/a", "Range: bytes=0-99\r\n");
      EXPECT_EQ(part.body, body.substr(0, 100));
      EXPECT_FALSE(says(part, "stored"));
    }
    EXPECT_EQ(origin.count("/a"), 2U);
  }
}

TEST(ExchangeRange, AnUnsafeRequestForgetsThePartsToo) {
  const std::string body = numbered(5000);
  RoutedOrigin origin;
  origin.on("/a", [&](const std::string& request) { return serve_ranges(request, body); });
  RunningProxy proxy(origin.url(), [](Settings& s) { s.admission.policy = PolicyName::Never; });
  proxy.get("/a", "Range: bytes=0-99\r\n");
  EXPECT_TRUE(says(proxy.get("/a", "Range: bytes=0-9\r\n"), "hit"));
  proxy.send("DELETE", "/a");
  EXPECT_FALSE(says(proxy.get("/a", "Range: bytes=0-9\r\n"), "hit"));
}

TEST(ExchangeRange, AStaleObjectIsValidatedAndItsPartServed) {
  for (const bool has_changed : {false, true}) {
    RoutedOrigin origin;
    bool changes = false;
    origin.on("/a", [&](const std::string& request) -> std::string {
      if (changes) return ok("Cache-Control: max-age=60\r\nETag: \"v2\"\r\n", "abcdefghij");
      if (request.find("If-None-Match: \"v1\"") != std::string::npos)
        return "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n";
      return ok(kFresh, "0123456789");
    });
    RunningProxy proxy(origin.url());
    proxy.get("/a");
    proxy.get("/a");
    proxy.clock.advance(seconds{61});
    changes = has_changed;
    const RawResponse part = proxy.get("/a", "Range: bytes=2-4\r\n");
    EXPECT_EQ(part.status, 206);
    EXPECT_EQ(part.body, has_changed ? "cde" : "234");
    EXPECT_EQ(part.field("Content-Range"), "bytes 2-4/10");
    EXPECT_EQ(origin.count("/a"), 2U);
    proxy.clock.advance(seconds{61});
    const RawResponse old = proxy.get("/a", "Range: bytes=2-4\r\nIf-Range: \"v1\"\r\n");
    EXPECT_EQ(old.status, has_changed ? 200 : 206) << "the part of a version that is gone";
  }
}

}  // namespace
}  // namespace secondsight::proxy::test
