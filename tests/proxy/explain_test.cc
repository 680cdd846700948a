#include <gtest/gtest.h>

#include "tests/proxy/explain_fixture.h"

namespace secondsight::proxy {
namespace {

struct Row {
  const char* request = "";
  const char* response = "";
  int age = 0;
  const char* action;
  const char* forward;  // null: none
  const char* keeps;    // null: nothing changes
  const char* next;
  const char* because;
  const char* then = "";
  Change change = {};
};

constexpr const char* kFresh = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n";
constexpr const char* kKeptAsPart =
    "may be kept as a part, if it has a strong entity tag, and is a sighting of the whole; if the "
    "whole comes in its place, that may be kept";
constexpr const char* kNoTag = "Cache-Control: max-age=60\r\n";

const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      // Served.
      {.response = kFresh,
       .age = 10,
       .action = "hit",
       .forward = nullptr,
       .keeps = "disk",
       .next = "a hit in memory",
       .because = "fresh for 50s more",
       .then = "written to disk: it is its second sighting"},
      {.response = kFresh,
       .age = 10,
       .action = "hit",
       .forward = nullptr,
       .keeps = nullptr,
       .next = "a hit on disk",
       .because = "fresh for 50s more",
       .change = [](Situation& s) { s.served_from_memory = false; }},
      {.request = "If-None-Match: \"v1\"\r\n",
       .response = kFresh,
       .action = "hit",
       .forward = nullptr,
       .keeps = nullptr,
       .next = "a hit in memory, answered 304: the client has what is stored",
       .because = "fresh for 1m more",
       .change = [](Situation& s) { s.would_promote = false; }},
      {.request = "Cache-Control: max-stale=20\r\n",
       .response = kFresh,
       .age = 70,
       .action = "hit",
       .forward = nullptr,
       .keeps = "disk",
       .next = "a hit in memory",
       .because = "stale for 10s, which the request's max-stale allows",
       .then = "written to disk: it is its second sighting"},
      {.response = "Cache-Control: max-age=60, stale-while-revalidate=30\r\n",
       .age = 70,
       .action = "stale-hit",
       .forward = nullptr,
       .keeps = "disk",
       .next = "a stale hit in memory",
       .because = "stale for 10s, within stale-while-revalidate=30",
       .then = "asks the origin behind it; written to disk: it is its second sighting"},
      {.request = "Authorization: x\r\n",
       .response = "Cache-Control: max-age=60, stale-while-revalidate=30\r\n",
       .age = 70,
       .action = "stale-hit",
       .forward = nullptr,
       .keeps = nullptr,
       .next = "a stale hit on disk",
       .because = "stale for 10s, within stale-while-revalidate=30",
       .then = "asks nobody behind it: only plain GETs may",
       .change = [](Situation& s) { s.served_from_memory = false; }},
      // Validated, or fetched anew.
      {.response = kFresh,
       .age = 70,
       .action = "validate",
       .forward = "stale",
       .keeps = "memory",
       .next = "validated with If-None-Match: \"v1\": stale",
       .because = "stale for 10s",
       .then = "a 304 freshens what is stored; another answer: kept in memory only, if it may be "
               "kept: it is a first sighting"},
      {.response = "Cache-Control: max-age=60, must-revalidate\r\nETag: \"v1\"\r\n"
                   "Last-Modified: Sat, 05 Nov 1994 08:49:37 GMT\r\n",
       .age = 70,
       .action = "validate",
       .forward = "stale",
       .keeps = "disk",
       .next = "validated with If-None-Match: \"v1\", If-Modified-Since: Sat, 05 Nov 1994 08:49:37 "
               "GMT: stale",
       .because = "stale for 10s; must-revalidate forbids to serve it so",
       .then = "a 304 freshens what is stored; another answer: written to disk as it comes, if it "
               "may be kept: it is a repeat",
       .change =
           [](Situation& s) {
             s.verdict = Verdict::Repeat;
             s.sighting = Detail::Repeat;
           }},
      {.response = "Cache-Control: max-age=60, no-cache\r\n",
       .age = 1,
       .action = "fetch",
       .forward = "stale",
       .keeps = "disk",
       .next = "fetched from the origin: stale",
       .because = "the response's no-cache asks for it each time",
       .then = "written to disk as it comes, if it may be kept: it replaces what is there",
       .change = [](Situation& s) { s.sighting = Detail::Repeat; }},
      {.request = "Cache-Control: max-age=0\r\n",
       .response = "Cache-Control: max-age=60, stale-while-revalidate=30\r\n",
       .age = 70,
       .action = "fetch",
       .forward = "stale",
       .keeps = "memory",
       .next = "fetched from the origin: stale",
       .because = "stale for 10s; the request's max-age=0 forbids to serve it so",
       .then = "kept in memory only, if it may be kept: it is a first sighting"},
      {.request = "Cache-Control: no-cache, max-age=100\r\n",
       .response = kNoTag,
       .age = 10,
       .action = "fetch",
       .forward = "request",
       .keeps = "memory",
       .next = "fetched from the origin: request",
       .because = "fresh, but refused by the request's no-cache",
       .then = "kept in memory only, if it may be kept: it is a first sighting"},
      {.request = "Cache-Control: max-age=5, min-fresh=55\r\n",
       .response = kNoTag,
       .age = 10,
       .action = "fetch",
       .forward = "request",
       .keeps = "memory",
       .next = "fetched from the origin: request",
       .because = "fresh, but refused by the request's max-age=5, min-fresh=55",
       .then = "kept in memory only, if it may be kept: it is a first sighting"},
      {.request = "Cache-Control: min-fresh=55\r\n",
       .response = kNoTag,
       .age = 10,
       .action = "fetch",
       .forward = "request",
       .keeps = "nothing",
       .next = "fetched from the origin: request",
       .because = "fresh, but refused by the request's min-fresh=55",
       .then = "not kept: only the answer to a GET is",
       .change = [](Situation& s) { s.request.method = "HEAD"; }},
      // Nothing stored.
      {.action = "fetch",
       .forward = "uri-miss",
       .keeps = "memory",
       .next = "fetched from the origin: uri-miss",
       .because = "nothing is stored for this URL",
       .then = "kept in memory only, if it may be kept: it is a first sighting"},
      {.action = "fetch",
       .forward = "uri-miss",
       .keeps = "nothing",
       .next = "fetched from the origin: uri-miss",
       .because = "nothing is stored for this URL",
       .then = "not kept: it is a first sighting",
       .change = [](Situation& s) { s.has_memory_tier = false; }},
      {.action = "fetch",
       .forward = "uri-miss",
       .keeps = "disk",
       .next = "fetched from the origin: uri-miss",
       .because = "nothing is stored for this URL",
       .then = "written to disk as it comes, if it may be kept: the policy writes everything",
       .change =
           [](Situation& s) {
             s.verdict = Verdict::Always;
             s.sighting = Detail::Always;
           }},
      {.action = "fetch",
       .forward = "uri-miss",
       .keeps = "memory",
       .next = "fetched from the origin: uri-miss",
       .because = "nothing is stored for this URL",
       .then = "kept in memory only, if it may be kept: the policy writes nothing",
       .change =
           [](Situation& s) {
             s.verdict = Verdict::Never;
             s.sighting = Detail::Never;
           }},
      {.action = "fetch",
       .forward = "uri-miss",
       .keeps = "memory",
       .next = "fetched from the origin: uri-miss",
       .because = "nothing is stored for this URL",
       .then = "kept in memory only, if it may be kept: there is no disk",
       .change = [](Situation& s) { s.sighting = Detail::NoDisk; }},
      {.action = "fetch",
       .forward = "uri-miss",
       .keeps = "memory",
       .next = "fetched from the origin: uri-miss",
       .because = "nothing is stored for this URL",
       .then = "waits for the fetch that is under way; kept in memory only, if it may be kept: it "
               "is a first sighting",
       .change = [](Situation& s) { s.is_being_fetched = true; }},
      {.action = "fetch",
       .forward = "uri-miss",
       .keeps = "memory",
       .next = "fetched from the origin: uri-miss",
       .because = "nothing is stored for this URL",
       .then = "kept in memory only, if it may be kept: it is a first sighting",
       .change = [](Situation& s) { s.is_being_fetched = s.is_uncacheable = true; }},
      {.request = "Cache-Control: no-store\r\n",
       .action = "fetch",
       .forward = "uri-miss",
       .keeps = "nothing",
       .next = "fetched from the origin: uri-miss",
       .because = "nothing is stored for this URL",
       .then = "not kept: the request's no-store"},
      {.request = "Range: bytes=0-1\r\n",
       .action = "fetch",
       .forward = "uri-miss",
       .keeps = "memory",
       .next = "fetched from the origin: uri-miss",
       .because = "nothing is stored for this URL",
       .then = kKeptAsPart},
      {.request = "Range: bytes=0-1\r\n",
       .action = "fetch",
       .forward = "uri-miss",
       .keeps = "nothing",
       .next = "fetched from the origin: uri-miss",
       .because = "nothing is stored for this URL",
       .then = "not kept: parts are in memory only; but it is a sighting of the whole",
       .change = [](Situation& s) { s.has_memory_tier = false; }},
      {.request = "Range: bytes=0-1\r\n",
       .action = "fetch",
       .forward = "uri-miss",
       .keeps = "disk",
       .next = "fetched from the origin: uri-miss",
       .because = "nothing is stored for this URL",
       .then = "written to disk as it comes, if it may be kept: it is a repeat",
       .change =
           [](Situation& s) {
             s.verdict = Verdict::Repeat;
             s.sighting = Detail::Repeat;
           }},
      {.request = "Accept-Language: de\r\n",
       .action = "fetch",
       .forward = "vary-miss",
       .keeps = "memory",
       .next = "fetched from the origin: vary-miss",
       .because =
           "nothing is stored for this variant: accept-encoding: (none); accept-language: de",
       .then = "kept in memory only, if it may be kept: it is a first sighting",
       .change =
           [](Situation& s) {
             s.vary = {"accept-encoding", "accept-language"};
           }},
      // Of which a part is kept.
      {.request = "Range: bytes=100-109\r\n",
       .age = 10,
       .action = "hit",
       .forward = nullptr,
       .keeps = nullptr,
       .next = "a hit in memory, of the part that is kept",
       .because = "it lies within the part that is kept, fresh for 50s more",
       .then = "a sighting of the whole",
       .change = with_part(100, 199)},
      {.request = "Range: bytes=-801\r\nCache-Control: max-stale\r\n",
       .age = 70,
       .action = "hit",
       .forward = nullptr,
       .keeps = nullptr,
       .next = "a hit in memory, of the part that is kept",
       .because = "it lies within the part that is kept, stale for 10s, which the request's "
                  "max-stale allows",
       .then = "a sighting of the whole",
       .change = with_part(199, 999)},
      {.request = "Range: bytes=190-200\r\n",
       .action = "fetch",
       .forward = "partial",
       .keeps = "disk",
       .next = "fetched from the origin: partial",
       .because = "nothing but a part is stored for this URL; not all that is asked for lies "
                  "within it",
       .then = "written to disk as it comes, if it may be kept: it is a repeat",
       .change = both(with_part(100, 199), on_repeat)},
      {.request = "Range: bytes=1000-\r\n",
       .action = "fetch",
       .forward = "partial",
       .keeps = "memory",
       .next = "fetched from the origin: partial",
       .because = "nothing but a part is stored for this URL; not all that is asked for lies "
                  "within it",
       .then = kKeptAsPart,
       .change = with_part(0, 998)},
      {.request = "Range: bytes=100-109\r\nIf-Range: \"v2\"\r\n",
       .action = "fetch",
       .forward = "partial",
       .keeps = "memory",
       .next = "fetched from the origin: partial",
       .because = "nothing but a part is stored for this URL; not all that is asked for lies "
                  "within it",
       .then = kKeptAsPart,
       .change = with_part(100, 199)},
      {.request = "Range: bytes=100-109\r\nIf-None-Match: \"v2\"\r\n",
       .action = "fetch",
       .forward = "uri-miss",
       .keeps = "memory",
       .next = "fetched from the origin: uri-miss",
       .because = "nothing but a part is stored for this URL; it does not do: the request has "
                  "conditions",
       .then = kKeptAsPart,
       .change = with_part(100, 199)},
      {.request = "Range: bytes=100-109\r\n",
       .age = 70,
       .action = "fetch",
       .forward = "uri-miss",
       .keeps = "memory",
       .next = "fetched from the origin: uri-miss",
       .because = "nothing but a part is stored for this URL; it does not do: it is stale for 10s",
       .then = kKeptAsPart,
       .change = with_part(100, 199)},
      {.request = "Range: bytes=100-109\r\nCache-Control: no-cache\r\n",
       .action = "fetch",
       .forward = "uri-miss",
       .keeps = "memory",
       .next = "fetched from the origin: uri-miss",
       .because = "nothing but a part is stored for this URL; it does not do: it would have to be "
                  "validated",
       .then = kKeptAsPart,
       .change = with_part(100, 199)},
      {.request = "Range: bytes=300-309\r\nCache-Control: only-if-cached\r\n",
       .action = "refuse",
       .forward = nullptr,
       .keeps = nullptr,
       .next = "504: the origin may not be asked",
       .because = "nothing but a part is stored for this URL; not all that is asked for lies "
                  "within it; and the request's only-if-cached",
       .change = with_part(100, 199)},
      {.action = "fetch",
       .forward = "uri-miss",
       .keeps = "memory",
       .next = "fetched from the origin: uri-miss",
       .because = "nothing but a part is stored for this URL",
       .then = "kept in memory only, if it may be kept: it is a first sighting",
       .change = with_part(0, 199)},
      // The origin failed a moment ago.
      {.response = kFresh,
       .age = 70,
       .action = "stale-hit",
       .forward = nullptr,
       .keeps = nullptr,
       .next = "a stale hit on disk",
       .because = "stale for 10s; the origin failed a moment ago, and a stale answer may stand in",
       .then = "asks nobody: the origin is spared for a few seconds",
       .change =
           [](Situation& s) {
             s.served_from_memory = false;
             s.is_failing = true;
             s.configured_stale_if_error = Seconds{60};
           }},
      {.response = kFresh,
       .age = 70,
       .action = "validate",
       .forward = "stale",
       .keeps = "memory",
       .next = "validated with If-None-Match: \"v1\": stale",
       .because = "stale for 10s",
       .then = "a 304 freshens what is stored; another answer: kept in memory only, if it may be "
               "kept: it is a first sighting",
       .change = [](Situation& s) { s.is_failing = true; }},
      // Neither.
      {.request = "Cache-Control: only-if-cached\r\n",
       .action = "refuse",
       .forward = nullptr,
       .keeps = nullptr,
       .next = "504: the origin may not be asked",
       .because = "nothing is stored for this URL; and the request's only-if-cached"},
      {.action = "pass-on",
       .forward = "method",
       .keeps = nullptr,
       .next = "passed on to the origin",
       .because = "POST: only GET and HEAD are answered from the cache",
       .then = "a success makes the cache forget this URL",
       .change = [](Situation& s) { s.request.method = "POST"; }},
      {.response = kFresh,
       .action = "pass-on",
       .forward = "method",
       .keeps = nullptr,
       .next = "passed on to the origin",
       .because = "OPTIONS: only GET and HEAD are answered from the cache",
       .change = [](Situation& s) { s.request.method = "OPTIONS"; }},
      {.request = "Max-Forwards: 0\r\n",
       .action = "answer-here",
       .forward = nullptr,
       .keeps = nullptr,
       .next = "200, without asking the origin",
       .because = "Max-Forwards lets it go no further",
       .change = [](Situation& s) { s.request.method = "OPTIONS"; }},
      {.action = "answer-here",
       .forward = nullptr,
       .keeps = nullptr,
       .next = "400, without asking the origin",
       .because = "a TRACE has no body",
       .change =
           [](Situation& s) {
             s.request.method = "TRACE";
             s.request.content_length = 1;
           }},
      {.request = "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n",
       .response = kFresh,
       .action = "upgrade",
       .forward = "bypass",
       .keeps = nullptr,
       .next = "passed to the origin as an upgrade to websocket",
       .because = "the request asks for another protocol",
       .then = "nothing of it touches the cache, whether the origin agrees or not",
       .change = [](Situation& s) { s.request.has_upgrade = true; }},
  };
  return all;
}

TEST(Explain, WhatTheNextRequestWouldDo) {
  for (const Row& row : rows()) {
    Situation s = situation(row.request, row.response, row.age);
    if (row.change) row.change(s);
    const Explanation explanation = explain(s);
    const auto& next = explanation.facts.at("next").as_object();
    const auto is = [&](const char* name, const char* expected) {
      const boost::json::value& value = next.at(name);
      return expected == nullptr ? value.is_null() : value == expected;
    };
    const std::string shown = std::string(row.next) + ": " + row.because;
    EXPECT_TRUE(is("action", row.action)) << shown << boost::json::serialize(next);
    EXPECT_TRUE(is("forward", row.forward)) << shown << boost::json::serialize(next);
    EXPECT_TRUE(is("keeps", row.keeps)) << shown << boost::json::serialize(next);
    EXPECT_TRUE(is("because", row.because)) << shown << boost::json::serialize(next);
    EXPECT_EQ(words_of(explanation, "next"), row.next);
    EXPECT_EQ(words_of(explanation, "because"), row.because);
    EXPECT_EQ(words_of(explanation, "then"), row.then) << shown;
  }
}

TEST(Explain, HowFreshAndHowLongStale) {
  struct Fresh {
    const char* request;
    const char* response;
    int age;
    const char* age_words;
    const char* fresh;
    const char* stale_use;
  };
  for (const Fresh& row : {
           Fresh{"", "Cache-Control: s-maxage=60, stale-if-error=9\r\n", 10, "10s of 1m (s-maxage)",
                 "until Sun, 06 Nov 1994 08:50:37 GMT, 50s left", "none: s-maxage forbids it"},
           Fresh{"", "Expires: Sun, 06 Nov 1994 08:50:37 GMT\r\n", 61, "1m1s of 1m (expires)",
                 "no: stale since Sun, 06 Nov 1994 08:50:37 GMT, for 1s",
                 "none: no directive of either side allows it (any more)"},
           Fresh{"", "Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT\r\n", 0,
                 "0s of 1m40s (heuristic)", "until Sun, 06 Nov 1994 08:51:17 GMT, 1m40s left",
                 "none: no directive of either side allows it (any more)"},
           Fresh{"", "ETag: \"a\"\r\n", 5, "5s of 0s (no lifetime given)",
                 "no: stale since Sun, 06 Nov 1994 08:49:37 GMT, for 5s",
                 "none: no directive of either side allows it (any more)"},
           Fresh{"", "Cache-Control: max-age=60, stale-while-revalidate=30, stale-if-error=600\r\n",
                 10, "10s of 1m (max-age)", "until Sun, 06 Nov 1994 08:50:37 GMT, 50s left",
                 "until Sun, 06 Nov 1994 08:51:07 GMT, without waiting for the origin | "
                 "until Sun, 06 Nov 1994 09:00:37 GMT, if the origin fails"},
           Fresh{"", "Cache-Control: max-age=60, stale-while-revalidate=30, stale-if-error=600\r\n",
                 91, "1m31s of 1m (max-age)",
                 "no: stale since Sun, 06 Nov 1994 08:50:37 GMT, for 31s",
                 "until Sun, 06 Nov 1994 09:00:37 GMT, if the origin fails"},
           Fresh{"Cache-Control: max-stale\r\n", kNoTag, 10, "10s of 1m (max-age)",
                 "until Sun, 06 Nov 1994 08:50:37 GMT, 50s left",
                 "for ever, without waiting for the origin"},
           Fresh{"", "CDN-Cache-Control: max-age=60\r\nCache-Control: max-age=5\r\n", 10,
                 "10s of 1m (max-age, as CDN-Cache-Control alone decides)",
                 "until Sun, 06 Nov 1994 08:50:37 GMT, 50s left",
                 "none: no directive of either side allows it (any more)"},
           Fresh{"", "Surrogate-Control: max-age=0\r\nExpires: Sun, 06 Nov 1994 08:50:37 GMT\r\n",
                 10, "10s of 0s (max-age, as Surrogate-Control alone decides)",
                 "no: stale since Sun, 06 Nov 1994 08:49:37 GMT, for 10s",
                 "none: no directive of either side allows it (any more)"},
           Fresh{"Cache-Control: no-cache\r\n",
                 "Cache-Control: max-age=60, stale-while-revalidate=30\r\n", 10,
                 "10s of 1m (max-age)", "until Sun, 06 Nov 1994 08:50:37 GMT, 50s left",
                 "none: the request's no-cache forbids it"},
       }) {
    const Explanation explanation = explain(situation(row.request, row.response, row.age));
    EXPECT_EQ(words_of(explanation, "age"), row.age_words) << row.response;
    EXPECT_EQ(words_of(explanation, "fresh"), row.fresh) << row.response;
    EXPECT_EQ(words_of(explanation, "stale use"), row.stale_use) << row.response;
  }
}

TEST(Explain, AStaleUseByConfigurationSaysSo) {
  Situation s = situation("", kFresh, 10);
  s.configured_stale_if_error = Seconds{300};
  EXPECT_EQ(words_of(explain(s), "stale use"),
            "until Sun, 06 Nov 1994 08:55:37 GMT, if the origin fails (configured stale_if_error "
            "of 5m)");
  EXPECT_EQ(words_of(explain(s), "origin"), "");
  s.is_failing = true;
  EXPECT_EQ(words_of(explain(s), "origin"), "it failed for this key a moment ago");
  s = situation("", "Cache-Control: max-age=60, stale-if-error=9\r\n", 10);
  s.configured_stale_if_error = Seconds{300};
  EXPECT_EQ(words_of(explain(s), "stale use"),
            "until Sun, 06 Nov 1994 08:50:46 GMT, if the origin fails")
      << "the response's own word counts";
}

TEST(Explain, Variants) {
  Situation s = situation("Accept-Language: de\r\n", "", 0);
  s.vary = {"accept-language"};
  s.variants = 3;
  s.tags = {"\"a\"", "W/\"b\""};
  EXPECT_EQ(words_of(explain(s), "variants"), "3 listed");
  EXPECT_EQ(words_of(explain(s), "names"),
            "\"a\", W/\"b\": the origin says whether one of these variants will do");
  for (const Change& change :
       {Change([](Situation& t) { t.is_being_fetched = true; }),
        Change([](Situation& t) { t.is_uncacheable = true; }),
        Change([](Situation& t) { t.tags.clear(); }), Change([](Situation& t) {
          t.request.fields = fields("Range: bytes=0-1\r\n");
          t.verdict = Verdict::Repeat;
        }),
        Change([](Situation& t) { t.request.fields = fields("Authorization: x\r\n"); })}) {
    Situation changed = s;
    change(changed);
    EXPECT_EQ(words_of(explain(changed), "names"), "");
    EXPECT_EQ(explain(changed).facts.at("next").at("names_tags").as_array().size(), 0U);
  }
  s = situation("Accept-Language: de, en;q=0.1\r\n", kFresh, 0);
  s.vary = {"accept-language"};
  s.variants = 1;
  s.is_by_language = true;
  EXPECT_EQ(words_of(explain(s), "variants"),
            "1 listed; none for these values, but one in de, the language preferred to all others");
}

TEST(Explain, WhereItIsAndWhatTheFilterSays) {
  Situation s = situation("", kFresh, 10);
  EXPECT_EQ(words_of(explain(s), "where"), "in memory");
  s.is_on_its_way = true;
  EXPECT_EQ(words_of(explain(s), "where"), "in memory, on its way to disk");
  s.in_memory = s.is_on_its_way = false;
  s.on_disk = true;
  EXPECT_EQ(words_of(explain(s), "where"), "on disk");
  EXPECT_EQ(words_of(explain(s), "stored"), "200 OK, 5 B, entity tag \"v1\"");
  EXPECT_EQ(words_of(explain(s), "uncacheable"), "");
  s.is_uncacheable = true;
  EXPECT_NE(words_of(explain(s), "uncacheable"), "");
  struct Said {
    Verdict verdict;
    const char* fact;
  };
  for (const Said& said :
       {Said{Verdict::Always, "always"}, Said{Verdict::Repeat, "repeat"},
        Said{Verdict::FirstSighting, "first-sighting"}, Said{Verdict::Never, "never"},
        Said{Verdict::FewSightings, "few-sightings"}, Said{Verdict::Chance, "chance"},
        Said{Verdict::NotChosen, "not-chosen"}, Said{Verdict::Undecided, "by-chance"}}) {
    s.verdict = said.verdict;
    EXPECT_EQ(explain(s).facts.at("filter"), said.fact);
    EXPECT_EQ(explain(s).facts.at("chance").is_null(), said.verdict != Verdict::Undecided);
    EXPECT_NE(words_of(explain(s), "filter"), "");
  }
}

TEST(Explain, OfADrawItGivesTheChance) {
  Situation s = situation("", "", 0);
  s.verdict = Verdict::Undecided;
  s.sighting = cache::Detail::Chance;
  s.chance = 0.1;
  EXPECT_EQ(explain(s).facts.at("chance"), 0.1);
  EXPECT_EQ(words_of(explain(s), "filter"), "by chance, p = 0.1");
  EXPECT_EQ(explain(s).facts.at("next").at("keeps"), "by-chance");
  EXPECT_TRUE(explain(s).facts.at("next").at("detail").is_null());
  EXPECT_EQ(words_of(explain(s), "then"),
            "written to disk by chance, p = 0.1, if it may be kept; else kept in memory only");
  s.is_chance_by_size = true;
  EXPECT_EQ(words_of(explain(s), "filter"), "by chance, p = 0.1 for a body of unknown length");
  s.sighting = cache::Detail::NoDisk;
  EXPECT_EQ(explain(s).facts.at("next").at("keeps"), "memory");
  EXPECT_EQ(explain(s).facts.at("next").at("detail"), "no-disk");

  Situation hit = situation("", kFresh, 10);
  hit.served_from_memory = hit.would_promote = true;
  hit.verdict = Verdict::Undecided;
  hit.chance = 1.0 / 3;
  EXPECT_EQ(explain(hit).facts.at("next").at("keeps"), "by-chance");
  EXPECT_EQ(words_of(explain(hit), "then"), "written to disk by chance, p = 0.333");
}

TEST(Explain, TheNthSightingIsNamed) {
  Situation hit = situation("", kFresh, 10);
  hit.served_from_memory = hit.would_promote = true;
  hit.verdict = Verdict::Repeat;
  hit.sightings_needed = 3;
  EXPECT_EQ(words_of(explain(hit), "then"), "written to disk: it is its 3rd sighting");
  Situation miss = situation("", "", 0);
  miss.verdict = Verdict::FewSightings;
  miss.sighting = cache::Detail::FewSightings;
  miss.sightings_needed = 5;
  EXPECT_EQ(words_of(explain(miss), "filter"),
            "few sightings: seen within the window, but this is not the 5th sighting");
  EXPECT_EQ(words_of(explain(miss), "then"),
            "kept in memory only, if it may be kept: it is not its 5th sighting");
  EXPECT_EQ(explain(miss).facts.at("next").at("detail"), "few-sightings");
}

TEST(Explain, FactsHaveStableNames) {
  Situation s = situation("Accept-Language: d\xff\r\n", kFresh, 10);
  s.vary = {"accept-language", "cookie"};
  s.variants = 2;
  EXPECT_EQ(
      boost::json::serialize(explain(s).facts),
      R"({"method":"GET","url":"http://a.test/b","key":"http://a.test/b",)"
      R"("variant":{"fields":[{"name":"accept-language","value":"d\\xff"},)"
      R"({"name":"cookie","value":null}],"key":"http://a.test/b",)"
      R"("listed":2,"is_by_language":false},"stored":true,"object":{"status":200,"reason":"OK","entity_tag":"\"v1\"",)"
      R"("last_modified":null,"body_bytes":5,"in_memory":true,"on_its_way_to_disk":false,)"
      R"("on_disk":false},"part":null,"freshness":{"age_seconds":10,"lifetime_seconds":60,)"
      R"("lifetime_from":"max-age","directives_from":"Cache-Control","is_fresh":true,"seconds_left":50,)"
      R"("fresh_until":"Sun, 06 Nov 1994 08:50:37 GMT"},)"
      R"("stale_use":{"without_waiting":null,"on_error":null,"forbidden_by":null,)"
      R"("configured_seconds":0,"is_by_configuration":false,"is_origin_failing":false},)"
      R"("filter":"first-sighting","chance":null,"is_being_fetched":false,"is_remembered_as_uncacheable":false,)"
      R"("next":{"action":"hit","forward":null,"detail":"memory","because":"fresh for 50s more",)"
      R"("validators":[],"names_tags":[],"completes":null,"range":null,"joins":false,"keeps":"disk"}})");
}

}  // namespace
}  // namespace secondsight::proxy
