// What is explained is what then happens: the explanation of a request, against the Cache-Status of
// the same request sent right after.
#include <set>

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
                      const std::string& fields = {}) {
  const RawResponse answer = explain(proxy, head_text(method, target, fields));
  EXPECT_EQ(answer.status, 200) << answer.body;
  return json::parse(answer.body).at("facts").as_object();
}

bool has(std::string_view text, const std::string& part) {
  return (std::string(text) + ";").find("; " + part + ";") != std::string::npos;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr std::size_t kPartedBytes = 600;

/// What is left of a body that has a Range of one part. Any If-Range is agreed to.
std::string part_of(const std::string& request, const std::string& fields,
                    const std::string& body) {
  constexpr std::string_view kRange = "Range: bytes=";
  const auto at = request.find(kRange);
  if (at == std::string::npos) return ok(fields, body);
  const std::size_t first = std::stoul(request.substr(at + kRange.size()));
  const std::string end = request.substr(request.find('-', at) + 1, 1);
  const std::size_t last =
      end == "\r" ? body.size() - 1 : std::stoul(request.substr(request.find('-', at) + 1));
  const std::string part = body.substr(first, last + 1 - first);
  return "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes " + std::to_string(first) + "-" +
         std::to_string(last) + "/" + std::to_string(body.size()) +
         "\r\nContent-Length: " + std::to_string(part.size()) + "\r\n" + fields + "\r\n" + part;
}

/// One language a request; French can be answered with German.
std::string in_language(const std::string& request) {
  if (contains(request, "If-None-Match: ") && contains(request, "Accept-Language: fr"))
    return "HTTP/1.1 304 Not Modified\r\nETag: \"de\"\r\n\r\n";
  const auto at = request.find("Accept-Language: ") + sizeof("Accept-Language: ") - 1;
  const std::string language = request.substr(at, 2);
  const std::string fields =
      "Vary: Accept-Language\r\nCache-Control: max-age=600\r\n"
      "Content-Language: " +
      language + "\r\nETag: \"" + language + "\"\r\n";
  return part_of(request, fields, "hello");
}

/// The origin of the table: what it answers is in the target.
std::string answer_of(const std::string& request) {
  const auto asks = [&](const char* text) { return contains(request, text); };
  if (asks(" /lang")) return in_language(request);
  if (asks("Fail: 1")) return "HTTP/1.1 503 Down\r\nContent-Length: 0\r\n\r\n";
  if (asks(" /part"))
    return part_of(request, "Cache-Control: max-age=60\r\n", body_of(kPartedBytes));
  if (asks(" /kept")) {
    const std::string control = asks("private") ? "private" : "max-age=60";
    return part_of(request, "ETag: \"v1\"\r\nCache-Control: " + control + "\r\n",
                   body_of(kPartedBytes));
  }
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
  return part_of(request, fields + "Cache-Control: " + control + "\r\n", "hello");
}

struct Step {
  const char* target;
  const char* fields = "";
  const char* method = "GET";
  int wait = 0;  // seconds, before
  const char* body = "";
};

constexpr const char* kUpgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";

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
      // Parts: kept for those that ask for less, ...
      {"/kept/a", "Range: bytes=100-299\r\n"},
      {"/kept/a", "Range: bytes=150-159\r\n"},
      {"/kept/a", "Range: bytes=290-299,100-109\r\n"},
      {"/kept/a", "Range: bytes=150-159\r\nIf-Range: \"v1\"\r\n"},
      {"/kept/a", "Range: bytes=-400\r\nCache-Control: only-if-cached\r\n"},
      {"/kept/a", "Range: bytes=150-159\r\nCache-Control: no-cache\r\n"},
      {"/kept/a", "Range: bytes=150-159\r\nIf-None-Match: \"v0\"\r\n"},
      {"/kept/a", "Range: bytes=150-159\r\n", "HEAD"},
      {"/kept/a", "Range: bytes=290-309\r\n"},
      {"/kept/private", "Range: bytes=0-9\r\n"},
      {"/kept/private", "Range: bytes=0-9\r\n"},
      // ... or completed by those that ask for more, ...
      {"/kept/b", "Range: bytes=0-99\r\n"},
      {"/kept/b"},
      {"/kept/b", "Range: bytes=0-9\r\n"},
      {"/kept/c", "Range: bytes=0-99\r\n"},
      {"/kept/c", "Range: bytes=90-109\r\n"},
      {"/kept/c", "Range: bytes=100-109\r\n"},
      {"/kept/d", "Range: bytes=0-99\r\n"},
      {"/kept/d", "Range: bytes=90-109\r\nIf-Range: \"v0\"\r\n"},
      // ... also when they are stale, ...
      {"/kept/e", "Range: bytes=0-99\r\n"},
      {"/kept/e", "Range: bytes=0-9\r\nCache-Control: max-stale=100\r\n", "GET", 70},
      {"/kept/e", "Range: bytes=0-9\r\n"},
      // ... of what is not stored, under no tag, ...
      {"/part", "Range: bytes=10-19\r\n"},
      {"/part", "Range: bytes=20-29\r\n"},
      {"/part/if", "Range: bytes=20-29\r\nIf-Range: \"x\"\r\n"},
      {"/part/if", "Range: bytes=20-29\r\nIf-Range: \"x\"\r\n"},
      {"/part/alone", "Range: bytes=1-2\r\nAuthorization: x\r\n"},
      {"/part/head", "Range: bytes=1-2\r\n", "HEAD"},
      // ... of what is, ...
      {"/part"},
      {"/part", "Range: bytes=0-0\r\n"},
      {"/part", "Range: bytes=590-\r\n"},
      {"/part", "Range: bytes=-7\r\n"},
      {"/part", "Range: bytes=300-309,0-9\r\n"},
      {"/part", "Range: bytes=600-\r\n"},
      {"/part", "Range: lines=1-2\r\n"},
      {"/part", "Range: bytes=1-2\r\nIf-Range: \"x\"\r\n"},
      {"/part", "Range: bytes=1-2\r\nIf-Modified-Since: Thu, 01 Jan 2099 00:00:00 GMT\r\n"},
      {"/part", "Range: bytes=1-2\r\n", "HEAD"},
      // ... and of what is stale, with and without a validator.
      {"/part", "Range: bytes=1-2\r\nCache-Control: no-cache\r\n"},
      {"/part", "Range: bytes=5-9\r\n", "GET", 70},
      {"/tag", "Range: bytes=1-2\r\n"},
      // Variants: by their values, by their language, and by a tag that the origin picks.
      {"/lang", "Accept-Language: de-AT, de;q=0.5\r\n"},
      {"/lang", "Accept-Language: de-AT, de;q=0.5\r\n"},
      {"/lang", "Accept-Language: de\r\n"},
      {"/lang", "Accept-Language: en\r\n"},
      {"/lang", "Accept-Language: en\r\n"},
      {"/lang", "Accept-Language: fr\r\n"},
      {"/lang", "Accept-Language: es\r\nRange: bytes=0-1\r\n"},
      {"/lang", "Accept-Language: es\r\nRange: bytes=1-1\r\n"},
      {"/lang", "Accept-Language: es\r\nIf-None-Match: \"x\"\r\n"},
      {"/lang", "Accept-Language: it\r\nRange: bytes=0-1\r\n"},
      {"/lang", "Accept-Language: it\r\n"},
      // An origin that fails is spared for a while.
      {"/err"},
      {"/err", "Fail: 1\r\n"},
      {"/err", "Fail: 1\r\n", "GET", 70},
      {"/err", "Fail: 1\r\n"},
      {"/err", "Range: bytes=1-2\r\n"},
      {"/err", "", "HEAD"},
      {"/err", "Cache-Control: no-cache\r\n"},
      {"/err", "Cache-Control: only-if-cached\r\n"},
      {"/err", "", "GET", 6},
      // What the cache has no part in.
      {"/up", kUpgrade},
      {"/up", kUpgrade, "HEAD"},
      {"/up", "Max-Forwards: 0\r\n", "OPTIONS"},
      {"/up", "Max-Forwards: 1\r\n", "OPTIONS"},
      {"/up", "Max-Forwards: 0\r\n", "TRACE"},
      {"/up", "", "TRACE"},
      {"/up", "", "TRACE", 0, "abc"},
  };
  return all;
}

using Requests = std::vector<std::string>;

std::string word_of(const json::object& facts, const char* name) {
  const auto& value = facts.at("next").at(name);
  return value.is_null() ? std::string() : std::string(value.as_string());
}

/// No client of these tests leaves a part open at its end where the proxy would ask for it.
bool is_for_rest(const std::string& request) {
  const auto at = request.find("\r\nRange: ");
  return at != std::string::npos && request[request.find("\r\n", at + 2) - 1] == '-';
}

/// Status and parts as foretold, and the origin asked for what was foretold.
void compare_range(const json::object& range, const RawResponse& response, const Requests& asked,
                   const std::string& shown) {
  if (!range.at("status").is_null()) {
    EXPECT_EQ(response.status, range.at("status").as_int64()) << shown;
  }
  const auto& parts = range.at("parts").as_array();
  for (const json::value& part : parts) {
    const std::string line = "bytes " + json::serialize(part.at("first")) + "-" +
                             json::serialize(part.at("last")) + "/" +
                             json::serialize(range.at("complete_bytes"));
    if (parts.size() == 1)
      EXPECT_EQ(response.field("Content-Range"), line) << shown;
    else
      EXPECT_TRUE(contains(response.body, "Content-Range: " + line + "\r\n")) << shown;
  }
  std::string asked_for;
  for (const std::string& request : asked) {
    asked_for += asked_for.empty() ? "" : "-then-";
    asked_for += is_for_rest(request)               ? "rest"
                 : contains(request, "\r\nRange: ") ? "part"
                                                    : "whole";
  }
  EXPECT_EQ(asked_for, range.at("asks_for").is_null() ? "" : range.at("asks_for").as_string())
      << shown;
}

/// What the first request to the origin says of what is stored, as foretold.
void compare_conditions(const json::object& facts, const Step& step, const Requests& asked,
                        const std::string& shown) {
  const auto& next = facts.at("next").as_object();
  std::vector<std::string> lines;
  for (const json::value& validator : next.at("validators").as_array())
    lines.emplace_back(validator.as_string());
  std::string tags;
  for (const json::value& tag : next.at("names_tags").as_array())
    tags.append(tags.empty() ? "" : ", ").append(tag.as_string());
  if (!tags.empty()) lines.push_back("If-None-Match: " + tags);
  const auto* completes = next.at("completes").if_object();
  if (completes != nullptr) {
    for (const auto& [name, field] :
         {std::pair("Range", "range"), std::pair("If-Range", "if_range")})
      lines.push_back(std::string(name) + ": " + std::string(completes->at(field).as_string()));
  }
  if (!asked.empty()) {
    EXPECT_EQ(is_for_rest(asked.front()), completes != nullptr) << shown;
  }
  for (const std::string& line : lines) {
    ASSERT_FALSE(asked.empty()) << shown;
    EXPECT_TRUE(contains(asked.front(), "\r\n" + line + "\r\n")) << shown;
  }
  const bool names_none = tags.empty() && next.at("validators").as_array().empty();
  if (names_none && !contains(step.fields, "If-None-Match")) {
    for (const std::string& request : asked)
      EXPECT_FALSE(contains(request, "If-None-Match")) << shown;
  }
}

/// What the table has come to, so that it is seen to reach all that can be foretold.
void note_kinds(const json::object& facts, std::set<std::string>& kinds) {
  const auto& next = facts.at("next").as_object();
  kinds.insert(word_of(facts, "action"));
  kinds.insert("filter-" + std::string(facts.at("filter").as_string()));
  if (word_of(facts, "keeps") == "by-chance") kinds.insert("by-chance-" + word_of(facts, "action"));
  if (word_of(facts, "detail") == "stale-if-error") kinds.insert("spared");
  if (!next.at("names_tags").as_array().empty()) kinds.insert("names-tags");
  if (!next.at("completes").is_null()) kinds.insert("completes");
  if (word_of(facts, "forward") == "partial") kinds.insert("partial");
  if (word_of(facts, "action") == "hit" && facts.at("stored") == false) kinds.insert("part-hit");
  if (facts.at("variant").is_object() && facts.at("variant").at("is_by_language").as_bool())
    kinds.insert("by-language");
  if (const auto* range = next.at("range").if_object()) {
    kinds.insert("range-" + json::serialize(range->at("status")));
    if (range->at("parts").as_array().size() > 1) kinds.insert("multipart");
    if (!range->at("asks_for").is_null())
      kinds.insert(word_of(facts, "action") + "-" + std::string(range->at("asks_for").as_string()));
  }
}

/// The origin answers at once, so that nothing but its answer is left open by an explanation.
void compare(const json::object& facts, const RawResponse& response, const std::string& shown) {
  const std::string status = response.field("Cache-Status");
  const auto& next = facts.at("next").as_object();
  const std::string action(next.at("action").as_string());
  const auto word = [&](const char* name) { return word_of(facts, name); };
  if (action == "hit" || action == "stale-hit") {
    EXPECT_TRUE(has(status, "hit")) << shown;
    EXPECT_TRUE(has(status, "detail=" + word("detail"))) << shown;
    if (word("keeps") != "by-chance") {
      EXPECT_EQ(has(status, "stored"), word("keeps") == "disk") << shown;
    }
    const auto& used = facts.at(facts.at("stored").as_bool() ? "freshness" : "part");
    const auto left = used.at("seconds_left").as_int64();
    EXPECT_TRUE(has(status, "ttl=" + std::to_string(left))) << shown;
  } else if (action == "refuse") {
    EXPECT_EQ(response.status, 504) << shown;
  } else if (action == "answer-here") {
    EXPECT_EQ(status, "secondsight; detail=" + word("detail")) << shown;
  } else {
    EXPECT_TRUE(has(status, "fwd=" + word("forward"))) << shown;
    const bool is_freshened = has(status, "fwd-status=304");
    EXPECT_LE(is_freshened, action == "validate" || !next.at("names_tags").as_array().empty())
        << shown;
    if (contains(status, "; fwd-status=50")) return;  // an error, and what is stored in its place
    // Whether the response may be kept is the origin's to say; if so, it is as foreseen.
    // Nor is it known that a URL varies while nothing is kept of it, and the sighting is then the
    // variant's.
    const bool varies_unknown = facts.at("variant").is_null() && !response.field("Vary").empty();
    if (varies_unknown) return;
    if (word("keeps") == "by-chance") {
      EXPECT_EQ(word("detail"), "") << shown;
      if ((action == "fetch" || action == "validate") && !is_freshened && has(status, "stored")) {
        EXPECT_TRUE(has(status, "detail=chance") || has(status, "detail=not-chosen")) << shown;
      }
      return;
    }
    if ((action == "fetch" || action == "validate") && !is_freshened && has(status, "stored")) {
      EXPECT_TRUE(has(status, "detail=" + word("detail"))) << shown;
      EXPECT_NE(word("keeps"), "nothing") << shown;
    }
    EXPECT_FALSE(word("keeps") == "nothing" && has(status, "stored")) << shown;
    if (response.status == 206 && word("detail") == "part") {
      const bool may_be_kept =
          !response.field("ETag").empty() && response.field("Cache-Control") != "private";
      EXPECT_EQ(has(status, "stored"), may_be_kept) << shown;
    }
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
      {"third sighting", [](Settings& s) { s.admission.policy = PolicyName::NthSighting; }},
      {"by chance",
       [](Settings& s) {
         s.admission.policy = PolicyName::Probability;
         s.admission.probability = 0.5;
       }},
      {"by chance, no memory tier",
       [](Settings& s) {
         s.admission.policy = PolicyName::Probability;
         s.admission.probability = 0.5;
         s.cache.memory_bytes = 0;
       }},
      {"by certain chance",
       [](Settings& s) {
         s.admission.policy = PolicyName::Probability;
         s.admission.probability = 1;
       }},
      {"by size",
       [](Settings& s) {
         s.admission.policy = PolicyName::SizeProbability;
         s.admission.size_scale_bytes = 5;
       }},
  };
  std::set<std::string> kinds;
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
      const std::string body = step.body;
      const std::string length =
          body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n";
      const auto facts = facts_of(proxy, step.method, step.target, length + step.fields);
      const auto before = static_cast<std::ptrdiff_t>(origin.requests().size());
      const RawResponse response = proxy.send(step.method, step.target, step.fields, body);
      const std::string shown = std::string(setting.name) + ", step " + std::to_string(i) + ": " +
                                step.method + " " + step.target + " " + step.fields +
                                json::serialize(facts) + "\n" + response.head;
      // What goes on behind a stale answer has to end before the next is foreseen.
      ASSERT_TRUE(eventually([&] { return proxy.metric("secondsight_flights") == 0; })) << shown;
      proxy.drain();
      const Requests all = origin.requests();
      Requests asked(all.begin() + before, all.end());
      const std::string action = word_of(facts, "action");
      const bool is_hit = action == "hit" || action == "stale-hit";
      if (action == "stale-hit" && word_of(facts, "detail") != "stale-if-error") asked.clear();
      EXPECT_EQ(asked.empty(), is_hit || action == "refuse" || action == "answer-here") << shown;
      compare(facts, response, shown);
      compare_conditions(facts, step, asked, shown);
      if (const auto* range = facts.at("next").at("range").if_object())
        compare_range(*range, response, asked, shown);
      note_kinds(facts, kinds);
    }
  }
  for (const char* kind : {"hit",
                           "stale-hit",
                           "validate",
                           "fetch",
                           "refuse",
                           "pass-on",
                           "upgrade",
                           "answer-here",
                           "spared",
                           "names-tags",
                           "by-language",
                           "range-200",
                           "range-206",
                           "range-304",
                           "range-416",
                           "multipart",
                           "fetch-part",
                           "fetch-whole",
                           "fetch-rest",
                           "validate-whole",
                           "completes",
                           "partial",
                           "part-hit",
                           "filter-repeat",
                           "filter-few-sightings",
                           "filter-by-chance",
                           "filter-chance",
                           "by-chance-hit",
                           "by-chance-fetch"}) {
    EXPECT_TRUE(kinds.contains(kind)) << kind;
  }
}

TEST(ExplainTruth, APartFarAheadInTheWholeIsAskedForAlone) {
  constexpr std::size_t kBytes = 10U << 20;
  const std::string body = body_of(kBytes);
  // Of the whole, nothing but the head comes at first.
  ScriptedOrigin origin([&](OriginConnection& connection) {
    for (;;) {
      const std::string request = connection.read_request();
      if (request.empty()) return;
      const std::string answer = part_of(request, kFresh, body);
      const std::size_t head_bytes = answer.find("\r\n\r\n") + 4;
      if (!connection.send(answer.substr(0, head_bytes))) return;
      if (!contains(request, "Range: ")) connection.checkpoint();
      if (!connection.send(answer.substr(head_bytes))) return;
    }
  });
  RunningProxy proxy(origin.url(), [](Settings& s) {
    s.admin.enabled = true;
    s.cache.disk_bytes = 64_MiB;
  });
  const std::string near = "Range: bytes=1-2\r\n";
  const std::string far = "Range: bytes=9000000-9000009\r\n";
  const auto asks_for = [&](const std::string& fields) {
    const auto facts = facts_of(proxy, "GET", "/a", fields);
    return std::string(facts.at("next").at("range").at("asks_for").as_string());
  };
  EXPECT_EQ(asks_for(far), "part");
  EXPECT_EQ(proxy.get("/a", near).status, 206);  // its first sighting
  EXPECT_EQ(asks_for(near), "whole");
  EXPECT_EQ(asks_for("Range: bytes=-10\r\n"), "whole") << "nobody knows yet where that is";
  EXPECT_EQ(asks_for("Range: bytes=100-109,0-9\r\n"), "whole-then-part") << "not as it streams";
  ASSERT_EQ(asks_for(far), "whole-then-part");
  const auto facts = facts_of(proxy, "GET", "/a", far);
  const auto before = static_cast<std::ptrdiff_t>(origin.requests().size());
  const RawResponse response = proxy.get("/a", far);
  EXPECT_EQ(response.field("Content-Range"), "bytes 9000000-9000009/" + std::to_string(kBytes));
  const Requests all = origin.requests();
  compare_range(facts.at("next").at("range").as_object(), response,
                Requests(all.begin() + before, all.end()), response.head);
  // The fetch of the whole goes on: others join it for their part.
  const auto joined = facts_of(proxy, "GET", "/a", near);
  EXPECT_EQ(joined.at("next").at("joins"), true);
  EXPECT_EQ(joined.at("next").at("range").at("asks_for"), "whole");
  const auto client = ask(proxy, "/a", near);
  ASSERT_TRUE(collapsed(proxy, 1));
  origin.release();
  EXPECT_EQ(client->read_response().body, body.substr(1, 2));
  EXPECT_EQ(origin.requests().size(), all.size());
}

TEST(ExplainTruth, AConfiguredStaleIfErrorIsTold) {
  RoutedOrigin origin;
  origin.on("/a", ok("CDN-Cache-Control: max-age=60\r\nCache-Control: no-store\r\n", "hello"));
  RunningProxy proxy(origin.url(), [](Settings& s) {
    s.admin.enabled = true;
    s.cache.stale_if_error = seconds{0};
    SiteSettings site;
    site.hosts = {"example.test"};
    site.stale_if_error = seconds{300};
    s.sites.push_back(site);
  });
  proxy.get("/a");
  const auto facts = facts_of(proxy, "GET", "/a");
  EXPECT_EQ(facts.at("freshness").at("directives_from"), "CDN-Cache-Control");
  const auto& stale_use = facts.at("stale_use").as_object();
  EXPECT_EQ(stale_use.at("configured_seconds"), 300);
  EXPECT_EQ(stale_use.at("is_by_configuration"), true);
  EXPECT_EQ(stale_use.at("is_origin_failing"), false);
  origin.on("/a", "HTTP/1.1 503 Down\r\nContent-Length: 0\r\n\r\n");
  proxy.clock.advance(seconds{70});
  EXPECT_EQ(facts_of(proxy, "GET", "/a").at("next").at("action"), "fetch");
  EXPECT_EQ(proxy.get("/a").body, "hello");
  const auto spared = facts_of(proxy, "GET", "/a");
  EXPECT_EQ(spared.at("stale_use").at("is_origin_failing"), true);
  EXPECT_EQ(spared.at("next").at("detail"), "stale-if-error");
  EXPECT_TRUE(says(proxy.get("/a"), "detail=stale-if-error"));
  proxy.clock.advance(seconds{300});
  EXPECT_EQ(facts_of(proxy, "GET", "/a").at("next").at("action"), "fetch");
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
    EXPECT_EQ(facts.at("filter"), "repeat") << "sightings outlive a restart";
  }
  EXPECT_EQ(proxy.metric("secondsight_memory_objects"), 0);
  EXPECT_EQ(proxy.metric("secondsight_requests_total{outcome=\"hit\"}"), 0);
}

TEST(ExplainTruth, ExplainingAPartChangesNothing) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    for (;;) {
      const std::string request = connection.read_request();
      if (request.empty() || !connection.send(answer_of(request))) return;
    }
  });
  RunningProxy proxy(origin.url(), [](Settings& s) { s.admin.enabled = true; });
  const auto sightings = [&] {
    return proxy.metric("secondsight_admissions_total{reason=\"first-sighting\"}") +
           proxy.metric("secondsight_admissions_total{reason=\"repeat\"}");
  };
  const std::string within = "Range: bytes=10-19\r\n";
  for (int i = 0; i < 2; ++i) {
    const auto facts = facts_of(proxy, "GET", "/kept/a", within);
    EXPECT_TRUE(facts.at("part").is_null());
    EXPECT_EQ(facts.at("next").at("detail"), "part");
  }
  EXPECT_EQ(origin.requests().size(), 0U);
  EXPECT_EQ(sightings(), 0);
  proxy.get("/kept/a", "Range: bytes=10-29\r\n");
  EXPECT_EQ(sightings(), 1);
  for (int i = 0; i < 2; ++i) {
    const auto facts = facts_of(proxy, "GET", "/kept/a", within);
    EXPECT_EQ(facts.at("stored"), false);
    EXPECT_EQ(facts.at("part").at("first"), 10);
    EXPECT_EQ(facts.at("part").at("last"), 29);
    EXPECT_EQ(facts.at("part").at("complete_bytes"), kPartedBytes);
    EXPECT_EQ(facts.at("next").at("action"), "hit");
  }
  EXPECT_EQ(sightings(), 1);
  EXPECT_TRUE(says(proxy.get("/kept/a", within), "hit; ttl=60; detail=memory"));
  EXPECT_EQ(sightings(), 2);
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
