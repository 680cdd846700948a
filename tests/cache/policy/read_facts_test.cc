#include "cache/policy/read_facts.h"

#include <gmock/gmock.h>

#include <gtest/gtest.h>

#include "cache/policy/cache_control.h"
#include "tests/cache/policy/heads.h"

namespace secondsight::cache::policy {
namespace {

using testing::ElementsAreArray;

constexpr Seconds kMax = kDeltaSecondsMax;
constexpr std::optional<Seconds> kNone;

TEST(ReadFacts, MaxAge) {
  struct Row {
    const char* clause;
    const char* value;
    std::optional<Seconds> max_age;
  };
  const Row rows[] = {
      {"RFC 9111 5.2.2.1: token form", "max-age=10", Seconds{10}},
      {"RFC 9111 5.2: quoted form", "max-age=\"10\"", Seconds{10}},
      {"RFC 9111 5.2: any case", "MaX-aGe=10", Seconds{10}},
      {"RFC 9111 1.2.2: leading zeros", "max-age=0010", Seconds{10}},
      {"RFC 9111 1.2.2: the largest", "max-age=2147483648", kMax},
      {"RFC 9111 1.2.2: above", "max-age=2147483649", kMax},
      {"RFC 9111 1.2.2: far above 64 bits", "max-age=99999999999999999999999999", kMax},
      {"RFC 9111 5.2.3: unknown directives are skipped", "foo, bar=1, max-age=10", Seconds{10}},
      {"RFC 9111 5.2.3: quoted text is not a directive", "x=\"max-age=100\", max-age=1",
       Seconds{1}},
      {"RFC 9111 5.2.3: the same, after", "max-age=1, x=\"max-age=100\"", Seconds{1}},
      {"RFC 9111 5.2.3: quoted text alone", "x=\"a, max-age=100\"", kNone},
      {"RFC 9111 4.2.1: duplicates, the strictest", "max-age=10, max-age=1", Seconds{1}},
      {"RFC 9111 4.2.1: duplicates, the other order", "max-age=1, max-age=10", Seconds{1}},
      {"RFC 9111 4.2.1: one of two is unreadable", "max-age=10, max-age=x", Seconds{0}},
      {"RFC 9111 4.2.1: no value", "max-age", Seconds{0}},
      {"RFC 9111 4.2.1: empty", "max-age=", Seconds{0}},
      {"RFC 9111 4.2.1: empty quotes", "max-age=\"\"", Seconds{0}},
      {"RFC 9111 4.2.1: negative", "max-age=-10", Seconds{0}},
      {"RFC 9111 4.2.1: plus sign", "max-age=+10", Seconds{0}},
      {"RFC 9111 4.2.1: decimals", "max-age=10.0", Seconds{0}},
      {"RFC 9111 4.2.1: leading letter", "max-age=a10", Seconds{0}},
      {"RFC 9111 4.2.1: trailing letter", "max-age=10a", Seconds{0}},
      {"RFC 9111 4.2.1: single quotes", "max-age='10'", Seconds{0}},
      {"RFC 9111 4.2.1: space before =", "max-age =10", Seconds{0}},
      {"RFC 9111 4.2.1: space after =", "max-age= 10", Seconds{0}},
      {"RFC 9111 4.2.1: semicolon", "max-age=10; public", Seconds{0}},
      {"another name", "xmax-age=10", kNone},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(response_facts(200, {{"Cache-Control", row.value}}).directives.max_age, row.max_age);
    EXPECT_EQ(get_facts({{"Cache-Control", row.value}}).max_age, row.max_age);
  }
}

TEST(ReadFacts, ResponseDirectives) {
  using Flag = bool ResponseDirectives::*;
  const std::vector<Flag> all{
      &ResponseDirectives::no_store,        &ResponseDirectives::no_cache,
      &ResponseDirectives::is_private,      &ResponseDirectives::is_public,
      &ResponseDirectives::must_revalidate, &ResponseDirectives::proxy_revalidate,
      &ResponseDirectives::must_understand};
  struct Row {
    const char* clause;
    const char* value;
    std::vector<Flag> set;
  };
  const Row rows[] = {
      {"RFC 9111 5.2.2.2", "must-revalidate", {&ResponseDirectives::must_revalidate}},
      {"RFC 9111 5.2.2.3", "must-understand", {&ResponseDirectives::must_understand}},
      {"RFC 9111 5.2.2.4", "no-cache", {&ResponseDirectives::no_cache}},
      {"RFC 9111 5.2.2.4: qualified, read as unqualified",
       "no-cache=\"set-cookie, x\"",
       {&ResponseDirectives::no_cache}},
      {"RFC 9111 5.2.2.5", "No-StOrE", {&ResponseDirectives::no_store}},
      {"RFC 9111 5.2.2.5: malformed still restricts",
       "no-store; foo",
       {&ResponseDirectives::no_store}},
      {"RFC 9111 5.2.2.5: with a value", "no-store=1", {&ResponseDirectives::no_store}},
      {"RFC 9111 5.2.2.7", "private", {&ResponseDirectives::is_private}},
      {"RFC 9111 5.2.2.7: qualified, read as unqualified",
       "private=\"x\"",
       {&ResponseDirectives::is_private}},
      {"RFC 9111 5.2.2.7: qualified with a bare token",
       "private=x",
       {&ResponseDirectives::is_private}},
      {"RFC 9111 5.2.2.8", "proxy-revalidate", {&ResponseDirectives::proxy_revalidate}},
      {"RFC 9111 5.2.2.9", "public", {&ResponseDirectives::is_public}},
      {"RFC 9111 5.2.2.9: malformed does not permit", "public; foo", {}},
      {"RFC 9111 5.2.2.3: malformed does not permit", "must-understand foo", {}},
      {"RFC 9111 5.2: several",
       "public ,, no-cache,must-revalidate",
       {&ResponseDirectives::is_public, &ResponseDirectives::no_cache,
        &ResponseDirectives::must_revalidate}},
      {"RFC 9110 5.6.4: a quote never closed hides the rest",
       "public, x=\"a",
       {&ResponseDirectives::is_public, &ResponseDirectives::no_store,
        &ResponseDirectives::is_private}},
      {"RFC 9111 5.2.3: unknown", "immutable, foo=\"no-store\"", {}},
      {"nothing", "", {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    const ResponseDirectives read = response_facts(200, {{"Cache-Control", row.value}}).directives;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool expected = std::find(row.set.begin(), row.set.end(), all[i]) != row.set.end();
      EXPECT_EQ(read.*all[i], expected) << "flag " << i;
    }
  }
}

TEST(ReadFacts, LinesOfCacheControlAddUp) {
  const auto d =
      response_facts(200, {{"cache-control", "s-maxage=5"},
                           {"X", "y"},
                           {"Cache-Control", "stale-while-revalidate=6, stale-if-error=7"},
                           {"CACHE-CONTROL", "s-maxage=\"9\", no-cache"}})
          .directives;
  EXPECT_EQ(d.s_maxage, Seconds{5});
  EXPECT_EQ(d.stale_while_revalidate, Seconds{6});
  EXPECT_EQ(d.stale_if_error, Seconds{7});
  EXPECT_TRUE(d.no_cache);
  EXPECT_FALSE(d.max_age);
}

TEST(ReadFacts, Age) {
  struct Row {
    const char* clause;
    std::vector<const char*> lines;
    std::optional<Seconds> age;
  };
  const Row rows[] = {
      {"RFC 9111 5.1: plain", {"7"}, Seconds{7}},
      {"RFC 9111 5.1: the first member", {"7200, 0"}, Seconds{7200}},
      {"RFC 9111 5.1: the first member, small", {"0,7200"}, Seconds{0}},
      {"RFC 9111 5.1: the first line", {"7200", "0"}, Seconds{7200}},
      {"RFC 9111 1.2.2: overflow", {"99999999999"}, kMax},
      {"RFC 9111 5.1: invalid is ignored", {"abc"}, kNone},
      {"RFC 9111 5.1: negative is ignored", {"-7200"}, kNone},
      {"RFC 9111 5.1: a fraction is ignored", {"7200.0"}, kNone},
      {"RFC 9111 5.1: a plus sign is ignored", {"+7"}, kNone},
      {"RFC 9111 5.1: a parameter is ignored with its number", {"7200;foo=1"}, kNone},
      {"RFC 9111 5.1: quoted is ignored", {"\"7\""}, kNone},
      {"RFC 9111 5.1: two equal members", {"0, 0"}, Seconds{0}},
      {"RFC 9110 5.6.1: an empty member is none", {", 7"}, Seconds{7}},
      {"RFC 9111 1.2.2: leading zeros", {"007"}, Seconds{7}},
      {"RFC 9111 1.2.2: one below 2^31", {"2147483647"}, kMax - Seconds{1}},
      {"RFC 9111 1.2.2: 2^31", {"2147483648"}, kMax},
      {"RFC 9111 1.2.2: above 2^31", {"2147483649"}, kMax},
      {"RFC 9111 5.1: only the first is looked at", {"x, 7"}, kNone},
      {"RFC 9111 5.1: only the first line is looked at", {"x", "7"}, kNone},
      {"RFC 9111 5.1: empty", {""}, kNone},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    FieldBlock fields;
    for (const char* line : row.lines) fields.add("Age", line);
    EXPECT_EQ(read_facts(200, fields, kReceived).age, row.age);
  }
}

TEST(ReadFacts, Dates) {
  const char* earlier = "Sun, 06 Nov 1994 08:00:00 GMT";
  const WallTime earlier_time = kReceived - Seconds{49 * 60 + 37};
  struct Row {
    const char* clause;
    std::vector<const char*> lines;
    std::optional<WallTime> expires, date_or_last_modified;
  };
  const Row rows[] = {
      {"RFC 9111 5.3: valid", {earlier}, earlier_time, earlier_time},
      {"RFC 9111 5.3: 0 is in the past", {"0"}, WallTime{}, std::nullopt},
      {"RFC 9111 5.3: invalid is in the past",
       {"Sun, 06 Nov 1994 08:49:37 UTC"},
       WallTime{},
       std::nullopt},
      {"RFC 9111 5.3: empty is in the past", {""}, WallTime{}, std::nullopt},
      {"RFC 9111 4.2.1: of two Expires the earlier",
       {kReceivedText.data(), earlier},
       earlier_time,
       kReceived},
      {"RFC 9111 4.2.1: one of two Expires is invalid", {earlier, "x"}, WallTime{}, earlier_time},
      {"absent", {}, std::nullopt, std::nullopt},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    FieldBlock fields;
    for (const char* name : {"Expires", "Date", "Last-Modified"})
      for (const char* line : row.lines) fields.add(name, line);
    const ResponseFacts facts = read_facts(200, fields, kReceived);
    EXPECT_EQ(facts.expires, row.expires);
    EXPECT_EQ(facts.date, row.date_or_last_modified);
    EXPECT_EQ(facts.last_modified, row.date_or_last_modified);
  }
}

TEST(ReadFacts, Vary) {
  struct Row {
    const char* clause;
    std::vector<const char*> lines;
    std::vector<std::string> vary;
  };
  const Row rows[] = {
      {"RFC 9110 12.5.5: names, lower case, sorted, once",
       {"Foo, accept-encoding,FOO"},
       {"accept-encoding", "foo"}},
      {"RFC 9110 12.5.5: several lines", {"b", "a"}, {"a", "b"}},
      {"RFC 9111 4.1: star", {"*"}, {"*"}},
      {"RFC 9111 4.1: star twice", {"*, *"}, {"*"}},
      {"RFC 9111 4.1: star among names", {"foo, *, bar"}, {"*"}},
      {"RFC 9111 4.1: star first", {"*, Foo"}, {"*"}},
      {"RFC 9111 4.1: star last, no blank", {"Foo,*"}, {"*"}},
      {"RFC 9111 4.1: star among blanks", {" *\t"}, {"*"}},
      {"RFC 9110 5.1: an escaped star is no name", {"\\*"}, {"*"}},
      {"RFC 9110 5.1: a quoted star is no name", {"\"*\""}, {"*"}},
      {"RFC 9111 4.1: star after an empty member", {", *"}, {"*"}},
      {"RFC 9111 4.1: star on another line", {"", "foo", "*"}, {"*"}},
      {"RFC 9110 5.1: what is no name could mean anything", {"foo bar"}, {"*"}},
      {"RFC 9110 12.5.5: empty", {""}, {}},
      {"absent", {}, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    FieldBlock fields;
    for (const char* line : row.lines) fields.add("Vary", line);
    EXPECT_THAT(read_facts(200, fields, kReceived).vary, ElementsAreArray(row.vary));
  }
}

TEST(ReadFacts, EtagAndSetCookie) {
  EXPECT_EQ(response_facts(200, {{"etag", "W/\"a,b\""}}).etag, "W/\"a,b\"");
  EXPECT_EQ(response_facts(200, {{"ETag", "\"a\""}, {"ETag", "\"a\""}}).etag, "\"a\"");
  EXPECT_EQ(response_facts(200, {{"ETag", "\"a\""}, {"ETag", "\"b\""}}).etag, "");
  EXPECT_TRUE(response_facts(200, {{"set-cookie", "a=b"}}).has_set_cookie);
  EXPECT_FALSE(response_facts(200, {{"set-cookie2", "a=b"}}).has_set_cookie);
  EXPECT_EQ(response_facts(404, {}).status, 404);
}

TEST(ReadFacts, RequestDirectives) {
  struct Row {
    const char* clause;
    const char* value;
    std::optional<Seconds> min_fresh, max_stale, stale_if_error;
    bool no_store = false, no_cache = false, only_if_cached = false;
  };
  const Row rows[] = {
      {"RFC 9111 5.2.1.2: max-stale", "max-stale=5", kNone, Seconds{5}, kNone},
      {"RFC 9111 5.2.1.2: any staleness", "max-stale", kNone, kMax, kNone},
      {"RFC 9111 5.2.1.2: unreadable", "max-stale=x", kNone, Seconds{0}, kNone},
      {"RFC 9111 5.2.1.2: the strictest of two", "max-stale, max-stale=5", kNone, Seconds{5},
       kNone},
      {"RFC 9111 5.2.1.2: malformed", "max-stale foo", kNone, Seconds{0}, kNone},
      {"RFC 9111 5.2.1.3: min-fresh", "min-fresh=5", Seconds{5}, kNone, kNone},
      {"RFC 9111 5.2.1.3: unreadable", "min-fresh=-5", kMax, kNone, kNone},
      {"RFC 9111 5.2.1.3: the strictest of two", "min-fresh=5,min-fresh=9", Seconds{9}, kNone,
       kNone},
      {"RFC 9111 5.2.1.4: no-cache", "No-Cache", kNone, kNone, kNone, false, true},
      {"RFC 9111 5.2.1.5: no-store", "no-store", kNone, kNone, kNone, true},
      {"RFC 9111 5.2.1.7: only-if-cached", "only-if-cached", kNone, kNone, kNone, false, false,
       true},
      {"RFC 5861 4: stale-if-error", "stale-if-error=9", kNone, kNone, Seconds{9}},
      {"RFC 9110 5.6.4: never closed", "x=\"max-stale", kNone, kNone, kNone, true, true},
      {"RFC 9111 5.2.3: unknown", "nothing-to-see-here", kNone, kNone, kNone},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    const RequestFacts facts = get_facts({{"Cache-Control", row.value}});
    EXPECT_EQ(facts.min_fresh, row.min_fresh);
    EXPECT_EQ(facts.max_stale, row.max_stale);
    EXPECT_EQ(facts.stale_if_error, row.stale_if_error);
    EXPECT_EQ(facts.no_store, row.no_store);
    EXPECT_EQ(facts.no_cache, row.no_cache);
    EXPECT_EQ(facts.only_if_cached, row.only_if_cached);
  }
}

TEST(ReadFacts, Pragma) {
  struct Row {
    const char* clause;
    HeadLines fields;
    bool request_no_cache;
  };
  const Row rows[] = {
      {"RFC 9111 5.4: no-cache", {{"Pragma", "no-cache"}}, true},
      {"RFC 9111 5.4: in any case, among others", {{"pragma", "foo, No-Cache"}}, true},
      {"RFC 9111 5.4: on another line", {{"Pragma", "foo"}, {"Pragma", "no-cache"}}, true},
      {"RFC 9111 5.4: unknown", {{"Pragma", "foo"}}, false},
      {"RFC 9111 5.4: quoted text", {{"Pragma", "foo=\"a, no-cache\""}}, false},
      {"RFC 9111 5.4: Cache-Control wins",
       {{"Pragma", "no-cache"}, {"Cache-Control", "foo"}},
       false},
      {"RFC 9111 5.4: even an empty one", {{"Cache-Control", ""}, {"Pragma", "no-cache"}}, false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(get_facts(row.fields).no_cache, row.request_no_cache);
    EXPECT_FALSE(response_facts(200, row.fields).directives.no_cache) << "never in responses";
  }
}

TEST(ReadFacts, MethodsAndRequestFields) {
  const FieldBlock none;
  EXPECT_EQ(read_facts("GET", none).method, Method::Get);
  EXPECT_EQ(read_facts("HEAD", none).method, Method::Head);
  EXPECT_EQ(read_facts("OPTIONS", none).method, Method::Safe);
  EXPECT_EQ(read_facts("TRACE", none).method, Method::Safe);
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "CONNECT", "get", "M-SEARCH", ""})
    EXPECT_EQ(read_facts(method, none).method, Method::Unsafe) << method;

  EXPECT_TRUE(get_facts({{"authorization", "Basic x"}}).has_authorization);
  EXPECT_TRUE(get_facts({{"Range", "bytes=0-"}}).has_range);
  for (const char* name : {"If-Match", "If-None-Match", "If-Modified-Since", "if-unmodified-since"})
    EXPECT_TRUE(get_facts({{name, "x"}}).has_conditions) << name;
  EXPECT_FALSE(get_facts({{"If-Range", "x"}}).has_conditions) << "RFC 9110 13.1.5: part of a Range";
  const RequestFacts facts = get_facts({{"Host", "a"}});
  EXPECT_FALSE(facts.has_authorization || facts.has_range || facts.has_conditions);
}

}  // namespace
}  // namespace secondsight::cache::policy
