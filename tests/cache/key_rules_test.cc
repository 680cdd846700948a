#include "cache/key_rules.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include <gtest/gtest.h>

#include "cache/key.h"
#include "tests/cache/policy/heads.h"

namespace secondsight::cache {
namespace {

using policy::HeadLines;

using Change = void (*)(SiteSettings&);

std::string target_text(const KeyRules& rules, std::string_view target) {
  const std::string text = rules.primary_text("http", "h", target, {});
  EXPECT_TRUE(text.starts_with("http://h")) << text;
  return text.substr(8);
}

KeyRules rules_of(Change change) {
  SiteSettings site;
  change(site);
  return KeyRules(site);
}

struct TargetRow {
  const char* clause;
  Change rules;
  const char *target, *expected;
};

void expect_texts(const std::vector<TargetRow>& rows) {
  for (const TargetRow& row : rows) {
    SCOPED_TRACE(std::string(row.clause) + ": " + row.target);
    EXPECT_EQ(target_text(rules_of(row.rules), row.target), row.expected);
  }
}

TEST(KeyRules, SortedQueries) {
  constexpr Change kSort = [](SiteSettings& s) { s.sort_query = true; };
  expect_texts({
      {"by name", kSort, "/?b=2&a=1", "/?a=1&b=2"},
      {"sorted already", kSort, "/?a=1&b=2", "/?a=1&b=2"},
      {"equal names keep their order", kSort, "/?b=1&a=2&b=0&a=1", "/?a=2&a=1&b=1&b=0"},
      {"a name is before a longer one", kSort, "/?ab=1&a=2", "/?a=2&ab=1"},
      {"by name, not by the whole", kSort, "/?a=1&a!=0", "/?a=1&a!=0"},
      {"case counts", kSort, "/?b&B&a", "/?B&a&b"},
      {"without =", kSort, "/?b&a=&a&b=", "/?a=&a&b&b="},
      {"empty names go first", kSort, "/?b&&a&=1", "/?&=1&a&b"},
      {"an empty query stays", kSort, "/?", "/?"},
      {"no query", kSort, "/b", "/b"},
      {"a further ? is text", kSort, "/?b?=1&a", "/?a&b?=1"},
      {"only & splits", kSort, "/?b;a&c=2;a=1", "/?b;a&c=2;a=1"},
      {"RFC 3986 6.2.2.2: an escaped name is the same", kSort, "/?b=1&%61=2", "/?a=2&b=1"},
      {"RFC 3986 6.2.2.2: reserved bytes stay escaped", kSort, "/?b=%26&a=%3d", "/?a=%3D&b=%26"},
      {"RFC 3986 6.2.2.1: hex digits", kSort, "/?%c3%bc=1&b", "/?%C3%BC=1&b"},
      {"+ is no blank", kSort, "/?a+b=1&a%20b=2&a%2Bb=3", "/?a%20b=2&a%2Bb=3&a+b=1"},
      {"RFC 3986 2.1: a broken escape is left, others are read", kSort, "/%7e?b=100%&%61=1",
       "/~?a=1&b=100%"},
      {"RFC 9110 4.2.3: an empty path", kSort, "?b&a", "/?a&b"},
      {"RFC 9112 3.2.4: no path", kSort, "*", "*"},
  });
}

TEST(KeyRules, KeptAndDroppedParameters) {
  constexpr Change kKeep = [](SiteSettings& s) { s.keep_params = {"id", "p_*", "a%20b"}; };
  constexpr Change kDrop = [](SiteSettings& s) { s.drop_params = {"utm_*", "fbclid", "%2Da"}; };
  constexpr Change kDropAll = [](SiteSettings& s) { s.drop_params = {"*"}; };
  expect_texts({
      {"only those named", kKeep, "/?x=1&id=2&y&p_a=3&p=4", "/?id=2&p_a=3"},
      {"in their order", kKeep, "/?p_b&id&p_a", "/?p_b&id&p_a"},
      {"all of a name", kKeep, "/?id=2&x&id=1", "/?id=2&id=1"},
      {"a prefix is one too", kKeep, "/?p_=1", "/?p_=1"},
      {"a whole name is no prefix", kKeep, "/?id2=1&i=1", "/"},
      {"case counts", kKeep, "/?ID=1", "/"},
      {"nothing left, no ?", kKeep, "/a?x", "/a"},
      {"an empty query names none", kKeep, "/a?", "/a"},
      {"as a URL spells them", kKeep, "/?a%20b=1&a+b=2", "/?a%20b=1"},
      {"RFC 3986 6.2.2.2: escaped names", kKeep, "/?%69d=1&p%5Fx=2", "/?id=1&p_x=2"},
      {"a name that holds an escaped =", kKeep, "/?id%3D=1", "/"},
      {"all but those named", kDrop, "/?a=1&utm_source=x&b&fbclid=3&c=", "/?a=1&b&c="},
      {"the first", kDrop, "/?utm_source=x&a", "/?a"},
      {"the last", kDrop, "/?a&fbclid", "/?a"},
      {"nothing left", kDrop, "/a?fbclid=1&utm_", "/a"},
      {"values are not names", kDrop, "/?a=fbclid&b=utm_x", "/?a=fbclid&b=utm_x"},
      {"an empty query stays", kDrop, "/a?", "/a?"},
      {"so does an empty parameter", kDrop, "/a?fbclid&", "/a?"},
      {"RFC 3986 6.2.2.2: the rule's own escapes", kDrop, "/?-a=1&%2da=2&b", "/?b"},
      {"RFC 3986 2.1: a broken name is no other", kDrop, "/?fbclid%=1", "/?fbclid%=1"},
      {"RFC 3986 2.1: a broken value does not hide a name", kDrop, "/?utm%5fx=100%&a=%", "/?a=%"},
      {"the whole query", kDropAll, "/a?b=1&&c", "/a"},
      {"an empty one too", kDropAll, "/a?", "/a"},
      {"the path is nobody's parameter", kDropAll, "/a&b=1", "/a&b=1"},
  });
}

TEST(KeyRules, EmptyQueriesAndPaths) {
  constexpr Change kEmpty = [](SiteSettings& s) { s.drop_empty_query = true; };
  constexpr Change kDots = [](SiteSettings& s) { s.remove_dot_segments = true; };
  constexpr Change kAll = [](SiteSettings& s) {
    s.drop_empty_query = s.sort_query = s.remove_dot_segments = true;
    s.drop_params = {"x"};
  };
  expect_texts({
      {"RFC 3986 6.2.3: an empty query is none only where a rule says so", kEmpty, "/a?", "/a"},
      {"a parameter without name is not nothing", kEmpty, "/a?=", "/a?="},
      {"nor are two", kEmpty, "/a?&", "/a?&"},
      {"other queries", kEmpty, "/a?b", "/a?b"},
      {"RFC 3986 6.2.3: without the rule it stays", kDots, "/a?", "/a?"},
      {"RFC 3986 6.2.2.3: dot segments", kDots, "/a/./b/../c?d/../e", "/a/c?d/../e"},
      {"RFC 3986 6.2.2.3: kept without the rule", kEmpty, "/a/../b", "/a/../b"},
      {"RFC 3986 6.2.2.3: a path that is all dots", kDots, "/..?x", "/?x"},
      {"together", kAll, "/a/..?x=1&", "/"},
      {"together", kAll, "/./%61?c&x&b", "/a?b&c"},
  });
}

TEST(KeyRules, FieldsInTheKey) {
  const KeyRules rules = rules_of([](SiteSettings& s) { s.key_headers = {"x-b", "accept"}; });
  struct Row {
    const char* clause;
    HeadLines fields;
    const char* added;
  };
  const Row rows[] = {
      {"missing", {}, "h6:accept!h3:x-b!"},
      {"empty is not missing", {{"X-B", ""}}, "h6:accept!h3:x-b=0:"},
      {"in any case", {{"ACCEPT", "a"}, {"x-B", "c"}}, "h6:accept=1:ah3:x-b=1:c"},
      {"values keep theirs", {{"x-b", "aA"}}, "h6:accept!h3:x-b=2:aA"},
      {"RFC 9110 5.3: lines of one name, in order",
       {{"x-b", "2"}, {"Accept", "c"}, {"X-B", "1"}},
       "h6:accept=1:ch3:x-b=4:2, 1"},
      {"others do not count", {{"x-bb", "1"}, {"Host", "h"}}, "h6:accept!h3:x-b!"},
      {"a value cannot pass for another",
       {{"accept", "1:ah3:x-b=1:c"}},
       "h6:accept=13:1:ah3:x-b=1:ch3:x-b!"},
      {"RFC 9110 7.6.1: what Connection names does not reach the origin",
       {{"X-B", "victim"}, {"Connection", "close, X-b"}},
       "h6:accept!h3:x-b!"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(rules.primary_text("http", "h", "/%61?b", policy::head(row.fields)),
              "http://h/a?b\n+" + std::string(row.added));
  }
}

TEST(KeyRules, CookiesInTheKey) {
  const KeyRules rules = rules_of([](SiteSettings& s) { s.key_cookies = {"lang", "a"}; });
  struct Row {
    const char* clause;
    HeadLines fields;
    const char* added;
  };
  const Row rows[] = {
      {"no cookies", {}, "c1:a!c4:lang!"},
      {"others only", {{"Cookie", "b=a; lang2=1; Lang=2"}}, "c1:a!c4:lang!"},
      {"RFC 6265 4.2.1: one of many", {{"Cookie", "b=1; lang=de; c=3"}}, "c1:a!c4:lang=2:de"},
      {"empty is not missing", {{"cookie", "lang="}}, "c1:a!c4:lang=0:"},
      {"without = is neither", {{"cookie", "lang"}}, "c1:a!c4:lang-"},
      {"blanks between pairs", {{"Cookie", "a=1;\t lang=de"}}, "c1:a=1:1c4:lang=2:de"},
      {"blanks beside the = count", {{"Cookie", "lang =de;a=1"}}, "c1:a=1:1c4:lang~2:de"},
      {"and behind it", {{"Cookie", "lang= de"}}, "c1:a!c4:lang=3: de"},
      {"and on both sides", {{"Cookie", "lang = de ;a=1;"}}, "c1:a=1:1c4:lang~4: de "},
      {"but not without it", {{"Cookie", " lang ;a=1"}}, "c1:a=1:1c4:lang-"},
      {"a value may hold =", {{"Cookie", "a=b=c"}}, "c1:a=3:b=cc4:lang!"},
      {"all of a name, in order", {{"Cookie", "a=2; lang; a=1"}}, "c1:a=1:2=1:1c4:lang-"},
      {"over several lines",
       {{"Cookie", "a=2"}, {"Cookie", "a=1; lang=x"}},
       "c1:a=1:2=1:1c4:lang=1:x"},
      {"Set-Cookie is another's", {{"Set-Cookie", "a=1"}}, "c1:a!c4:lang!"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(rules.primary_text("http", "h", "/", policy::head(row.fields)),
              "http://h/\n+" + std::string(row.added));
  }
}

TEST(KeyRules, AKeyWithFieldsHasVariants) {
  const admission::FingerprintSeed seed{admission::FingerprintSeed::Bytes{}};
  const KeyRules rules = rules_of([](SiteSettings& s) { s.key_headers = {"a"}; });
  const auto fields = policy::head({{"A", "1"}, {"Foo", "2"}});
  const CacheKey key = CacheKey::of_text(rules.primary_text("http", "h", "/", fields), seed);
  EXPECT_EQ(key.fingerprint(), seed.fingerprint_of(key.text()));
  EXPECT_EQ(key.variant({"foo"}, WallTime{}, fields, seed).text(),
            "http://h/\n+h1:a=1:1\n3:foo=1:2");
}

TEST(KeyRules, WithoutRulesTheTextIsThatOfThePrimaryKey) {
  const admission::FingerprintSeed seed{admission::FingerprintSeed::Bytes{}};
  const KeyRules none;
  EXPECT_TRUE(none.is_empty());
  EXPECT_TRUE(KeyRules(SiteSettings{}).is_empty());
  const KeyRules headers = rules_of([](SiteSettings& s) { s.key_headers = {"a"}; });
  EXPECT_FALSE(headers.is_empty());
  for (const char* target : {"/", "", "?x", "*", "/%7e/%zz?%61", "/a/../b?", "/%61?b&a&&", "/%"}) {
    const std::string text = CacheKey::primary("http", "H:80", target, seed).text();
    EXPECT_EQ(none.primary_text("http", "H:80", target, {}), text);
    EXPECT_EQ(headers.primary_text("http", "H:80", target, {}), text + "\n+h1:a!");
  }
}

TEST(KeyRules, TheOrderOfAFileMakesNoOtherKeys) {
  const KeyRules one = rules_of([](SiteSettings& s) {
    s.key_headers = {"a", "b"};
    s.key_cookies = {"c", "d"};
  });
  const KeyRules other = rules_of([](SiteSettings& s) {
    s.key_headers = {"b", "a"};
    s.key_cookies = {"d", "c"};
  });
  EXPECT_EQ(one.primary_text("http", "h", "/", {}), other.primary_text("http", "h", "/", {}));
}

// ---------------------------------------------------------------- any rules, any requests

/// What the rules keep of a request, in words that cannot run together: told more plainly than the
/// code tells it.
struct Kept {
  std::string path;
  std::vector<std::string> params;
  std::vector<std::optional<std::string>> headers;
  std::vector<std::vector<std::string>> cookies;
  auto operator<=>(const Kept&) const = default;
};

/// Decoded where that is the same, marked where it is not; whatever is broken stays.
std::string plain(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const std::string digits = text.substr(i + 1, 2);
    const bool is_whole =
        digits.size() == 2 && std::all_of(digits.begin(), digits.end(), [](char digit) {
          return std::isxdigit(static_cast<unsigned char>(digit)) != 0;
        });
    if (!is_whole) return text;
    const auto c = static_cast<char>(std::stoi(digits, nullptr, 16));
    const bool is_free = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    out += is_free ? std::string(1, c) : std::string("<") + c + ">";
    i += 2;
  }
  return out;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

bool fits(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return pattern.back() == '*' ? name.starts_with(pattern.substr(0, pattern.size() - 1))
                                 : name == pattern;
  });
}

Kept kept_of(const SiteSettings& site, const std::string& target, const HeadLines& fields) {
  Kept kept;
  const auto question = target.find('?');
  kept.path = plain(target.substr(0, question));
  if (question != std::string::npos) {
    std::vector<std::pair<std::string, std::string>> params;  // name, all of it
    for (const std::string& param : split(target.substr(question + 1), '&')) {
      const auto equals = param.find('=');
      const std::string name = plain(param.substr(0, equals));
      if (!site.keep_params.empty() && !fits(name, site.keep_params)) continue;
      if (!site.drop_params.empty() && fits(name, site.drop_params)) continue;
      params.emplace_back(name, equals == std::string::npos
                                    ? name
                                    : name + " = " + plain(param.substr(equals + 1)));
    }
    if (site.sort_query) {
      std::stable_sort(params.begin(), params.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
    }
    for (const auto& [name, param] : params) kept.params.push_back(param);
    if (site.drop_empty_query && kept.params == std::vector<std::string>{""}) kept.params.clear();
  }
  for (const std::string& name : site.key_headers) {
    std::optional<std::string> value;
    for (const auto& [field, line] : fields)
      if (field == name) value = value ? *value + ", " + std::string(line) : std::string(line);
    kept.headers.push_back(value);
  }
  for (const std::string& name : site.key_cookies) {
    std::vector<std::string> values;
    for (const auto& [field, line] : fields) {
      if (field != "cookie") continue;
      for (const std::string& pair : split(std::string(line), ';')) {
        if (pair == name) values.emplace_back("alone");
        if (pair.starts_with(name + "=")) values.push_back(pair.substr(name.size()));
      }
    }
    kept.cookies.push_back(values);
  }
  return kept;
}

class RandomRequests {
 public:
  explicit RandomRequests(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t end) { return random_() % end; }
  std::string text(std::string_view bytes, std::size_t size_max) {
    std::string made;
    for (auto size = below(size_max + 1); size > 0; --size) made += bytes[below(bytes.size())];
    return made;
  }
  SiteSettings site() {
    SiteSettings made;
    made.sort_query = below(2) == 0;
    made.drop_empty_query = below(2) == 0;
    const std::vector<std::string> names[] = {{"a"}, {"a*"}, {"b", "a6*"}, {"b*", "a"}};
    if (const auto choice = below(3); choice > 0)
      (choice == 1 ? made.keep_params : made.drop_params) = names[below(std::size(names))];
    if (below(2) == 0) made.key_headers = {"a", "b"};
    if (below(2) == 0) made.key_cookies = {"a", "b"};
    return made;
  }
  /// Bytes that mean something somewhere: "%61" is "a", "%26" is not "&".
  std::string target() { return "/" + text("ab%6&", 3) + (below(4) > 0 ? "?" + query() : ""); }
  std::string query() {
    std::string made;
    for (auto pieces = below(6); pieces > 0; --pieces) {
      constexpr const char* kPieces[] = {"a", "b", "%61", "%26", "%2B", "+", "&", "=", "%", "6"};
      made += kPieces[below(std::size(kPieces))];
    }
    return made;
  }
  const std::string& value(std::string_view bytes) { return values_.emplace_back(text(bytes, 4)); }
  /// Views that last as long as this.
  HeadLines fields() {
    HeadLines lines;
    for (auto count = below(4); count > 0; --count) {
      constexpr const char* kNames[] = {"a", "b", "cookie"};
      const char* name = kNames[below(std::size(kNames))];
      const bool is_cookie = name == std::string_view("cookie");
      lines.emplace_back(name, value(is_cookie ? "ab=;" : "ab:!=h1"));
    }
    return lines;
  }
  std::mt19937& engine() { return random_; }

 private:
  std::mt19937 random_;
  std::deque<std::string> values_;
};

TEST(KeyRules, TwoRequestsShareATextExactlyIfTheRulesKeepTheSame) {
  constexpr unsigned kRandomSeed = 20261130;
  SCOPED_TRACE(kRandomSeed);
  RandomRequests random(kRandomSeed);
  std::size_t shared = 0;
  for (int table = 0; table < 60; ++table) {
    SiteSettings site = random.site();
    // Without any rule for targets a broken escape leaves all of one alone, and the text is that of
    // CacheKey::primary, which has such a test of its own.
    const bool has_params = !site.keep_params.empty() || !site.drop_params.empty();
    site.drop_empty_query = site.drop_empty_query || (!site.sort_query && !has_params);
    const KeyRules rules(site);
    std::map<std::string, Kept> by_text;
    std::map<Kept, std::string> by_kept;
    for (int round = 0; round < 2000; ++round) {
      const std::string target = random.target();
      const HeadLines fields = random.fields();
      const std::string text = rules.primary_text("http", "h", target, policy::head(fields));
      const Kept kept = kept_of(site, target, fields);
      const auto [by_text_place, is_new_text] = by_text.try_emplace(text, kept);
      ASSERT_TRUE(by_text_place->second == kept) << "two requests, one text: " << text;
      const auto [by_kept_place, is_new_kept] = by_kept.try_emplace(kept, text);
      ASSERT_EQ(by_kept_place->second, text) << "one request, two texts";
      shared += !is_new_text;
    }
  }
  EXPECT_GT(shared, 1000U);
}

TEST(KeyRules, WhatIsNormalisedStaysAsItIs) {
  constexpr unsigned kRandomSeed = 20261201;
  SCOPED_TRACE(kRandomSeed);
  RandomRequests random(kRandomSeed);
  for (int round = 0; round < 20'000; ++round) {
    SiteSettings site = random.site();
    site.key_headers.clear();
    site.key_cookies.clear();
    site.remove_dot_segments = random.below(2) == 0;
    const KeyRules rules(site);
    const std::string target = random.target() + (random.below(3) == 0 ? "/../%2e/" : "");
    const std::string once = target_text(rules, target);
    ASSERT_EQ(target_text(rules, once), once) << target;
  }
}

TEST(KeyRules, TheOrderOfDifferentNamesDoesNotMatterOnceSorted) {
  constexpr unsigned kRandomSeed = 20261202;
  SCOPED_TRACE(kRandomSeed);
  RandomRequests random(kRandomSeed);
  const KeyRules rules = rules_of([](SiteSettings& s) { s.sort_query = true; });
  for (int round = 0; round < 500; ++round) {
    // Up to 60: more than fit into the room on the stack.
    std::vector<std::string> params;
    const std::size_t count = 1 + random.below(60);
    for (std::size_t i = 0; i < count; ++i)
      params.push_back("p" + std::to_string(i) + "." + (random.below(2) == 0 ? "=" : "") +
                       random.text("ab%6", 3));
    const auto joined = [&params] {
      std::string target = "/";
      for (const std::string& param : params) target += (target.size() == 1 ? "?" : "&") + param;
      return target;
    };
    const std::string text = target_text(rules, joined());
    std::shuffle(params.begin(), params.end(), random.engine());
    ASSERT_EQ(target_text(rules, joined()), text);
  }
}

TEST(KeyRules, WhatIsDroppedLeavesTheOrderOfTheRest) {
  constexpr unsigned kRandomSeed = 20261203;
  SCOPED_TRACE(kRandomSeed);
  RandomRequests random(kRandomSeed);
  const KeyRules rules = rules_of([](SiteSettings& s) { s.drop_params = {"x*"}; });
  for (int round = 0; round < 2000; ++round) {
    std::string target = "/";
    std::string expected = "/";
    for (auto count = random.below(8); count > 0; --count) {
      const bool goes = random.below(2) == 0;
      const std::string param = (goes ? "x" : "y") + random.text("xyz=1", 4);
      target += (target.size() == 1 ? "?" : "&") + param;
      if (!goes) expected += (expected.size() == 1 ? "?" : "&") + param;
    }
    ASSERT_EQ(target_text(rules, target), expected) << target;
  }
}

}  // namespace
}  // namespace secondsight::cache
