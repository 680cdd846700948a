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

TEST(Freshness, Storability) {
  struct Row {
    const char* clause;
    Storability expected;
    int status;
    HeadLines response;
    HeadLines request = {};
    const char* method = "GET";
  };
  using enum Storability;
  const Row rows[] = {
      {"RFC 9111 3: max-age", Storable, 200, {{"Cache-Control", "max-age=9"}}},
      {"RFC 9111 3: s-maxage", Storable, 200, {{"Cache-Control", "s-maxage=9"}}},
      {"RFC 9111 3: Expires", Storable, 200, {{"Expires", kHourLater}}},
      {"RFC 9111 3: heuristic status with Last-Modified",
       Storable,
       200,
       {{"Last-Modified", kDayBefore}}},
      {"RFC 9111 3: heuristic status with ETag", Storable, 200, {{"ETag", "\"a\""}}},
      {"RFC 9111 3: public with a validator",
       Storable,
       599,
       {{"Cache-Control", "public"}, {"ETag", "\"a\""}}},
      {"RFC 9111 3: no-cache with a validator",
       Storable,
       200,
       {{"Cache-Control", "no-cache"}, {"ETag", "\"a\""}}},
      {"RFC 9111 7.3: Set-Cookie when explicitly fresh",
       Storable,
       200,
       {{"Cache-Control", "max-age=9"}, {"Set-Cookie", "a=b"}}},
      {"RFC 9111 5.2.2: private beside public",
       Private,
       200,
       {{"Cache-Control", "public, private, max-age=9"}}},

      {"RFC 9111 3: POST", Method, 200, {{"Cache-Control", "max-age=9"}}, {}, "POST"},
      {"RFC 9111 3: PUT", Method, 200, {{"Cache-Control", "max-age=9"}}, {}, "PUT"},
      {"RFC 9111 3: HEAD has no body to keep",
       Method,
       200,
       {{"Cache-Control", "max-age=9"}},
       {},
       "HEAD"},
      {"RFC 9111 3: OPTIONS", Method, 200, {{"Cache-Control", "max-age=9"}}, {}, "OPTIONS"},
      {"RFC 9111 3: unknown method", Method, 200, {{"Cache-Control", "max-age=9"}}, {}, "FOO"},
      {"RFC 9111 5.2.1.5: request no-store",
       RequestNoStore,
       200,
       {{"Cache-Control", "max-age=9"}},
       {{"Cache-Control", "no-store"}}},
      {"RFC 9111 5.2.2.5: no-store", NoStore, 200, {{"Cache-Control", "max-age=9, no-store"}}},
      {"RFC 9111 5.2.2.7: private", Private, 200, {{"Cache-Control", "max-age=9, private"}}},
      {"RFC 9111 5.2.2.7: private=\"field\"",
       Private,
       200,
       {{"Cache-Control", "max-age=9, private=\"x\""}}},
      {"RFC 9111 5.2.2.3: must-understand lifts no-store",
       Storable,
       200,
       {{"Cache-Control", "max-age=9, no-store, must-understand"}}},
      {"RFC 9111 5.2.2.3: must-understand lifts nothing else",
       Private,
       200,
       {{"Cache-Control", "max-age=9, private, must-understand"}}},
      {"RFC 9111 5.2.2.3: must-understand, unknown status",
       Status,
       599,
       {{"Cache-Control", "max-age=9, must-understand"}}},
      {"RFC 9111 5.2.2.3: unknown status without it",
       Storable,
       599,
       {{"Cache-Control", "max-age=9"}}},
      {"a hidden directive lifts nothing",
       Private,
       200,
       {{"Cache-Control", "max-age=9, must-understand, x=\"private"}}},

      {"RFC 9111 3.5: Authorization",
       Authorization,
       200,
       {{"Cache-Control", "max-age=9"}},
       {{"Authorization", "x"}}},
      {"RFC 9111 3.5: public",
       Storable,
       200,
       {{"Cache-Control", "max-age=9, public"}},
       {{"Authorization", "x"}}},
      {"RFC 9111 3.5: must-revalidate",
       Storable,
       200,
       {{"Cache-Control", "max-age=9, must-revalidate"}},
       {{"Authorization", "x"}}},
      {"RFC 9111 3.5: s-maxage",
       Storable,
       200,
       {{"Cache-Control", "s-maxage=9"}},
       {{"Authorization", "x"}}},
      {"RFC 9111 3.5: proxy-revalidate is not enough",
       Authorization,
       200,
       {{"Cache-Control", "max-age=9, proxy-revalidate"}},
       {{"Authorization", "x"}}},

      {"RFC 9111 4.1: Vary *", VaryAny, 200, {{"Cache-Control", "max-age=9"}, {"Vary", "a, *"}}},
      {"RFC 9111 4.1: Vary on names",
       Storable,
       200,
       {{"Cache-Control", "max-age=9"}, {"Vary", "a"}}},

      {"RFC 9111 3: neither freshness nor validator", NoLifetime, 200, {{"Date", kReceivedText}}},
      {"RFC 9111 3: public alone is of no use", NoLifetime, 200, {{"Cache-Control", "public"}}},
      {"RFC 9110 15.1: a status that is not heuristically cacheable",
       NoLifetime,
       302,
       {{"ETag", "\"a\""}}},
      {"RFC 9110 15.1: the same with Last-Modified",
       NoLifetime,
       503,
       {{"Last-Modified", kDayBefore}}},
      {"RFC 9111 5.2.2.4: no-cache without a validator",
       NoLifetime,
       200,
       {{"Cache-Control", "no-cache, max-age=9"}}},
      {"RFC 9111 4.2: born stale, no validator", NoLifetime, 200, {{"Cache-Control", "max-age=0"}}},
      {"RFC 9111 5.3: invalid Expires, no validator", NoLifetime, 200, {{"Expires", "0"}}},
      {"RFC 9111 5.3: Expires at Date, no validator",
       NoLifetime,
       200,
       {{"Expires", kReceivedText}, {"Date", kReceivedText}}},
      {"RFC 9111 5.2.2.10: s-maxage=0 beside max-age",
       NoLifetime,
       200,
       {{"Cache-Control", "max-age=9, s-maxage=0"}}},
      {"RFC 9111 4.3: born stale with a validator",
       Storable,
       200,
       {{"Cache-Control", "max-age=0"}, {"ETag", "\"a\""}}},
      {"RFC 5861 3: born stale but usable stale",
       Storable,
       200,
       {{"Cache-Control", "max-age=0, stale-while-revalidate=9"}}},
      {"RFC 5861 4: born stale but usable on error",
       Storable,
       200,
       {{"Cache-Control", "max-age=0, stale-if-error=9"}}},
      {"RFC 9111 5.2.2.2: born stale, stale use forbidden",
       NoLifetime,
       200,
       {{"Cache-Control", "max-age=0, stale-if-error=9, must-revalidate"}}},
      {"RFC 9111 7.3: Set-Cookie without explicit freshness",
       NoLifetime,
       200,
       {{"Last-Modified", kDayBefore}, {"Set-Cookie", "a=b"}}},
      {"RFC 9111 7.3: Set-Cookie that is public",
       Storable,
       200,
       {{"Cache-Control", "public"}, {"Last-Modified", kDayBefore}, {"Set-Cookie", "a=b"}}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    const RequestFacts request = read_facts(row.method, head(row.request));
    EXPECT_EQ(to_string(storability(request, response_facts(row.status, row.response))),
              to_string(row.expected));
  }
}

TEST(Freshness, StatusesThatMayBeStored) {
  struct Row {
    const char* clause;
    std::vector<int> statuses;
    Storability when_fresh, with_validator_only;
  };
  using enum Storability;
  const Row rows[] = {
      {"RFC 9110 15.1: heuristically cacheable",
       {200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501},
       Storable,
       Storable},
      {"RFC 9111 3: other final statuses, explicit freshness only",
       {201, 202, 205, 299, 302, 303, 307, 400, 401, 403, 412, 416, 499, 500, 502, 503, 504, 599},
       Storable,
       NoLifetime},
      {"RFC 9111 3: not final", {100, 101, 102, 103, 199}, Status, Status},
      {"RFC 9111 3.3, 4.3.4: parts and validations", {206, 304}, Status, Status},
      {"RFC 6585 3 to 6", {428, 429, 431, 511}, Status, Status},
      {"RFC 9110 15: no status code", {0, 99, 600, 999, -1}, Status, Status},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    for (const int status : row.statuses) {
      SCOPED_TRACE(status);
      const RequestFacts get;
      EXPECT_EQ(
          to_string(storability(get, response_facts(status, {{"Cache-Control", "max-age=9"}}))),
          to_string(row.when_fresh));
      EXPECT_EQ(to_string(storability(get, response_facts(status, {{"ETag", "\"a\""}}))),
                to_string(row.with_validator_only));
    }
  }
}

TEST(Freshness, TooManyVaryNamesAreAsGoodAsAny) {
  std::string vary = "a";
  for (std::size_t i = 1; i < kVaryNamesMax; ++i) vary += ", a" + std::to_string(i);
  const auto kept = [&] {
    return storability(
        read_facts("GET", head({})),
        read_facts(200, head({{"Cache-Control", "max-age=9"}, {"Vary", vary.c_str()}}),
                   WallTime{}));
  };
  EXPECT_EQ(kept(), Storability::Storable);
  vary += ", b";
  EXPECT_EQ(kept(), Storability::VaryAny) << "RFC 9111 4.1: one name too many";
}

TEST(Freshness, StorabilityNames) {
  EXPECT_EQ(to_string(Storability::Storable), "storable");
  EXPECT_EQ(to_string(Storability::RequestNoStore), "request-no-store");
  EXPECT_EQ(to_string(Storability::NoStore), "no-store");
  EXPECT_EQ(to_string(Storability::VaryAny), "vary-any");
  EXPECT_EQ(to_string(Storability::NoLifetime), "no-lifetime");
}

TEST(Freshness, StaleForGood) {
  struct Row {
    const char* clause;
    bool expected;
    HeadLines response;
  };
  const Row rows[] = {
      {"RFC 9111 4.2.4: fresh", false, {{"Cache-Control", "max-age=10"}, {"Age", "9"}}},
      {"RFC 9111 4.2.4: as old as its lifetime",
       true,
       {{"Cache-Control", "max-age=10"}, {"Age", "10"}}},
      {"RFC 9111 4.3: a validator makes it useful",
       false,
       {{"Cache-Control", "max-age=10"}, {"Age", "99"}, {"ETag", "\"a\""}}},
      {"RFC 5861 3: within stale-while-revalidate",
       false,
       {{"Cache-Control", "max-age=10, stale-while-revalidate=90"}, {"Age", "99"}}},
      {"RFC 5861 4: past stale-if-error",
       true,
       {{"Cache-Control", "max-age=10, stale-if-error=80"}, {"Age", "99"}}},
      {"RFC 9111 5.2.2.2: must-revalidate forbids every stale use",
       true,
       {{"Cache-Control", "max-age=10, stale-if-error=90, must-revalidate"}, {"Age", "99"}}},
  };
  const WallTime now = *parse_http_date(kHourLater, WallTime{});
  for (const Row& row : rows) {
    const ResponseFacts facts = read_facts(200, head(row.response), now);
    EXPECT_EQ(is_stale_for_good(facts, {now, now}, kLimits, now), row.expected) << row.clause;
  }
}

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

      {"RFC 5861 3: within", ServeStaleAndRevalidate, Seconds{15},
       "max-age=10, stale-while-revalidate=5"},
      {"RFC 5861 3: passed", Validate, Seconds{16}, "max-age=10, stale-while-revalidate=5"},
      {"RFC 5861 3: while fresh", Serve, Seconds{9}, "max-age=10, stale-while-revalidate=5"},
      {"RFC 9111 5.2.2.2: must-revalidate forbids it", Validate, Seconds{11},
       "max-age=10, stale-while-revalidate=5, must-revalidate"},
      {"RFC 9111 5.2.2.8: proxy-revalidate forbids it", Validate, Seconds{11},
       "max-age=10, stale-while-revalidate=5, proxy-revalidate"},
      {"RFC 9111 5.2.2.10: s-maxage forbids it", Validate, Seconds{11},
       "s-maxage=10, stale-while-revalidate=5"},
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
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(may_serve_on_error(get_facts(row.request),
                                 response_facts(200, {{"Cache-Control", row.response}}), kAtOnce,
                                 kLimits, kReceived + row.age),
              row.may);
  }
}

}  // namespace
}  // namespace secondsight::cache::policy
