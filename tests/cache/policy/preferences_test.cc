#include "cache/policy/preferences.h"

#include <gtest/gtest.h>

#include "tests/cache/policy/heads.h"

namespace secondsight::cache::policy {
namespace {

TEST(Preferences, Weights) {
  struct Row {
    const char* clause;
    const char* value;
    std::optional<std::vector<Preference>> codings;
  };
  const Row rows[] = {
      {"RFC 9110 12.4.2: none is 1", "a", {{{"a", 1000}}}},
      {"RFC 9110 12.4.2: 1", "a;q=1", {{{"a", 1000}}}},
      {"RFC 9110 12.4.2: 1.000", "a;q=1.000", {{{"a", 1000}}}},
      {"RFC 9110 12.4.2: 0.001", "a;q=0.001", {{{"a", 1}}}},
      {"RFC 9110 12.4.2: 0.1", "a;q=0.1", {{{"a", 100}}}},
      {"RFC 9110 12.4.2: a point and nothing", "a;q=0.", {{{"a", 0}}}},
      {"RFC 9110 12.4.2: blanks around the semicolon", "a\t; q=0.5", {{{"a", 500}}}},
      {"RFC 9110 12.4.2: in any case", "a;Q=0.5", {{{"a", 500}}}},
      {"RFC 9110 12.4.2: by falling weight, then by name",
       "d;q=0, c;q=0.9, b, a",
       {{{"a", 1000}, {"b", 1000}, {"c", 900}, {"d", 0}}}},
      {"RFC 9110 5.6.1: empty members are skipped", ",a,,", {{{"a", 1000}}}},
      {"RFC 9110 5.6.1: none", "", std::vector<Preference>{}},
      {"RFC 9110 12.4.2: above 1", "a;q=1.001", std::nullopt},
      {"RFC 9110 12.4.2: four decimals", "a;q=0.1234", std::nullopt},
      {"RFC 9110 12.4.2: no leading zero", "a;q=.5", std::nullopt},
      {"RFC 9110 12.4.2: two digits", "a;q=01", std::nullopt},
      {"RFC 9110 12.4.2: negative", "a;q=-1", std::nullopt},
      {"RFC 9110 12.4.2: no number", "a;q=x", std::nullopt},
      {"RFC 9110 12.4.2: no digits behind the point", "a;q=0.x", std::nullopt},
      {"RFC 9110 12.4.2: empty", "a;q=", std::nullopt},
      {"RFC 9110 12.4.2: blank around =", "a;q =1", std::nullopt},
      {"RFC 9110 12.4.2: twice", "a;q=1;q=1", std::nullopt},
      {"RFC 9110 12.4.2: another parameter", "a;p=1", std::nullopt},
      {"RFC 9110 12.4.2: nothing behind the semicolon", "a;", std::nullopt},
      {"RFC 9110 5.6.2: no name", ";q=1", std::nullopt},
      {"RFC 9110 5.6.2: two words", "a b", std::nullopt},
      {"RFC 9110 12.5.3: two weights for one name", "a, A;q=0.9", std::nullopt},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(
        read_preferences(head({{"accept-encoding", row.value}}), PreferenceField::AcceptEncoding),
        row.codings);
  }
  EXPECT_EQ(read_preferences(head({{"Accept", "a"}}), PreferenceField::AcceptEncoding),
            std::nullopt);
}

TEST(Preferences, PreferredLanguage) {
  struct Row {
    const char* clause;
    HeadLines request;
    std::optional<std::string> language;
  };
  const Row rows[] = {
      {"RFC 9110 12.5.4: one", {{"Accept-Language", "DE-ch"}}, "de-ch"},
      {"RFC 9110 12.5.4: the highest weight", {{"Accept-Language", "fr;q=0.5, de;q=1.0"}}, "de"},
      {"RFC 9110 12.5.4: below 1", {{"Accept-Language", "fr;q=0.5, de;q=0.501"}}, "de"},
      {"RFC 9110 12.5.4: on another line",
       {{"Accept-Language", "fr;q=0.9"}, {"accept-language", "en"}},
       "en"},
      {"RFC 9110 12.5.4: two first", {{"Accept-Language", "en, de"}}, std::nullopt},
      {"RFC 9110 12.5.4: the same twice", {{"Accept-Language", "en, EN"}}, "en"},
      {"RFC 9110 12.5.4: any", {{"Accept-Language", "*, de;q=0.5"}}, std::nullopt},
      {"RFC 9110 12.5.4: any as the second", {{"Accept-Language", "de, *;q=0.5"}}, "de"},
      {"RFC 9110 12.5.4: any shares the first place", {{"Accept-Language", "de, *"}}, std::nullopt},
      {"RFC 9110 12.5.4: only a refusal", {{"Accept-Language", "de;q=0"}}, std::nullopt},
      {"RFC 9110 12.4.2: unreadable", {{"Accept-Language", "de, fr;q=x"}}, std::nullopt},
      {"RFC 4647 2.1: digits behind the first subtag", {{"Accept-Language", "es-419"}}, "es-419"},
      {"RFC 4647 2.1: digits in the first", {{"Accept-Language", "e5"}}, std::nullopt},
      {"RFC 4647 2.1: an underscore", {{"Accept-Language", "en_US"}}, std::nullopt},
      {"RFC 4647 2.1: nine letters", {{"Accept-Language", "abcdefghi"}}, std::nullopt},
      {"RFC 4647 2.1: an empty subtag", {{"Accept-Language", "de--ch"}}, std::nullopt},
      {"RFC 4647 2.1: ends in a dash", {{"Accept-Language", "de-"}}, std::nullopt},
      {"RFC 9110 12.5.4: empty", {{"Accept-Language", ""}}, std::nullopt},
      {"RFC 9110 12.5.4: absent", {}, std::nullopt},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(preferred_language(head(row.request)), row.language);
  }
}

}  // namespace
}  // namespace secondsight::cache::policy
