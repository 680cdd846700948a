#include "cache/policy/vary.h"

#include <algorithm>
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
      {"RFC 9110 7.6.1: what Connection keeps from the origin is absent",
       {"foo"},
       {{"Foo", "1"}, {"Connection", "foo"}},
       {{"Foo", "1"}},
       false},
      {"RFC 9110 7.6.1: also for whoever does not send it",
       {"foo"},
       {{"Connection", "close, Foo"}, {"Foo", "1"}},
       {},
       true},
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

      {"RFC 9110 12.5.3: order and case of codings",
       {"accept-encoding"},
       {{"Accept-Encoding", "gzip, br"}},
       {{"Accept-Encoding", "BR,GZip"}},
       true},
      {"RFC 9110 12.5.3: other codings",
       {"accept-encoding"},
       {{"Accept-Encoding", "gzip, br"}},
       {{"Accept-Encoding", "gzip, deflate"}},
       false},
      {"RFC 9110 12.5.3: lines are one list",
       {"accept-encoding"},
       {{"Accept-Encoding", "gzip"}, {"Accept-Encoding", "br"}},
       {{"Accept-Encoding", "br, gzip"}},
       true},
      {"RFC 9110 8.4.1: x-gzip is gzip",
       {"accept-encoding"},
       {{"Accept-Encoding", "x-gzip, X-Compress"}},
       {{"Accept-Encoding", "compress, gzip"}},
       true},
      {"RFC 9110 12.4.2: weights as numbers",
       {"accept-encoding"},
       {{"Accept-Encoding", "gzip;q=1.0, br ; Q=0.50"}},
       {{"Accept-Encoding", "br;q=0.5, gzip"}},
       true},
      {"RFC 9110 12.4.2: another weight",
       {"accept-encoding"},
       {{"Accept-Encoding", "gzip, br;q=0.5"}},
       {{"Accept-Encoding", "gzip, br;q=0.501"}},
       false},
      {"RFC 9110 12.5.3: a refusal is not silence",
       {"accept-encoding"},
       {{"Accept-Encoding", "gzip, br;q=0"}},
       {{"Accept-Encoding", "gzip"}},
       false},
      {"RFC 9110 12.5.3: a refusal is not a wish",
       {"accept-encoding"},
       {{"Accept-Encoding", "gzip;q=0.000"}},
       {{"Accept-Encoding", "gzip"}},
       false},
      {"RFC 9110 12.5.3: identity alone is the empty field",
       {"accept-encoding"},
       {{"Accept-Encoding", "Identity;q=0.5"}},
       {{"Accept-Encoding", ""}},
       true},
      {"RFC 9110 12.5.3: identity beside a refusal says nothing",
       {"accept-encoding"},
       {{"Accept-Encoding", "identity, gzip;q=0"}},
       {{"Accept-Encoding", "gzip;q=0"}},
       true},
      {"RFC 9110 12.5.3: identity is preferred to gzip",
       {"accept-encoding"},
       {{"Accept-Encoding", "identity, gzip;q=0.5"}},
       {{"Accept-Encoding", "gzip;q=0.5"}},
       false},
      {"RFC 9110 12.5.3: identity is exempt from *",
       {"accept-encoding"},
       {{"Accept-Encoding", "identity, *;q=0"}},
       {{"Accept-Encoding", "*;q=0"}},
       false},
      {"RFC 9110 12.5.3: identity is refused",
       {"accept-encoding"},
       {{"Accept-Encoding", "identity;q=0"}},
       {{"Accept-Encoding", ""}},
       false},
      {"RFC 9110 12.5.3: empty is not absent",
       {"accept-encoding"},
       {{"Accept-Encoding", ""}},
       {},
       false},
      {"RFC 9110 12.5.3: an unreadable member is compared as text",
       {"accept-encoding"},
       {{"Accept-Encoding", "gzip;q=2, br"}},
       {{"Accept-Encoding", "gzip;q=2 , br"}},
       true},
      {"RFC 9110 12.5.3: in its place",
       {"accept-encoding"},
       {{"Accept-Encoding", "gzip;q=2, br"}},
       {{"Accept-Encoding", "br, gzip;q=2"}},
       false},
      {"RFC 9110 12.5.3: one coding with two weights has no one meaning",
       {"accept-encoding"},
       {{"Accept-Encoding", "gzip, gzip;q=0"}},
       {{"Accept-Encoding", "gzip;q=0, gzip"}},
       false},
      {"RFC 9110 12.5.3: one coding twice",
       {"accept-encoding"},
       {{"Accept-Encoding", "gzip, x-gzip"}},
       {{"Accept-Encoding", "gzip"}},
       true},
      {"RFC 9110 12.5.3: not in another field",
       {"foo"},
       {{"Foo", "gzip, br"}},
       {{"Foo", "br, gzip"}},
       false},

      {"RFC 9110 12.5.4: order, case and whitespace of languages",
       {"accept-language"},
       {{"Accept-Language", "en, de-CH"}},
       {{"Accept-Language", " DE-ch ,   eN"}},
       true},
      {"RFC 9110 12.4.2: weights of languages as numbers",
       {"accept-language"},
       {{"Accept-Language", "fr;q=0.50, de;q=1"}},
       {{"Accept-Language", "de, fr;q=0.5"}},
       true},
      {"RFC 9110 12.5.4: other weights",
       {"accept-language"},
       {{"Accept-Language", "fr;q=0.5, de"}},
       {{"Accept-Language", "de;q=0.5, fr"}},
       false},
      {"RFC 9110 12.5.4: a narrower range",
       {"accept-language"},
       {{"Accept-Language", "de"}},
       {{"Accept-Language", "de-de"}},
       false},
      {"RFC 9110 12.5.4: an unreadable member is compared as text",
       {"accept-language"},
       {{"Accept-Language", "en_US, de"}},
       {{"Accept-Language", "en_us, de"}},
       false},
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
  EXPECT_EQ(vary_text({"accept-encoding"},
                      head({{"Accept-Encoding", "x-gzip;q=0.25, identity;q=0, BR;q=1"}})),
            "15:accept-encoding=27:br,gzip;q=0.25,identity;q=0");
  EXPECT_EQ(vary_text({"accept-language"}, head({{"Accept-Language", "en, *;q=.5, DE"}})),
            "15:accept-language=12:en,*;q=.5,DE");
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

/// Accept-Encoding written in every way: one text for one meaning, and only for one.
TEST(Vary, OneTextForEachMeaningOfAcceptEncoding) {
  constexpr unsigned kSeed = 20261130;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const std::vector<std::string> names{"gzip", "br", "zstd"};
  const std::vector<std::vector<std::string>> weights{
      {"", ";q=1", " ; q=1.000", ";Q=1."}, {";q=0.5", ";q=0.50", "; q=0.500"}, {";q=0", ";q=0.0"}};
  using Meaning = std::map<std::string, std::size_t>;
  std::map<std::string, Meaning> seen;
  std::map<Meaning, std::string> texts;
  for (int round = 0; round < 5000; ++round) {
    Meaning meaning;
    std::vector<std::string> members;
    for (const std::string& name : names) {
      if (random() % 4 == 0) continue;
      const std::size_t weight = random() % weights.size();
      meaning[name] = weight;
      std::string written = name == "gzip" && random() % 2 == 0 ? "x-gzip" : name;
      if (random() % 2 == 0) written[0] = static_cast<char>(written[0] - 'a' + 'A');
      members.push_back(written + weights[weight][random() % weights[weight].size()]);
    }
    std::shuffle(members.begin(), members.end(), random);
    FieldBlock request;
    request.add("Accept-Encoding", "");
    for (const std::string& member : members) request.add("Accept-Encoding", member);
    const std::string text = vary_text({"accept-encoding"}, request);
    ASSERT_EQ(seen.try_emplace(text, meaning).first->second, meaning) << text;
    ASSERT_EQ(texts.try_emplace(meaning, text).first->second, text);
  }
  EXPECT_EQ(seen.size(), 64u);
}

}  // namespace
}  // namespace secondsight::cache::policy
