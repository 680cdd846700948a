// What is explained is what then happens: the explanation of a request, against the Cache-Status of
// the same request sent right after.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include "tests/proxy/flight_fixture.h"

namespace secondsight::proxy::test {
namespace {

using std::chrono::seconds;
namespace json = boost::json;

std::string head_text(std::string_view method, std::string_view target, std::string_view fields) {
  std::string text(method);
  text.append(" ").append(target).append(" HTTP/1.1\r\nHost: example.test\r\n").append(fields);
  return text.append("\r\n");
}

RawResponse explain(const RunningProxy& proxy, const std::string& head) {
  RawClient client(proxy.admin_port());
  client.send("POST /explain HTTP/1.1\r\nHost: a\r\nContent-Length: " +
              std::to_string(head.size()) + "\r\n\r\n" + head);
  return client.read_response("POST");
}

json::object facts_of(const RunningProxy& proxy, std::string_view method, std::string_view target,
                      std::string_view fields = {}) {
  const RawResponse answer = explain(proxy, head_text(method, target, fields));
  EXPECT_EQ(answer.status, 200) << answer.body;
  return json::parse(answer.body).at("facts").as_object();
}

bool has(std::string_view text, const std::string& part) {
  return (std::string(text) + ";").find("; " + part + ";") != std::string::npos;
}

/// The origin of the table: what it answers is in the target.
std::string answer_of(const std::string& request) {
  const auto asks = [&](const char* text) { return request.find(text) != std::string::npos; };
  if (asks(" /broken")) return "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n";
  if (asks("If-None-Match: \"v1\"")) return "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n";
  std::string fields;
  if (asks(" /tag")) fields += "ETag: \"v1\"\r\n";
  if (asks(" /vary")) fields += "Vary: Accept-Language\r\n";
  std::string control = "max-age=60";
  if (asks("private")) control += ", private";
  if (asks("no-cache")) control += ", no-cache";
  if (asks("must")) control += ", must-revalidate";
  if (asks("behind")) control += ", stale-while-revalidate=30";
  return ok(fields + "Cache-Control: " + control + "\r\n", "hello");
}

struct Step {
  const char* target;
  const char* fields = "";
  const char* method = "GET";
  int wait = 0;  // seconds, before
};

const std::vector<Step>& steps() {
  static const std::vector<Step> all{
      {"/a"},
      {"/a"},
      {"/a"},
      {"/a", "", "HEAD"},
      {"/a", "Range: bytes=1-2\r\n"},
      {"/a", "Cache-Control: no-cache\r\n"},
      {"/a", "Cache-Control: max-age=0\r\n"},
      {"/a", "Cache-Control: only-if-cached\r\n"},
      {"/b", "Cache-Control: only-if-cached\r\n"},
      {"/b", "Cache-Control: no-store\r\n"},
      {"/b", "", "HEAD"},
      {"/b"},
      {"/b", "", "POST"},
      {"/b"},
      {"/tag"},
      {"/tag", "If-None-Match: \"v1\"\r\n"},
      {"/tag/no-cache"},
      {"/tag/no-cache"},
      {"/tag/must"},
      {"/behind"},
      {"/behind"},
      {"/private"},
      {"/private"},
      {"/vary", "Accept-Language: de\r\n"},
      {"/vary", "Accept-Language: en\r\n"},
      {"/vary", "Accept-Language: en\r\n"},
      {"/vary"},
      {"/a", "", "GET", 20},
      {"/a", "Cache-Control: max-age=10\r\n"},
      {"/tag", "Cache-Control: min-fresh=50\r\n"},
      {"/a", "", "OPTIONS", 50},
      {"/a", "Cache-Control: max-stale=100\r\n"},
      {"/a"},
      {"/tag", "Cache-Control: max-stale=1\r\n"},
      {"/tag", "", "HEAD"},
      {"/tag"},
      {"/tag"},
      {"/tag/must", "Cache-Control: max-stale\r\n"},
      {"/behind", "", "HEAD"},
      {"/behind", "Cache-Control: max-age=1\r\n"},
      {"/vary", "Accept-Language: de\r\n", "GET", 1},
      {"/vary", "Accept-Language: de\r\n", "DELETE"},
      {"/vary", "Accept-Language: de\r\n"},
      {"/broken"},
  };
  return all;
}

/// The origin answers at once, so that nothing but its answer is left open by an explanation.
void compare(const json::object& facts, const RawResponse& response, const std::string& shown) {
  const std::string status = response.field("Cache-Status");
  const auto& next = facts.at("next").as_object();
  const std::string action(next.at("action").as_string());
  const auto word = [&](const char* name) {
    return next.at(name).is_null() ? std::string() : std::string(next.at(name).as_string());
  };
  if (action == "hit" || action == "stale-hit") {
    EXPECT_TRUE(has(status, "hit")) << shown;
    EXPECT_TRUE(has(status, "detail=" + word("detail"))) << shown;
    EXPECT_EQ(has(status, "stored"), word("keeps") == "disk") << shown;
    const auto left = facts.at("freshness").at("seconds_left").as_int64();
    EXPECT_TRUE(has(status, "ttl=" + std::to_string(left))) << shown;
  } else if (action == "refuse") {
    EXPECT_EQ(response.status, 504) << shown;
  } else {
    EXPECT_TRUE(has(status, "fwd=" + word("forward"))) << shown;
    const bool is_freshened = has(status, "fwd-status=304");
    EXPECT_LE(is_freshened, action == "validate") << shown;
    // Whether the response may be kept is the origin's to say; if so, it is as foreseen.
    // Nor is it known that a URL varies while nothing is kept of it, and the sighting is then the
    // variant's.
    const bool varies_unknown = facts.at("variant").is_null() && !response.field("Vary").empty();
    if (varies_unknown) return;
    if ((action == "fetch" || action == "validate") && !is_freshened && has(status, "stored")) {
      EXPECT_TRUE(has(status, "detail=" + word("detail"))) << shown;
      EXPECT_NE(word("keeps"), "nothing") << shown;
    }
    EXPECT_FALSE(word("keeps") == "nothing" && has(status, "stored")) << shown;
  }
}

TEST(ExplainTruth, WhatIsForeseenHappens) {
  struct Setting {
    const char* name;
    RunningProxy::Change change;
  };
  const Setting settings[] = {
      {"second sighting", [](Settings&) {}},
      {"no memory tier", [](Settings& s) { s.cache.memory_bytes = 0; }},
      {"no disk", [](Settings& s) { s.cache.disk_bytes = 0; }},
      {"always", [](Settings& s) { s.admission.policy = PolicyName::Always; }},
      {"never", [](Settings& s) { s.admission.policy = PolicyName::Never; }},
  };
  for (const Setting& setting : settings) {
    ScriptedOrigin origin([](OriginConnection& connection) {
      for (;;) {
        const std::string request = connection.read_request();
        if (request.empty() || !connection.send(answer_of(request))) return;
      }
    });
    RunningProxy proxy(origin.url(), [&](Settings& s) {
      s.admin.enabled = true;
      s.proxy.workers = 1;
      setting.change(s);
    });
    for (std::size_t i = 0; i < steps().size(); ++i) {
      const Step& step = steps()[i];
      proxy.clock.advance(seconds{step.wait});
      const auto facts = facts_of(proxy, step.method, step.target, step.fields);
      const auto asked = origin.requests().size();
      const RawResponse response = proxy.send(step.method, step.target, step.fields);
      const std::string shown = std::string(setting.name) + ", step " + std::to_string(i) + ": " +
                                step.method + " " + step.target + " " + step.fields +
                                json::serialize(facts) + "\n" + response.head;
      compare(facts, response, shown);
      // Validators reach the origin as foretold.
      for (const json::value& validator : facts.at("next").at("validators").as_array()) {
        ASSERT_GT(origin.requests().size(), asked) << shown;
        EXPECT_NE(origin.requests()[asked].find(std::string(validator.as_string()) + "\r\n"),
                  std::string::npos)
            << shown;
      }
      // What goes on behind a stale answer has to end before the next is foreseen.
      ASSERT_TRUE(eventually([&] { return proxy.metric("secondsight_flights") == 0; })) << shown;
      proxy.drain();
    }
  }
}

TEST(ExplainTruth, ExplainingChangesNothing) {
  RoutedOrigin origin;
  origin.on("/a", ok(kFresh, "hello"));
  RunningProxy proxy(origin.url(), [](Settings& s) { s.admin.enabled = true; });
  for (int i = 0; i < 3; ++i) {
    const auto facts = facts_of(proxy, "GET", "/a");
    EXPECT_EQ(facts.at("filter"), "first-sighting");
    EXPECT_EQ(facts.at("next").at("forward"), "uri-miss");
  }
  EXPECT_EQ(origin.count("/a"), 0U);
  EXPECT_EQ(proxy.metric("secondsight_filter_marked_keys"), 0);
  proxy.get("/a");
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(facts_of(proxy, "GET", "/a").at("next").at("keeps"), "disk");
  proxy.drain();
  EXPECT_EQ(proxy.metric("secondsight_index_objects"), 0)
      << "explaining a hit is no second sighting";
  EXPECT_EQ(proxy.get("/a").field("Cache-Status"),
            "secondsight; hit; ttl=60; stored; detail=memory");
  proxy.drain();
  proxy.restart();
  for (int i = 0; i < 3; ++i) {
    const auto facts = facts_of(proxy, "GET", "/a");
    EXPECT_EQ(facts.at("object").at("on_disk"), true);
    EXPECT_EQ(facts.at("object").at("in_memory"), false) << "explaining brings nothing into memory";
    EXPECT_EQ(facts.at("object").at("body_bytes"), 5);
    EXPECT_EQ(facts.at("filter"), "first-sighting");
  }
  EXPECT_EQ(proxy.metric("secondsight_memory_objects"), 0);
  EXPECT_EQ(proxy.metric("secondsight_requests_total{outcome=\"hit\"}"), 0);
}

TEST(ExplainTruth, AFetchUnderWayAndWhatWasUncacheableLately) {
  ScriptedOrigin origin(answer_when_released(ok("Cache-Control: private\r\n", "x")));
  RunningProxy proxy(origin.url(), [](Settings& s) { s.admin.enabled = true; });
  EXPECT_EQ(facts_of(proxy, "GET", "/a").at("is_being_fetched"), false);
  const auto client = ask(proxy, "/a");
  ASSERT_TRUE(eventually([&] { return origin.at_checkpoint() == 1; }));
  const auto under_way = facts_of(proxy, "GET", "/a");
  EXPECT_EQ(under_way.at("is_being_fetched"), true);
  EXPECT_EQ(under_way.at("next").at("joins"), true);
  EXPECT_EQ(facts_of(proxy, "GET", "/a", "Authorization: x\r\n").at("next").at("joins"), false);
  EXPECT_EQ(under_way.at("is_remembered_as_uncacheable"), false);
  origin.release();
  EXPECT_EQ(client->read_response().body, "x");
  EXPECT_EQ(facts_of(proxy, "GET", "/a").at("is_remembered_as_uncacheable"), true);
  proxy.clock.advance(seconds{11});
  EXPECT_EQ(facts_of(proxy, "GET", "/a").at("is_remembered_as_uncacheable"), false);
}

TEST(ExplainTruth, ADamagedObjectIsToldAsTheMissThatItIs) {
  RoutedOrigin origin;
  origin.on("/a", ok(kFresh, "hello"));
  RunningProxy proxy(origin.url(), [](Settings& s) {
    s.admin.enabled = true;
    s.cache.memory_bytes = 0;
  });
  proxy.get("/a");
  proxy.get("/a");
  proxy.drain();
  EXPECT_EQ(facts_of(proxy, "GET", "/a").at("next").at("action"), "hit");
  for (const auto& file : std::filesystem::directory_iterator(proxy.directory() / "cache"))
    if (file.path().extension() == ".segment") std::filesystem::resize_file(file.path(), 64);
  EXPECT_EQ(facts_of(proxy, "GET", "/a").at("next").at("action"), "fetch");
}

TEST(ExplainTruth, WhatTheProxyWouldRefuseIsRefused) {
  RoutedOrigin origin;
  RunningProxy proxy(origin.url(), [](Settings& s) {
    s.admin.enabled = true;
    s.proxy.max_header_fields = 4;
  });
  struct Row {
    std::string head;
    const char* reason;
  };
  for (const Row& row : {
           Row{"", "not a whole request head"},
           Row{"GET /a HTTP/1.1\r\nHost: a\r\n", "not a whole request head"},
           Row{"hello\r\n\r\n", "request-line"},
           Row{"GET /a HTTP/1.1\r\n\r\n", "host"},
           Row{"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "method"},
           Row{"GET /a HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n", "field-line"},
           Row{head_text("GET", "/a", "A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\n"), "too-many-fields"},
           Row{head_text("GET", "/a", "") + "GET", "more than one request head"},
       }) {
    const RawResponse answer = explain(proxy, row.head);
    EXPECT_EQ(answer.status, 400) << row.head;
    EXPECT_NE(answer.body.find(row.reason), std::string::npos) << row.head << answer.body;
  }
}

}  // namespace
}  // namespace secondsight::proxy::test
