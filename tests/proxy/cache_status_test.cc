// Every way through proxy/exchange*.cc with what it says of itself: the Cache-Status member (RFC
// 9211) and the access log's words. docs/operations.md has the same table; the last test compares.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "tests/proxy/flight_fixture.h"

namespace secondsight::proxy::test {
namespace {

using namespace literals;
using std::chrono::seconds;

constexpr const char* kFreshWithTag = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n";
constexpr const char* kNotModified =
    "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: max-age=60\r\n\r\n";
constexpr const char* kUnavailable =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

/// The words of the last line of the access log, "outcome detail". Stops the proxy.
std::string last_words(RunningProxy& proxy, const std::string& path) {
  proxy.stop();
  std::ifstream log(path);
  std::string last;
  for (std::string line; std::getline(log, line);) last = line;
  if (last.empty()) return "no line";
  const auto fields = boost::json::parse(last).as_object();
  std::string words(fields.at("outcome").as_string());
  if (const auto* detail = fields.if_contains("detail"))
    words.append(" ").append(detail->as_string());
  return words;
}

struct Request {
  const char* fields = "";
  const char* method = "GET";
  int wait_before = 0;  // seconds
  const char* body = "";
};

struct Row {
  const char* path;  // what happens
  const char* cache_status;
  const char* words;              // of the access log
  std::vector<Request> requests;  // the last one's answer counts
  std::vector<std::string> origin = {ok("Cache-Control: max-age=60\r\n", "hello")};
  // ^ answers, one for each request to the origin; the last one again and again; empty: it hangs up
  RunningProxy::Change change = {};
};

void no_memory(Settings& s) {
  s.cache.memory_bytes = 0;
}
void third_sighting(Settings& s) {
  s.admission.policy = PolicyName::NthSighting;
  s.admission.sightings = 3;
}
void always(Settings& s) {
  s.admission.policy = PolicyName::Always;
}

std::vector<Row> rows() {
  const std::string fresh = ok("Cache-Control: max-age=60\r\n", "hello");
  const std::string tagged = ok(kFreshWithTag, "hello");
  const std::string large = ok("Cache-Control: max-age=60\r\n", std::string(400'000, 'x'));
  const auto part = [](const char* range, const char* body) {
    return "HTTP/1.1 206 Partial Content\r\nContent-Length: " +
           std::to_string(std::string_view(body).size()) + "\r\nContent-Range: bytes " + range +
           "/5\r\n" + kFreshWithTag + "\r\n" + body;
  };
  const auto kept_off = [](const char* fields) { return std::vector{ok(fields, "hello")}; };
  return {
      // Answered from the cache.
      {"memory hit, the second sighting",
       "hit; ttl=60; stored; detail=memory",
       "hit memory",
       {{}, {}}},
      {"memory hit, written before", "hit; ttl=60; detail=memory", "hit memory", {{}, {}, {}}},
      {"disk hit", "hit; ttl=60; detail=disk", "hit disk", {{}, {}, {}}, {fresh}, no_memory},
      {"a condition answered 304",
       "hit; ttl=60; stored; detail=memory",
       "hit memory",
       {{}, {"If-None-Match: \"v1\"\r\n"}},
       {tagged}},
      {"a range answered 206",
       "hit; ttl=60; stored; detail=memory",
       "hit memory",
       {{}, {"Range: bytes=1-2\r\n"}}},
      {"HEAD", "hit; ttl=60; detail=memory", "hit memory", {{}, {"", "HEAD"}}},
      {"stale, allowed by the request",
       "hit; ttl=-10; stored; detail=memory",
       "hit memory",
       {{}, {"Cache-Control: max-stale\r\n", "GET", 70}}},
      {"stale, revalidated behind",
       "hit; ttl=-10; stored; detail=memory",
       "stale memory",
       {{}, {"", "GET", 70}},
       kept_off("Cache-Control: max-age=60, stale-while-revalidate=60\r\n")},
      // Fetched: why.
      {"nothing stored",
       "fwd=uri-miss; ttl=60; stored; detail=first-sighting",
       "miss first-sighting",
       {{}}},
      {"another variant stored",
       "fwd=vary-miss; ttl=60; stored; detail=first-sighting",
       "miss first-sighting",
       {{"Accept-Language: de\r\n"}, {"Accept-Language: en\r\n"}},
       kept_off("Cache-Control: max-age=60\r\nVary: Accept-Language\r\n")},
      {"stale, replaced",
       "fwd=stale; ttl=60; stored; detail=repeat",
       "miss repeat",
       {{}, {"", "GET", 70}}},
      {"stale, still good",
       "fwd=stale; fwd-status=304; ttl=60; stored; detail=memory",
       "revalidated memory",
       {{}, {"", "GET", 70}},
       {tagged, kNotModified}},
      {"fresh, refused by the request",
       "fwd=request; fwd-status=304; ttl=60; stored; detail=memory",
       "revalidated memory",
       {{}, {"Cache-Control: no-cache\r\n"}},
       {tagged, kNotModified}},
      {"no-cache of the response",
       "fwd=stale; fwd-status=304; ttl=60; stored; detail=memory",
       "revalidated memory",
       {{}, {}},
       {ok("Cache-Control: max-age=60, no-cache\r\nETag: \"v1\"\r\n", "a"),
        "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n"}},
      {"a method that is passed on",
       "fwd=method; detail=method",
       "bypass method",
       {{"", "DELETE"}}},
      {"an upgrade that the origin does not want",
       "fwd=bypass",
       "bypass",
       {{"Connection: Upgrade\r\nUpgrade: odd\r\n"}}},
      // Parts.
      {"a range, kept as a part",
       "fwd=uri-miss; ttl=60; stored; detail=part",
       "miss part",
       {{"Range: bytes=0-1\r\n"}},
       {part("0-1", "he")}},
      {"a range within the part that is kept",
       "hit; ttl=60; detail=memory",
       "hit memory",
       {{"Range: bytes=0-1\r\n"}, {"Range: bytes=1-1\r\n"}},
       {part("0-1", "he")}},
      {"a range beyond the part that is kept",
       "fwd=partial; ttl=60; stored; detail=repeat",
       "miss repeat",
       {{"Range: bytes=1-2\r\n"}, {"Range: bytes=2-3\r\n"}},
       {part("1-2", "el"), tagged}},
      {"the whole, whose beginning is kept",
       "fwd=uri-miss; ttl=60; stored; detail=repeat",
       "miss repeat",
       {{"Range: bytes=0-1\r\n"}, {}},
       {part("0-1", "he"), part("2-4", "llo")}},
      // Fetched: what became of it.
      {"first sighting, no memory tier",
       "fwd=uri-miss; detail=first-sighting",
       "miss first-sighting",
       {{}},
       {fresh},
       no_memory},
      {"second sighting, no memory tier",
       "fwd=uri-miss; ttl=60; stored; detail=repeat",
       "miss repeat",
       {{}, {}},
       {fresh},
       no_memory},
      {"policy always",
       "fwd=uri-miss; ttl=60; stored; detail=always",
       "miss always",
       {{}},
       {fresh},
       always},
      {"policy never",
       "fwd=uri-miss; ttl=60; stored; detail=never",
       "miss never",
       {{}},
       {fresh},
       [](Settings& s) { s.admission.policy = PolicyName::Never; }},
      {"policy nth-sighting, the second of three",
       "fwd=uri-miss; detail=few-sightings",
       "miss few-sightings",
       {{}, {}},
       {fresh},
       [](Settings& s) {
         third_sighting(s);
         no_memory(s);
       }},
      {"policy nth-sighting, the second of three, in memory",
       "hit; ttl=60; detail=memory",
       "hit memory",
       {{}, {}},
       {fresh},
       third_sighting},
      {"policy probability, drawn",
       "fwd=uri-miss; ttl=60; stored; detail=chance",
       "miss chance",
       {{}},
       {fresh},
       [](Settings& s) {
         s.admission.policy = PolicyName::Probability;
         s.admission.probability = 1;
       }},
      {"policy size-probability, not drawn",
       "fwd=uri-miss; ttl=60; stored; detail=not-chosen",
       "miss not-chosen",
       {{}},
       {ok("Cache-Control: max-age=60\r\n", std::string(2'000, 'x'))},
       [](Settings& s) {
         s.admission.policy = PolicyName::SizeProbability;
         s.admission.size_scale_bytes = 1;  // exp(-2000) is no double
       }},
      {"no disk",
       "fwd=uri-miss; ttl=60; stored; detail=no-disk",
       "miss no-disk",
       {{}},
       {fresh},
       [](Settings& s) {
         always(s);
         s.cache.disk_bytes = 0;
       }},
      {"too large",
       "fwd=uri-miss; detail=too-large",
       "miss too-large",
       {{}},
       {large},
       [](Settings& s) {
         always(s);
         s.cache.max_object = 100'000;
       }},
      {"the writer's queue is full",
       "fwd=uri-miss; detail=queue-full",
       "miss queue-full",
       {{}},
       {large},
       [](Settings& s) {
         always(s);
         no_memory(s);
         s.cache.write_queue = 1_MiB;
       }},
      // Not kept: why.
      {"HEAD, nothing stored", "fwd=uri-miss; detail=method", "miss method", {{"", "HEAD"}}},
      {"no-store of the request",
       "fwd=uri-miss; detail=request-no-store",
       "miss request-no-store",
       {{"Cache-Control: no-store\r\n"}}},
      {"no-store",
       "fwd=uri-miss; detail=no-store",
       "miss no-store",
       {{}},
       kept_off("Cache-Control: no-store\r\n")},
      {"private",
       "fwd=uri-miss; detail=private",
       "miss private",
       {{}},
       kept_off("Cache-Control: private, max-age=60\r\n")},
      {"Authorization",
       "fwd=uri-miss; detail=authorization",
       "miss authorization",
       {{"Authorization: Basic YQ==\r\n"}}},
      {"a status that is never kept",
       "fwd=uri-miss; detail=status",
       "miss status",
       {{}},
       {"HTTP/1.1 429 Too Many Requests\r\nCache-Control: max-age=60\r\nContent-Length: "
        "0\r\n\r\n"}},
      {"a range that may not be kept as a part",
       "fwd=uri-miss; detail=status",
       "miss status",
       {{"Range: bytes=0-1\r\n"}},
       {"HTTP/1.1 206 Partial Content\r\nContent-Length: 2\r\nContent-Range: bytes 0-1/5\r\n"
        "Cache-Control: max-age=60\r\n\r\nhe"}},
      {"Vary: *",
       "fwd=uri-miss; detail=vary-any",
       "miss vary-any",
       {{}},
       kept_off("Cache-Control: max-age=60\r\nVary: *\r\n")},
      {"no use to anyone",
       "fwd=uri-miss; detail=no-lifetime",
       "miss no-lifetime",
       {{}},
       kept_off("Cache-Control: max-age=0\r\n")},
      // The origin fails.
      {"an error, stale served instead",
       "fwd=stale; fwd-status=503; ttl=-10; stored; detail=memory",
       "stale memory",
       {{}, {"", "GET", 70}},
       {ok("Cache-Control: max-age=60, stale-if-error=60\r\n", "a"), kUnavailable}},
      {"no answer, stale served instead",
       "fwd=stale; ttl=-10; stored; detail=disconnected",
       "stale disconnected",
       {{}, {"", "GET", 70}},
       {ok("Cache-Control: max-age=60, stale-if-error=60\r\n", "a"), ""}},
      {"an error, passed on",
       "fwd=stale; detail=no-lifetime",
       "miss no-lifetime",
       {{}, {"", "GET", 70}},
       {ok("Cache-Control: max-age=60, must-revalidate\r\n", "a"), kUnavailable}},
      {"stale again, the origin spared after an error",
       "hit; ttl=-10; detail=stale-if-error",
       "stale stale-if-error",
       {{}, {"", "GET", 70}, {}},
       {fresh, kUnavailable}},
      {"no answer", "fwd=uri-miss; detail=disconnected", "error disconnected", {{}}, {""}},
      {"no answer to what is passed on",
       "fwd=method; detail=disconnected",
       "error disconnected",
       {{"", "DELETE"}},
       {""}},
      {"an answer that is none",
       "fwd=uri-miss; detail=malformed",
       "error malformed",
       {{}},
       {"HTTP/1.1 200 OK\r\nX : y\r\n\r\n"}},
      {"a 304 that nobody asked for",
       "fwd=uri-miss; detail=malformed",
       "error malformed",
       {{}},
       {kNotModified}},
      {"a body broken from its first byte",
       "fwd=uri-miss; detail=malformed",
       "error malformed",
       {{}},
       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: "
        "max-age=60\r\n\r\nzz\r\n"}},
      // Refused.
      {"only-if-cached, nothing to serve",
       "detail=only-if-cached",
       "error only-if-cached",
       {{"Cache-Control: only-if-cached\r\n"}}},
      // Answered without asking anyone.
      {"`OPTIONS` or `TRACE` that is to go no further",
       "detail=max-forwards",
       "bypass max-forwards",
       {{"Max-Forwards: 0\r\n", "OPTIONS"}}},
      {"`TRACE` with a body", "detail=trace-body", "error trace-body", {{"", "TRACE", 0, "body"}}},
  };
}

TEST(CacheStatus, EveryWayNamesItsDecision) {
  for (const Row& row : rows()) {
    std::size_t asked = 0;
    std::mutex mutex;
    ScriptedOrigin origin([&](OriginConnection& connection) {
      while (!connection.read_request().empty()) {
        std::string answer;
        {
          const std::lock_guard lock(mutex);
          answer = row.origin[std::min(asked++, row.origin.size() - 1)];
        }
        if (answer.empty() || !connection.send(answer)) return;
      }
    });
    const TemporaryDirectory folder;
    const std::string log = (folder.path() / "access.log").string();
    RunningProxy proxy(origin.url(), [&](Settings& s) {
      s.log.access = log;
      s.proxy.workers = 1;  // so that the log's last line is the last request's
      if (row.change) row.change(s);
    });
    RawResponse response;
    for (const Request& request : row.requests) {
      proxy.clock.advance(seconds{request.wait_before});
      response = proxy.send(request.method, "/a", request.fields, request.body);
      proxy.drain();
    }
    EXPECT_EQ(response.field("Cache-Status"), std::string("secondsight; ") + row.cache_status)
        << row.path;
    EXPECT_EQ(last_words(proxy, log), row.words) << row.path;
  }
}

TEST(CacheStatus, SharedFetchesAndThoseWaitedForInVain) {
  struct Case {
    const char* fields;
    std::vector<std::string> expected;  // in any order
  };
  for (const Case& c : {Case{"Cache-Control: max-age=60\r\n",
                             {"secondsight; fwd=uri-miss; ttl=60; stored; collapsed; detail=repeat",
                              "secondsight; fwd=uri-miss; ttl=60; stored; detail=first-sighting"}},
                        Case{"Cache-Control: private\r\n",
                             {"secondsight; fwd=uri-miss; collapsed=?0; detail=private",
                              "secondsight; fwd=uri-miss; detail=private"}}}) {
    ScriptedOrigin origin(answer_when_released(ok(c.fields, "hello")));
    RunningProxy proxy(origin.url());
    const auto first = ask(proxy, "/a");
    ASSERT_TRUE(eventually([&] { return origin.at_checkpoint() == 1; }));
    const auto second = ask(proxy, "/a");
    ASSERT_TRUE(collapsed(proxy, 1));
    release(origin, 2);
    std::vector<std::string> said{first->read_response().field("Cache-Status"),
                                  second->read_response().field("Cache-Status")};
    std::sort(said.begin(), said.end());
    EXPECT_EQ(said, c.expected);
  }
}

TEST(CacheStatus, StandsBehindTheCachesNearerTheOrigin) {
  RoutedOrigin origin;
  origin.on("/a", [](const std::string& request) -> std::string {
    if (request.find("If-None-Match") != std::string::npos) {
      return "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Status: far; hit\r\n"
             "Cache-Control: max-age=60\r\n\r\n";
    }
    return ok(std::string(kFreshWithTag) + "Cache-Status: far; fwd=uri-miss, near; hit\r\n", "a");
  });
  RunningProxy proxy(origin.url());
  const auto members = [&](const char* more = "") {
    std::string all;
    std::istringstream lines(proxy.get("/a", more).head);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("Cache-Status: ")) continue;
      all.append(all.empty() ? "" : ", ").append(line.substr(14));
      if (all.back() == '\r') all.pop_back();
    }
    return all;
  };
  EXPECT_EQ(members(),
            "far; fwd=uri-miss, near; hit, "
            "secondsight; fwd=uri-miss; ttl=60; stored; detail=first-sighting");
  EXPECT_EQ(members(),
            "far; fwd=uri-miss, near; hit, secondsight; hit; ttl=60; stored; detail=memory")
      << "what they said when we asked them is kept with the response";
  proxy.clock.advance(seconds{61});
  EXPECT_EQ(members(), "far; hit, secondsight; fwd=stale; fwd-status=304; ttl=60; detail=memory")
      << "a 304 brings what they say now";
  EXPECT_EQ(members("If-None-Match: \"v1\"\r\n"), "secondsight; hit; ttl=60; detail=memory")
      << "a 304 to the client has only our own word";
}

TEST(CacheStatus, TheManualHasTheSameTable) {
  std::ifstream manual(SECONDSIGHT_MANUAL);
  std::stringstream text;
  text << manual.rdbuf();
  for (const Row& row : rows()) {
    const std::string line =
        "| " + std::string(row.path) + " | `" + row.cache_status + "` | `" + row.words + "` |\n";
    EXPECT_NE(text.str().find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace secondsight::proxy::test
