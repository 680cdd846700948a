#include <gtest/gtest.h>

#include "cache/policy/freshness.h"
#include "cache/policy/http_date.h"
#include "tests/cache/policy/heads.h"

namespace secondsight::cache::policy {
namespace {

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
      {"RFC 9111 3.5: no-cache is not enough",
       Authorization,
       200,
       {{"Cache-Control", "no-cache"}, {"ETag", "\"a\""}},
       {{"Authorization", "x"}}},
      {"RFC 9111 3.5: private wins over public",
       Private,
       200,
       {{"Cache-Control", "max-age=9, public, private"}},
       {{"Authorization", "x"}}},
      {"RFC 9111 3.5: must-understand is not enough",
       Authorization,
       200,
       {{"Cache-Control", "max-age=9, must-understand"}},
       {{"Authorization", "x"}}},

      {"RFC 9111 3: 404 with explicit freshness", Storable, 404, {{"Cache-Control", "max-age=9"}}},
      {"RFC 9111 3: 410 with Expires", Storable, 410, {{"Expires", kHourLater}}},
      {"RFC 9111 3: 503 with explicit freshness", Storable, 503, {{"Cache-Control", "max-age=9"}}},
      {"RFC 9111 3: 404 without any", NoLifetime, 404, {{"Date", kReceivedText}}},
      {"RFC 9111 4.2.2: 404 by heuristic", Storable, 404, {{"Last-Modified", kDayBefore}}},
      {"RFC 9111 5.4: Pragma of a response means nothing",
       Storable,
       200,
       {{"Cache-Control", "max-age=9"}, {"Pragma", "no-cache"}}},
      {"RFC 9111 5.4: nor does it where there is no Cache-Control",
       Storable,
       200,
       {{"Last-Modified", kDayBefore}, {"Pragma", "no-cache"}}},

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
       {201, 202, 205, 299, 302, 303, 307, 400, 401, 403, 413, 499, 500, 502, 503, 504, 599},
       Storable,
       NoLifetime},
      {"RFC 9111 3: not final", {100, 101, 102, 103, 199}, Status, Status},
      {"RFC 9111 3.3, 4.3.4: parts and validations", {206, 304}, Status, Status},
      {"RFC 9110 13, 14, 10.1.1: what one request's conditions, range or expectation came to",
       {412, 416, 417},
       Status,
       Status},
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
      const ResponseFacts modified = response_facts(status, {{"Last-Modified", kDayBefore}});
      EXPECT_EQ(freshness_lifetime(modified, kAtOnce, kLimits) > Seconds{0},
                row.with_validator_only == Storable);
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
      {"RFC 9111 5.2.1.2: stale, but max-stale may use it",
       false,
       {{"Cache-Control", "max-age=10"}, {"Age", "10"}}},
      {"RFC 9111 4.2.4: stale, and no stale use is allowed",
       true,
       {{"Cache-Control", "max-age=10, proxy-revalidate"}, {"Age", "10"}}},
      {"RFC 9111 4.2.4: not yet stale",
       false,
       {{"Cache-Control", "max-age=10, proxy-revalidate"}, {"Age", "9"}}},
      {"RFC 9111 5.2.2.10: s-maxage allows none",
       true,
       {{"Cache-Control", "s-maxage=10"}, {"Age", "10"}}},
      {"RFC 9111 5.3: Expires was past when it came, without Date",
       true,
       {{"Expires", kDayBefore}}},
      {"RFC 9111 4.3: a validator makes it useful",
       false,
       {{"Cache-Control", "max-age=10"}, {"Age", "99"}, {"ETag", "\"a\""}}},
      {"RFC 5861 3: never fresh, within stale-while-revalidate",
       false,
       {{"Cache-Control", "max-age=0, stale-while-revalidate=90"}, {"Age", "89"}}},
      {"RFC 5861 4: never fresh, past stale-if-error",
       true,
       {{"Cache-Control", "max-age=0, stale-if-error=90"}, {"Age", "90"}}},
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

}  // namespace
}  // namespace secondsight::cache::policy
