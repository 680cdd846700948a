#include "cache/policy/vary.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

#include "tests/cache/policy/heads.h"

namespace secondsight::cache::policy {
namespace {

TEST(Vary, RequestsThatMatch) {
  struct Row {
    const char* clause;
    std::vector<std::string> vary;
    HeadLines a, b;
    bool match;
  };
  const Row rows[] = {
      {"RFC 9111 4.1: equal", {"foo"}, {{"Foo", "1"}}, {{"fOO", "1"}}, true},
      {"RFC 9111 4.1: different", {"foo"}, {{"Foo", "1"}}, {{"Foo", "2"}}, false},
      {"RFC 9111 4.1: absent in one", {"foo"}, {{"Foo", "1"}}, {}, false},
      {"RFC 9111 4.1: empty is not absent", {"foo"}, {{"Foo", ""}}, {}, false},
      {"RFC 9111 4.1: absent in both", {"foo"}, {{"Bar", "1"}}, {{"Bar", "2"}}, true},
      {"RFC 9111 4.1: other fields do not matter",
       {"foo"},
       {{"Foo", "1"}, {"X", "1"}},
       {{"X", "2"}, {"Foo", "1"}},
       true},
      {"RFC 9111 4.1: one of two differs",
       {"bar", "foo"},
       {{"Foo", "1"}, {"Bar", "1"}},
       {{"Foo", "1"}, {"Bar", "2"}},
       false},
      {"RFC 9111 4.1: values do not move between fields",
       {"bar", "foo"},
       {{"Foo", "1"}, {"Bar", "2"}},
       {{"Foo", "2"}, {"Bar", "1"}},
       false},
      {"RFC 9111 4.1: lines are combined",
       {"foo"},
       {{"Foo", "1, 2"}},
       {{"Foo", "1"}, {"X", "x"}, {"foo", "2"}},
       true},
      {"RFC 9111 4.1: order of members matters",
       {"foo"},
       {{"Foo", "1, 2"}},
       {{"Foo", "2, 1"}},
       false},
      {"RFC 9111 4.1: whitespace around commas does not",
       {"foo"},
       {{"Foo", "1,2"}},
       {{"Foo", " 1 ,\t2 "}},
       true},
      {"RFC 9110 5.6.1.2: empty members do not",
       {"foo"},
       {{"Foo", "1,,2,"}},
       {{"Foo", "1,2"}},
       true},
      {"RFC 9110 5.6.4: inside quotes it does",
       {"foo"},
       {{"Foo", "\"1,2\""}},
       {{"Foo", "\"1, 2\""}},
       false},
      {"RFC 9110 5.6.3: inside a member it does",
       {"foo"},
       {{"Foo", "1 2"}},
       {{"Foo", "1  2"}},
       false},
      {"RFC 9110 10.1.5: User-Agent is no list",
       {"user-agent"},
       {{"User-Agent", "a, b"}},
       {{"User-Agent", "a,b"}},
       false},
      {"RFC 6265 5.4: Cookie is no list",
       {"cookie"},
       {{"Cookie", "a=1,,2"}},
       {{"Cookie", "a=1,2"}},
       false},
      {"RFC 9110 5.5: surrounding whitespace is no part of it",
       {"cookie"},
       {{"Cookie", "a=1 "}},
       {{"Cookie", " a=1"}},
       true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(vary_text(row.vary, head(row.a)) == vary_text(row.vary, head(row.b)), row.match);
  }
}

TEST(Vary, GoldenTexts) {
  // Stored on disk as part of keys.
  EXPECT_EQ(vary_text({"accept", "foo"}, head({{"Accept", "a/b, c/d"}})),
            "6:accept=7:a/b,c/d3:foo!");
  EXPECT_EQ(vary_text({}, head({{"A", "b"}})), "");
}

/// Values made of the bytes that the encoding itself uses.
TEST(Vary, NoTwoRequestsShareAText) {
  constexpr unsigned kSeed = 20240601;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const std::vector<std::string> vary{"a", "aa", "b"};
  std::map<std::string, std::vector<std::string>> seen;
  for (int round = 0; round < 20000; ++round) {
    FieldBlock request;
    std::vector<std::string> values;
    for (const std::string& name : vary) {
      std::string value;
      const auto size = random() % 5;
      for (std::size_t i = 0; i < size; ++i) value += "=!:01ab"[random() % 7];
      const bool is_present = random() % 3 != 0;
      if (is_present) request.add(name, value);
      values.push_back(is_present ? "present " + value : "absent");
    }
    const auto [place, is_new] = seen.try_emplace(vary_text(vary, request), values);
    if (!is_new) {
      ASSERT_EQ(place->second, values);
    }
  }
  EXPECT_GT(seen.size(), 1000u);
}

}  // namespace
}  // namespace secondsight::cache::policy
