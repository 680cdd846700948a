#include "cache/policy/freshness.h"

#include <gtest/gtest.h>

#include "cache/policy/cache_control.h"
#include "cache/policy/http_date.h"
#include "tests/cache/policy/heads.h"

namespace secondsight::cache::policy {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr const char* kDayBefore = "Sat, 05 Nov 1994 08:49:37 GMT";
constexpr const char* kHourLater = "Sun, 06 Nov 1994 09:49:37 GMT";
constexpr HeuristicLimits kLimits;

TEST(Freshness, Lifetime) {
  struct Row {
    const char* clause;
    Seconds lifetime;
    int status;
    HeadLines response;
  };
  const Row rows[] = {
      {"RFC 9111 4.2.1: s-maxage wins over a longer max-age",
       Seconds{1},
       200,
       {{"Cache-Control", "max-age=9, s-maxage=1"}}},
      {"RFC 9111 4.2.1: s-maxage wins over a shorter max-age",
       Seconds{9},
       200,
       {{"Cache-Control", "max-age=1, s-maxage=9"}}},
      {"RFC 9111 5.3: max-age wins over Expires",
       Seconds{9},
       200,
       {{"Cache-Control", "max-age=9"}, {"Expires", kHourLater}, {"Date", kReceivedText}}},
      {"RFC 9111 5.3: max-age=0 wins over a later Expires",
       Seconds{0},
       200,
       {{"Cache-Control", "max-age=0"}, {"Expires", kHourLater}}},
      {"RFC 9111 5.3: max-age wins over an invalid Expires",
       Seconds{9},
       200,
       {{"Cache-Control", "max-age=9"}, {"Expires", "0"}}},
      {"RFC 9111 4.2.1: Expires minus Date",
       Seconds{3600 + 86400},
       200,
       {{"Expires", kHourLater}, {"Date", kDayBefore}}},
      {"RFC 9111 4.2.1: Expires before Date",
       Seconds{0},
       200,
       {{"Expires", kDayBefore}, {"Date", kReceivedText}}},
      {"RFC 9110 6.6.1: without Date, the time of receipt",
       Seconds{3600},
       200,
       {{"Expires", kHourLater}}},
      {"RFC 9110 6.6.1: an invalid Date, the time of receipt",
       Seconds{3600},
       200,
       {{"Expires", kHourLater}, {"Date", "foo"}}},
      {"RFC 9111 5.3: invalid Expires is in the past",
       Seconds{0},
       200,
       {{"Expires", "0"}, {"Last-Modified", kDayBefore}, {"Date", kReceivedText}}},
      {"RFC 9111 1.2.2: no overflow",
       kDeltaSecondsMax,
       200,
       {{"Expires", "Fri, 31 Dec 9999 23:59:59 GMT"}}},
      {"RFC 9111 4.2.2: a tenth of the time unchanged",
       Seconds{8640},
       200,
       {{"Last-Modified", kDayBefore}, {"Date", kReceivedText}}},
      {"RFC 9111 4.2.2: without Date", Seconds{8640}, 200, {{"Last-Modified", kDayBefore}}},
      {"RFC 9111 4.2.2: capped",
       Seconds{86400},
       200,
       {{"Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT"}}},
      {"RFC 9111 4.2.2: modified after Date",
       Seconds{0},
       200,
       {{"Last-Modified", kHourLater}, {"Date", kReceivedText}}},
      {"RFC 9111 4.2.2: no Last-Modified", Seconds{0}, 200, {{"ETag", "\"a\""}}},
      {"RFC 9111 4.2.2: status not heuristically cacheable",
       Seconds{0},
       302,
       {{"Last-Modified", kDayBefore}}},
      {"RFC 9111 4.2.2: an unreadable max-age leaves no room for it",
       Seconds{0},
       200,
       {{"Cache-Control", "max-age=x"}, {"Last-Modified", kDayBefore}}},
      {"RFC 9111 4.2.2: nor does max-age=0",
       Seconds{0},
       200,
       {{"Cache-Control", "max-age=0"}, {"Last-Modified", kDayBefore}}},
      {"RFC 9111 4.2.2: an invalid Last-Modified is none",
       Seconds{0},
       200,
       {{"Last-Modified", "yesterday"}}},
      {"RFC 9111 4.2.2: 410 with Last-Modified",
       Seconds{8640},
       410,
       {{"Last-Modified", kDayBefore}}},
      {"RFC 9111 4.2.2: 410 without", Seconds{0}, 410, {{"ETag", "\"a\""}}},
      {"RFC 9111 4.2.1: 404 with max-age", Seconds{9}, 404, {{"Cache-Control", "max-age=9"}}},
      {"RFC 9111 4.2.1: 502 with s-maxage", Seconds{9}, 502, {{"Cache-Control", "s-maxage=9"}}},
      {"RFC 9111 5.4: Pragma of a response means nothing",
       Seconds{9},
       200,
       {{"Cache-Control", "max-age=9"}, {"Pragma", "no-cache"}}},
      {"RFC 9111 4.2.1: Expires minus Date, both of a clock that is ahead",
       Seconds{60},
       200,
       {{"Expires", "Sun, 06 Nov 1994 09:50:37 GMT"}, {"Date", kHourLater}}},
      {"RFC 9111 4.2.2: the same, but public",
       Seconds{8640},
       302,
       {{"Last-Modified", kDayBefore}, {"Cache-Control", "public"}}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(freshness_lifetime(response_facts(row.status, row.response), kAtOnce, kLimits),
              row.lifetime);
  }
}

TEST(Freshness, WhereTheLifetimeComesFrom) {
  struct Row {
    const char* clause;
    std::string_view expected;
    int status;
    HeadLines response;
  };
  const Row rows[] = {
      {"RFC 9111 4.2.1: s-maxage before max-age",
       "s-maxage",
       200,
       {{"Cache-Control", "max-age=9, s-maxage=0"}, {"Expires", kHourLater}}},
      {"RFC 9111 4.2.1: max-age before Expires",
       "max-age",
       200,
       {{"Cache-Control", "max-age=0"}, {"Expires", kHourLater}}},
      {"RFC 9111 4.2.1: Expires before the heuristic",
       "expires",
       200,
       {{"Expires", "0"}, {"Last-Modified", kDayBefore}}},
      {"RFC 9111 4.2.2: Last-Modified", "heuristic", 200, {{"Last-Modified", kDayBefore}}},
      {"RFC 9111 4.2.2: not for every status", "none", 500, {{"Last-Modified", kDayBefore}}},
      {"RFC 9111 4.2.2: nothing to go by", "none", 200, {{"ETag", "\"a\""}}},
  };
  for (const Row& row : rows)
    EXPECT_EQ(to_string(lifetime_source(response_facts(row.status, row.response))), row.expected)
        << row.clause;
}

TEST(Freshness, WhatForbidsStaleUse) {
  struct Row {
    const char* clause;
    std::string_view expected;
    std::string_view cache_control;
  };
  const Row rows[] = {
      {"RFC 9111 4.2.4: nothing", "", "max-age=9, stale-while-revalidate=9, public"},
      {"RFC 9111 5.2.2.4", "no-cache", "no-cache, must-revalidate"},
      {"RFC 9111 5.2.2.2", "must-revalidate", "max-age=9, must-revalidate"},
      {"RFC 9111 5.2.2.8", "proxy-revalidate", "max-age=9, proxy-revalidate"},
      {"RFC 9111 5.2.2.10", "s-maxage", "s-maxage=9"},
  };
  for (const Row& row : rows) {
    const auto facts = response_facts(200, {{"Cache-Control", row.cache_control}});
    EXPECT_EQ(stale_veto(facts.directives), row.expected) << row.clause;
  }
}

TEST(Freshness, HeuristicLimitsAreHonoured) {
  const auto facts = response_facts(200, {{"Last-Modified", kDayBefore}});
  const auto lifetime = [&](int percent, Seconds most) {
    return freshness_lifetime(facts, kAtOnce,
                              {.last_modified_percent = percent, .lifetime_max = most});
  };
  EXPECT_EQ(lifetime(50, hours{24}), Seconds{43200});
  EXPECT_EQ(lifetime(50, Seconds{7}), Seconds{7});
  EXPECT_EQ(lifetime(0, hours{24}), Seconds{0});
}

TEST(Freshness, CurrentAge) {
  struct Row {
    const char* clause;
    milliseconds age;
    HeadLines response;
    milliseconds delay{0};     // from sending to receiving
    milliseconds resident{0};  // from receiving to now
  };
  const Row rows[] = {
      {"RFC 9111 4.2.3: just came", Seconds{0}, {{"Date", kReceivedText}}},
      {"RFC 9111 4.2.3: resident time", Seconds{60}, {{"Date", kReceivedText}}, {}, Seconds{60}},
      {"RFC 9111 4.2.3: Age", Seconds{90}, {{"Age", "30"}}, {}, Seconds{60}},
      {"RFC 9111 4.2.3: response delay counts", Seconds{35}, {{"Age", "30"}}, Seconds{5}},
      {"RFC 9111 4.2.3: delay without Age", Seconds{5}, {{"Date", kReceivedText}}, Seconds{5}},
      {"RFC 9111 4.2.3: apparent age",
       Seconds{86400},
       {{"Date", kDayBefore}, {"Age", "30"}},
       Seconds{5}},
      {"RFC 9111 4.2.3: a Date ahead of us", Seconds{30}, {{"Date", kHourLater}, {"Age", "30"}}},
      {"RFC 9111 4.2.3: a Date ahead of us, and time here",
       Seconds{60},
       {{"Date", kHourLater}},
       {},
       Seconds{60}},
      {"RFC 9111 4.2.3: an invalid Date", Seconds{30}, {{"Date", "now"}, {"Age", "30"}}},
      {"RFC 9111 5.1: an invalid Age is none", Seconds{5}, {{"Age", "-30"}}, Seconds{5}},
      {"RFC 9111 4.2.3: no Date", Seconds{30}, {{"Age", "30"}}},
      {"RFC 9111 1.2.2: no overflow",
       kDeltaSecondsMax,
       {{"Age", "99999999999"}},
       Seconds{5},
       Seconds{60}},
      {"our clock went back since", Seconds{30}, {{"Age", "30"}}, {}, Seconds{-3600}},
      {"our clock went back during the exchange", Seconds{30}, {{"Age", "30"}}, Seconds{-3600}},
      {"whole seconds, never ahead of time",
       Seconds{1},
       {{"Date", kReceivedText}},
       milliseconds{900},
       milliseconds{1099}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    const ExchangeTimes times{.request_sent = kReceived - row.delay,
                              .response_received = kReceived};
    const ResponseFacts facts = response_facts(200, row.response);
    const WallTime now = kReceived + row.resident;
    EXPECT_EQ(current_age(facts, times, now), row.age);

    ResponseFacts folded_facts = facts;
    ExchangeTimes folded_times = times;
    fold_age(folded_facts, folded_times);
    EXPECT_EQ(folded_facts.age, std::nullopt);
    EXPECT_EQ(current_age(folded_facts, folded_times, now), row.age);
  }
}

/// Both sides' directives against a response that was received `age` ago, without any Date.
struct UseRow {
  const char* clause;
  Use use;
  Seconds age;
  const char* response;
  HeadLines request = {};
};

TEST(Freshness, ChooseUse) {
  using enum Use;
  const UseRow rows[] = {
      {"RFC 9111 4.2: fresh", Serve, Seconds{9}, "max-age=10"},
      {"RFC 9111 4.2: the lifetime is reached", Validate, Seconds{10}, "max-age=10"},
      {"RFC 9111 4.2: stale", Validate, Seconds{11}, "max-age=10"},
      {"RFC 9111 4.2: no lifetime", Validate, Seconds{0}, "public"},
      {"RFC 9111 5.2.2.4: no-cache", Validate, Seconds{0}, "max-age=10, no-cache"},
      {"RFC 9111 5.2.2.4: no-cache and stale-while-revalidate", Validate, Seconds{11},
       "max-age=10, no-cache, stale-while-revalidate=9"},
      {"RFC 9111 5.2.2.2: must-revalidate while fresh", Serve, Seconds{9},
       "max-age=10, must-revalidate"},

      {"RFC 9111 5.2.1.4: request no-cache",
       Validate,
       Seconds{0},
       "max-age=10",
       {{"Cache-Control", "no-cache"}}},
      {"RFC 9111 5.4: Pragma", Validate, Seconds{0}, "max-age=10", {{"Pragma", "no-cache"}}},
      {"RFC 9111 5.2.1.5: request no-store may be served",
       Serve,
       Seconds{0},
       "max-age=10",
       {{"Cache-Control", "no-store"}}},
      {"RFC 9111 5.2.1.1: max-age reached",
       Serve,
       Seconds{5},
       "max-age=10",
       {{"Cache-Control", "max-age=5"}}},
      {"RFC 9111 5.2.1.1: max-age passed",
       Validate,
       Seconds{6},
       "max-age=10",
       {{"Cache-Control", "max-age=5"}}},
      {"RFC 9111 5.2.1.1: max-age=0 asks to validate",
       Validate,
       Seconds{0},
       "max-age=10",
       {{"Cache-Control", "max-age=0"}}},
      {"RFC 9111 5.2.1.3: min-fresh met",
       Serve,
       Seconds{6},
       "max-age=10",
       {{"Cache-Control", "min-fresh=4"}}},
      {"RFC 9111 5.2.1.3: min-fresh not met",
       Validate,
       Seconds{7},
       "max-age=10",
       {{"Cache-Control", "min-fresh=4"}}},
      {"RFC 9111 5.2.1.2: max-stale met",
       Serve,
       Seconds{15},
       "max-age=10",
       {{"Cache-Control", "max-stale=5"}}},
      {"RFC 9111 5.2.1.2: max-stale passed",
       Validate,
       Seconds{16},
       "max-age=10",
       {{"Cache-Control", "max-stale=5"}}},
      {"RFC 9111 5.2.1.2: max-stale without a value",
       Serve,
       Seconds{9999},
       "max-age=10",
       {{"Cache-Control", "max-stale"}}},
      {"RFC 9111 5.2.1.2: max-stale and max-age",
       Validate,
       Seconds{15},
       "max-age=10",
       {{"Cache-Control", "max-stale=5, max-age=12"}}},
      {"RFC 9111 5.2.1.2: max-stale and min-fresh",
       Validate,
       Seconds{15},
       "max-age=10",
       {{"Cache-Control", "max-stale=5, min-fresh=1"}}},
      {"RFC 9111 4.2.4: must-revalidate wins over max-stale",
       Validate,
       Seconds{11},
       "max-age=10, must-revalidate",
       {{"Cache-Control", "max-stale"}}},
      {"RFC 9111 5.2.2.8: proxy-revalidate wins over max-stale",
       Validate,
       Seconds{11},
       "max-age=10, proxy-revalidate",
       {{"Cache-Control", "max-stale"}}},
      {"RFC 9111 5.2.2.10: s-maxage wins over max-stale",
       Validate,
       Seconds{11},
       "s-maxage=10",
       {{"Cache-Control", "max-stale"}}},
      {"RFC 9111 5.2.2.10: s-maxage while fresh, with must-revalidate", Serve, Seconds{9},
       "s-maxage=10, must-revalidate"},
      {"RFC 9111 5.2.2.10: s-maxage once stale, with must-revalidate", Validate, Seconds{10},
       "s-maxage=10, must-revalidate, max-age=99"},
      {"RFC 9111 5.2.1.1: max-age is no wish for a stale one",
       Validate,
       Seconds{11},
       "max-age=10, stale-while-revalidate=5",
       {{"Cache-Control", "max-age=99"}}},
      {"RFC 9111 5.2.1.1: unless max-stale is",
       Serve,
       Seconds{11},
       "max-age=10",
       {{"Cache-Control", "max-age=99, max-stale=1"}}},
      {"RFC 9111 5.2.1.2: max-stale=0 is none",
       Validate,
       Seconds{11},
       "max-age=10",
       {{"Cache-Control", "max-stale=0"}}},
      {"RFC 9111 5.2.1.2: max-stale and stale-while-revalidate, within the first",
       Serve,
       Seconds{11},
       "max-age=10, stale-while-revalidate=5",
       {{"Cache-Control", "max-stale=1"}}},
      {"RFC 9111 5.2.1.2: max-stale and no-cache of the response",
       Validate,
       Seconds{11},
       "max-age=10, no-cache",
       {{"Cache-Control", "max-stale"}}},

      {"RFC 5861 3: within", ServeStaleAndRevalidate, Seconds{15},
       "max-age=10, stale-while-revalidate=5"},
      {"RFC 5861 3: passed", Validate, Seconds{16}, "max-age=10, stale-while-revalidate=5"},
      {"RFC 5861 3: without a value", Validate, Seconds{11}, "max-age=10, stale-while-revalidate"},
      {"RFC 5861 3: while fresh", Serve, Seconds{9}, "max-age=10, stale-while-revalidate=5"},
      {"RFC 9111 5.2.2.2: must-revalidate forbids it", Validate, Seconds{11},
       "max-age=10, stale-while-revalidate=5, must-revalidate"},
      {"RFC 9111 5.2.2.8: proxy-revalidate forbids it", Validate, Seconds{11},
       "max-age=10, stale-while-revalidate=5, proxy-revalidate"},
      {"RFC 9111 5.2.2.10: s-maxage forbids it", Validate, Seconds{11},
       "s-maxage=10, stale-while-revalidate=5"},
      {"RFC 9111 4.2.4: a permission does not lift that", Validate, Seconds{11},
       "s-maxage=10, max-age=10, stale-while-revalidate=5, public"},
      {"RFC 9111 5.2.1.4: request no-cache forbids it",
       Validate,
       Seconds{11},
       "max-age=10, stale-while-revalidate=5",
       {{"Cache-Control", "no-cache"}}},
      {"RFC 9111 5.2.1.1: request max-age forbids it",
       Validate,
       Seconds{11},
       "max-age=10, stale-while-revalidate=5",
       {{"Cache-Control", "max-age=10"}}},
      {"RFC 9111 5.2.1.3: request min-fresh forbids it",
       Validate,
       Seconds{11},
       "max-age=10, stale-while-revalidate=5",
       {{"Cache-Control", "min-fresh=0"}}},
  };
  for (const UseRow& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(
        choose_use(get_facts(row.request), response_facts(200, {{"Cache-Control", row.response}}),
                   kAtOnce, kLimits, kReceived + row.age),
        row.use);
  }
}

TEST(Freshness, ServedOnError) {
  struct Row {
    const char* clause;
    bool may;
    Seconds age;
    const char* response;
    HeadLines request = {};
    Seconds configured{0};
  };
  const Row rows[] = {
      {"RFC 5861 4: within", true, Seconds{15}, "max-age=10, stale-if-error=5"},
      {"RFC 5861 4: passed", false, Seconds{16}, "max-age=10, stale-if-error=5"},
      {"RFC 5861 4: zero", false, Seconds{10}, "max-age=10, stale-if-error=0"},
      {"RFC 5861 4: absent", false, Seconds{11}, "max-age=10"},
      {"RFC 5861 4: of the request",
       true,
       Seconds{15},
       "max-age=10",
       {{"Cache-Control", "stale-if-error=5"}}},
      {"RFC 5861 4: of the request, passed",
       false,
       Seconds{16},
       "max-age=10",
       {{"Cache-Control", "stale-if-error=5"}}},
      {"RFC 9111 4.2.4: must-revalidate", false, Seconds{11},
       "max-age=10, stale-if-error=5, must-revalidate"},
      {"RFC 9111 4.2.4: proxy-revalidate", false, Seconds{11},
       "max-age=10, stale-if-error=5, proxy-revalidate"},
      {"RFC 9111 4.2.4: s-maxage", false, Seconds{11}, "s-maxage=10, stale-if-error=5"},
      {"RFC 9111 4.2.4: no-cache", false, Seconds{11}, "max-age=10, stale-if-error=5, no-cache"},
      {"RFC 9111 5.2.1.4: request no-cache",
       false,
       Seconds{11},
       "max-age=10, stale-if-error=5",
       {{"Cache-Control", "no-cache"}}},
      {"RFC 9111 4.2.4: configured, within", true, Seconds{15}, "max-age=10", {}, Seconds{5}},
      {"RFC 9111 4.2.4: configured, passed", false, Seconds{16}, "max-age=10", {}, Seconds{5}},
      {"RFC 9111 4.2.4: the response's own word goes first",
       false,
       Seconds{12},
       "max-age=10, stale-if-error=1",
       {},
       Seconds{5}},
      {"RFC 5861 4: the response's own zero",
       false,
       Seconds{11},
       "max-age=10, stale-if-error=0",
       {},
       Seconds{5}},
      {"RFC 9111 4.2.4: configured, but must-revalidate",
       false,
       Seconds{11},
       "max-age=10, must-revalidate",
       {},
       Seconds{5}},
      {"RFC 9111 4.2.4: configured, but proxy-revalidate",
       false,
       Seconds{11},
       "max-age=10, proxy-revalidate",
       {},
       Seconds{5}},
      {"RFC 9111 5.2.2.10: configured, but s-maxage",
       false,
       Seconds{11},
       "s-maxage=10",
       {},
       Seconds{5}},
      {"RFC 9111 5.2.2.4: configured, but no-cache",
       false,
       Seconds{11},
       "max-age=10, no-cache",
       {},
       Seconds{5}},
      {"RFC 9111 5.2.1.1: configured, but the request bounds the age",
       false,
       Seconds{11},
       "max-age=10",
       {{"Cache-Control", "max-age=60"}},
       Seconds{5}},
      {"RFC 9111 5.2.1.3: configured, but the request asks for freshness",
       false,
       Seconds{11},
       "max-age=10",
       {{"Cache-Control", "min-fresh=1"}},
       Seconds{5}},
  };
  for (const int status : {500, 502, 503, 504}) EXPECT_TRUE(is_error_to_hide(status)) << status;
  for (const int status : {200, 304, 400, 404, 410, 429, 501, 505, 511})
    EXPECT_FALSE(is_error_to_hide(status)) << status;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(may_serve_on_error(get_facts(row.request),
                                 response_facts(200, {{"Cache-Control", row.response}}), kAtOnce,
                                 kLimits, row.configured, kReceived + row.age),
              row.may);
  }
}

}  // namespace
}  // namespace secondsight::cache::policy
