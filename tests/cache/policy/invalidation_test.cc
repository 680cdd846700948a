#include "cache/policy/invalidation.h"

#include <gtest/gtest.h>

#include "tests/cache/policy/heads.h"

namespace secondsight::cache::policy {
namespace {

TEST(Invalidation, TargetsThatAResponseNames) {
  struct Row {
    const char* clause;
    HeadLines response;
    std::vector<std::string> targets;
  };
  const Row rows[] = {
      {"RFC 9111 4.4: Location", {{"Location", "http://example.test/b"}}, {"/b"}},
      {"RFC 9111 4.4: Content-Location", {{"Content-Location", "http://example.test/b"}}, {"/b"}},
      {"RFC 9111 4.4: both", {{"Content-Location", "/c"}, {"location", "/b"}}, {"/b", "/c"}},
      {"RFC 9111 4.4: another host", {{"Location", "http://other.test/b"}}, {}},
      {"RFC 9110 4.3.1: another port", {{"Location", "http://example.test:81/b"}}, {}},
      {"RFC 9110 4.3.1: another scheme", {{"Location", "https://example.test/b"}}, {}},
      {"RFC 9110 4.3.1: the default port", {{"Location", "http://example.test:80/b"}}, {"/b"}},
      {"RFC 9110 4.3.1: the host in any case", {{"Location", "HTTP://Example.Test/b"}}, {"/b"}},
      {"RFC 3986 5.2: an absolute path", {{"Location", "/b?c=d"}}, {"/b?c=d"}},
      {"RFC 3986 5.2: a relative path", {{"Location", "b"}}, {"/dir/b"}},
      {"RFC 3986 5.2: with dots", {{"Location", "../b/./c"}}, {"/b/c"}},
      {"RFC 3986 5.2: only a query", {{"Location", "?x"}}, {"/dir/a?x"}},
      {"RFC 3986 5.2: another authority", {{"Location", "//other.test/b"}}, {}},
      {"RFC 3986 5.2: a fragment is no part of a target", {{"Location", "/b#c"}}, {"/b"}},
      {"RFC 3986 5.2: no path", {{"Location", "http://example.test"}}, {"/"}},
      {"RFC 3986 4.1: no reference", {{"Location", "http://[bad/"}}, {}},
      {"RFC 3986 4.1: a blank", {{"Location", "/a b"}}, {}},
      {"RFC 9111 4.4: neither", {{"Link", "</b>"}}, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(also_invalidated("http", "example.test", "/dir/a?q", head(row.response)),
              row.targets);
  }
  // A request target that is no URI by the letter: no base for what is relative to it.
  EXPECT_EQ(also_invalidated("http", "example.test", "/a|b",
                             head({{"Location", "/c"}, {"Content-Location", "d"}})),
            (std::vector<std::string>{"/c"}));
  EXPECT_EQ(also_invalidated("http", "example.test:8080", "/a",
                             head({{"Location", "http://example.test:8080/b"}})),
            (std::vector<std::string>{"/b"}));
}

}  // namespace
}  // namespace secondsight::cache::policy
