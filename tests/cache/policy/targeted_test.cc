#include "cache/policy/targeted.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cache/policy/cache_control.h"
#include "cache/policy/freshness.h"
#include "cache/policy/validation.h"
#include "tests/cache/policy/heads.h"

namespace secondsight::cache::policy {
namespace {

/// As Cache-Control would write them, in a fixed order.
std::string describe(const ResponseDirectives& d) {
  std::string text;
  const auto flag = [&text](const char* name, bool is_set) {
    if (is_set) text.append(text.empty() ? "" : ", ").append(name);
  };
  const auto seconds = [&](const char* name, const std::optional<Seconds>& value) {
    if (value) flag((name + ("=" + std::to_string(value->count()))).c_str(), true);
  };
  seconds("max-age", d.max_age);
  seconds("s-maxage", d.s_maxage);
  seconds("stale-while-revalidate", d.stale_while_revalidate);
  seconds("stale-if-error", d.stale_if_error);
  flag("no-store", d.no_store);
  flag("no-cache", d.no_cache);
  flag("private", d.is_private);
  flag("public", d.is_public);
  flag("must-revalidate", d.must_revalidate);
  flag("proxy-revalidate", d.proxy_revalidate);
  flag("must-understand", d.must_understand);
  return text;
}

std::string describe(const std::optional<ResponseDirectives>& directives) {
  return directives ? describe(*directives) : "ignored";
}

TEST(Targeted, CdnCacheControl) {
  struct Row {
    const char* clause;
    const char* value;
    const char* directives;
  };
  const Row rows[] = {
      {"RFC 9213 2.1: max-age", "max-age=10", "max-age=10"},
      {"RFC 9213 2.2: the five that must be known",
       "max-age=10, must-revalidate, no-store, no-cache, private",
       "max-age=10, no-store, no-cache, private, must-revalidate"},
      {"RFC 9213 2.2: the others that Cache-Control knows",
       "s-maxage=9, stale-while-revalidate=8, stale-if-error=7, public, proxy-revalidate, "
       "must-understand",
       "s-maxage=9, stale-while-revalidate=8, stale-if-error=7, public, proxy-revalidate, "
       "must-understand"},
      {"RFC 9213 2.2: unknown directives are skipped", "foo=bar, max-age=10, x=(1 2)",
       "max-age=10"},
      {"RFC 9213 3.1: none of ours is still a field", "none", ""},
      {"RFC 9213 2.1: parameters are skipped", "max-age=10;x=1, no-store;y",
       "max-age=10, no-store"},
      {"RFC 9213 2.1: empty", "", "ignored"},
      {"RFC 9213 2.1: blank", "  ", "ignored"},
      {"RFC 9213 2.1: an error anywhere", "max-age=10, &&&", "ignored"},
      {"RFC 9213 2.1: a comma at the end", "no-store,", "ignored"},
      {"RFC 9213 2.1: space before =", "max-age =10", "ignored"},
      {"RFC 9213 2.1: space after =", "max-age= 10", "ignored"},
      {"RFC 9213 2.1: upper case", "Max-Age=10", "ignored"},
      {"RFC 9213 2.1: of duplicates the last", "max-age=10, max-age=99", "max-age=99"},
      {"RFC 9213 2.1: of duplicates the last, a flag", "no-store, no-store=?0", ""},

      {"RFC 9111 1.2.2: beyond 2^31", "max-age=99999999999", "max-age=2147483648"},
      {"RFC 9111 1.2.2: the largest integer", "max-age=999999999999999", "max-age=2147483648"},
      {"RFC 9651 4.2.4: larger than an integer", "max-age=1000000000000000", "ignored"},
      {"RFC 9111 4.2.1: zero", "max-age=0", "max-age=0"},
      {"RFC 9111 4.2.1: negative", "max-age=-10", "max-age=0"},
      {"RFC 9213 2.1: a decimal is not rounded", "max-age=10.0", "max-age=0"},
      {"RFC 9213 2.1: a string", "max-age=\"10\"", "max-age=0"},
      {"RFC 9213 2.1: a token", "s-maxage=ten", "s-maxage=0"},
      {"RFC 9213 2.1: no value", "max-age", "max-age=0"},
      {"RFC 9213 2.1: a list", "stale-if-error=(10)", "stale-if-error=0"},

      {"RFC 9111 5.2.2.4: qualified, read as unqualified", "no-cache=\"set-cookie\"", "no-cache"},
      {"RFC 9111 5.2.2.7: qualified, read as unqualified", "private=\"x, y\"", "private"},
      {"RFC 9213 2.1: a restriction of a wrong type restricts", "no-store=1, must-revalidate=x",
       "no-store, must-revalidate"},
      {"RFC 9213 2.1: a restriction that is false", "no-store=?0, private=?0, max-age=1",
       "max-age=1"},
      {"RFC 9213 2.1: a permission of a wrong type does not permit", "public=1, must-understand=x",
       ""},
      {"RFC 9213 2.1: a permission that is true", "public=?1", "public"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(describe(read_cdn_cache_control(row.value)), row.directives);
  }
}

TEST(Targeted, SurrogateControl) {
  struct Row {
    const char* clause;
    const char* value;
    const char* directives;
  };
  const Row rows[] = {
      {"Edge Architecture 2.2.3: max-age", "max-age=600", "max-age=600"},
      {"Edge Architecture 2.2.3: and how long it may be used stale", "max-age=600+60",
       "max-age=600, stale-while-revalidate=60"},
      {"Edge Architecture 2.2.3: an unreadable extension", "max-age=600+x",
       "max-age=600, stale-while-revalidate=0"},
      {"Edge Architecture 2.2.3: unreadable", "max-age=+60",
       "max-age=0, stale-while-revalidate=60"},
      {"Edge Architecture 2.2.1: no-store", "no-store, max-age=600", "max-age=600, no-store"},
      {"Edge Architecture 2.2.2: no-store-remote", "No-Store-Remote", "no-store"},
      {"Edge Architecture 2.2.4: content is not about caching", "content=\"ESI/1.0\"", "ignored"},
      {"Edge Architecture 2.2.4: content beside max-age",
       "content=\"ESI/1.0 a;b, no-store\", MAX-AGE=600", "max-age=600"},
      {"Cache-Control's directives", "max-age=600, stale-if-error=9, private",
       "max-age=600, stale-if-error=9, private"},
      {"RFC 9111 4.2.1: unreadable", "max-age=ten", "max-age=0"},
      {"RFC 9110 5.6.4: a quote never closed hides the rest", "content=\"ESI/1.0, max-age=600",
       "no-store, private"},
      {"empty", "", "ignored"},
      {"nothing known", "foo, bar=1", "ignored"},

      {"Edge Architecture 2.3: for us", "max-age=600;secondsight", "max-age=600"},
      {"Edge Architecture 2.3: for another", "max-age=600;edge, no-store; core", "ignored"},
      {"Edge Architecture 2.3: for several, us among them", "max-age=600;edge; SecondSight",
       "max-age=600"},
      {"Edge Architecture 2.3: for several, us first", "max-age=600;secondsight;edge",
       "max-age=600"},
      {"Edge Architecture 2.3: a semicolon inside quotes names no one", "private=\"x;y\"",
       "private"},
      {"Edge Architecture 2.3: one behind them does", "private=\"x;y\";edge", "ignored"},
      {"Edge Architecture 2.3: ours goes before everyone's", "max-age=1;secondsight, max-age=600",
       "max-age=1"},
      {"Edge Architecture 2.3: in the other order, too", "max-age=1, max-age=600+5;secondsight",
       "max-age=600, stale-while-revalidate=5"},
      {"Edge Architecture 2.3: everyone's stays where ours says nothing",
       "no-store, max-age=600;secondsight", "max-age=600, no-store"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(describe(read_surrogate_control(row.value)), row.directives);
  }
}

TEST(Targeted, WhichFieldDecides) {
  constexpr const char* kExpires = "Sun, 06 Nov 1994 09:49:37 GMT";
  struct Row {
    const char* clause;
    HeadLines response;
    DirectiveSource source;
    const char* directives;
    bool has_expires = false;
  };
  using enum DirectiveSource;
  const Row rows[] = {
      {"RFC 9213 2.2: in place of Cache-Control and Expires",
       {{"Cache-Control", "max-age=1, no-store, private"},
        {"Expires", kExpires},
        {"cdn-cache-control", "max-age=600"}},
       CdnCacheControl,
       "max-age=600"},
      {"RFC 9213 2.2: in any order of lines",
       {{"CDN-Cache-Control", "no-store"}, {"Cache-Control", "max-age=1"}},
       CdnCacheControl,
       "no-store"},
      {"RFC 9213 2.2: also of an invalid Expires",
       {{"Expires", "0"}, {"CDN-Cache-Control", "max-age=600"}},
       CdnCacheControl,
       "max-age=600"},
      {"RFC 9213 2.2: one that asks nothing of us lifts all the same",
       {{"Cache-Control", "no-store"}, {"CDN-Cache-Control", "none"}},
       CdnCacheControl,
       ""},
      {"RFC 9213 2.1: invalid, as if it were absent",
       {{"Cache-Control", "no-store"},
        {"Expires", kExpires},
        {"CDN-Cache-Control", "max-age=10000, &&&"}},
       CacheControl,
       "no-store",
       true},
      {"RFC 9213 2.1: empty, as if it were absent",
       {{"Cache-Control", "max-age=1"}, {"CDN-Cache-Control", ""}},
       CacheControl,
       "max-age=1"},
      {"RFC 9651 4.2: several lines are one field",
       {{"CDN-Cache-Control", "max-age=1"},
        {"Cache-Control", "no-store"},
        {"CDN-Cache-Control", "must-revalidate, max-age=2"}},
       CdnCacheControl,
       "max-age=2, must-revalidate"},
      {"RFC 9651 4.2: one bad line spoils the others",
       {{"CDN-Cache-Control", "max-age=1"}, {"CDN-Cache-Control", "a=\"b"}},
       CacheControl,
       ""},
      {"RFC 9213 2.2: a field for other caches changes nothing",
       {{"Cache-Control", "max-age=1"}, {"Other-CDN-Cache-Control", "max-age=600"}},
       CacheControl,
       "max-age=1"},

      {"RFC 9213 2.2: Surrogate-Control goes before Cache-Control",
       {{"Surrogate-Control", "max-age=600"}, {"Cache-Control", "no-store"}, {"Expires", kExpires}},
       SurrogateControl,
       "max-age=600"},
      {"RFC 9213 2.2: CDN-Cache-Control goes before Surrogate-Control",
       {{"Surrogate-Control", "max-age=600"}, {"CDN-Cache-Control", "max-age=60"}},
       CdnCacheControl,
       "max-age=60"},
      {"RFC 9213 2.2: unless it is invalid",
       {{"Surrogate-Control", "max-age=600"}, {"CDN-Cache-Control", "max-age=60,"}},
       SurrogateControl,
       "max-age=600"},
      {"RFC 9213 2.2: neither says anything to us",
       {{"Surrogate-Control", "content=\"ESI/1.0\", max-age=9;edge"},
        {"Cache-Control", "s-maxage=3"},
        {"Expires", kExpires}},
       CacheControl,
       "s-maxage=3",
       true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    const ResponseFacts facts = response_facts(200, row.response);
    EXPECT_EQ(facts.source, row.source);
    EXPECT_EQ(describe(facts.directives), row.directives);
    EXPECT_EQ(facts.expires.has_value(), row.has_expires);
  }
}

TEST(Targeted, RulesFollowTheFieldThatDecides) {
  constexpr const char* kDayBefore = "Sat, 05 Nov 1994 08:49:37 GMT";
  struct Row {
    const char* clause;
    HeadLines response;
    Storability storable;
    Seconds lifetime;
    HeadLines request = {};
  };
  using enum Storability;
  const Row rows[] = {
      {"RFC 9213 2.2: stored in spite of no-store",
       {{"Cache-Control", "no-store"}, {"CDN-Cache-Control", "max-age=600"}},
       Storable,
       Seconds{600}},
      {"RFC 9213 2.2: not stored in spite of max-age",
       {{"Cache-Control", "max-age=600"}, {"CDN-Cache-Control", "private"}},
       Private,
       Seconds{0}},
      {"RFC 9213 2.2: an Expires that is ignored leaves the heuristic",
       {{"Expires", "0"}, {"CDN-Cache-Control", "none"}, {"Last-Modified", kDayBefore}},
       Storable,
       Seconds{8640}},
      {"RFC 9213 2.2: freshness of a wrong type is none, not the heuristic",
       {{"CDN-Cache-Control", "max-age=\"600\""}, {"Last-Modified", kDayBefore}},
       Storable,
       Seconds{0}},
      {"RFC 9213 2.2: and is of no use without a validator",
       {{"Cache-Control", "max-age=9"}, {"CDN-Cache-Control", "max-age=\"600\""}},
       NoLifetime,
       Seconds{0}},
      {"RFC 9213 2.2: s-maxage means the same here",
       {{"CDN-Cache-Control", "max-age=1, s-maxage=600"}},
       Storable,
       Seconds{600}},
      {"RFC 9111 3.5: Cache-Control beside it allows nothing",
       {{"Cache-Control", "public"}, {"CDN-Cache-Control", "max-age=600"}},
       Authorization,
       Seconds{600},
       {{"Authorization", "x"}}},
      {"RFC 9111 3.5: it allows by itself",
       {{"CDN-Cache-Control", "max-age=600, public"}},
       Storable,
       Seconds{600},
       {{"Authorization", "x"}}},
      {"RFC 9111 5.2.2.3: must-understand lifts no-store here, too",
       {{"CDN-Cache-Control", "max-age=600, no-store, must-understand"}},
       Storable,
       Seconds{600}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    const ResponseFacts facts = response_facts(200, row.response);
    EXPECT_EQ(to_string(storability(get_facts(row.request), facts)), to_string(row.storable));
    EXPECT_EQ(freshness_lifetime(facts, kAtOnce, {}), row.lifetime);
  }
}

TEST(Targeted, A304UpdatesIt) {
  // RFC 9111 3.2: as any field.
  const FieldBlock stored = head({{"CDN-Cache-Control", "max-age=1"}, {"ETag", "\"a\""}});
  const FieldBlock kept = freshened(stored, head({{"ETag", "\"a\""}}));
  EXPECT_EQ(read_facts(200, kept, kReceived).directives.max_age, Seconds{1});
  const FieldBlock updated = freshened(stored, head({{"CDN-Cache-Control", "max-age=2"}}));
  EXPECT_EQ(read_facts(200, updated, kReceived).directives.max_age, Seconds{2});
}

}  // namespace
}  // namespace secondsight::cache::policy
