#include "cache/policy/list.h"

#include <gmock/gmock.h>

#include <gtest/gtest.h>

namespace secondsight::cache::policy {
namespace {

using testing::ElementsAreArray;

TEST(List, SplitsAtCommasOutsideQuotes) {
  struct Row {
    const char* clause;
    const char* value;
    Quotes quotes;
    std::vector<std::string> members;
    bool unterminated = false;
  };
  const Row rows[] = {
      {"RFC 9110 5.6.1: plain", "a, b ,c", Quotes::None, {"a", "b", "c"}},
      {"RFC 9110 5.6.1.2: empty members are skipped", ", ,\ta,,", Quotes::None, {"a"}},
      {"RFC 9110 5.6.1: nothing", "", Quotes::None, {}},
      {"RFC 9110 5.6.4: a quoted comma", "a=\"x,y\", b", Quotes::String, {"a=\"x,y\"", "b"}},
      {"RFC 9110 5.6.4: an escaped quote",
       R"(a="x\",y", b)",
       Quotes::String,
       {R"(a="x\",y")", "b"}},
      {"RFC 9110 8.8.3: no escapes in entity tags",
       R"("x\", "y")",
       Quotes::EntityTag,
       {R"("x\")", R"("y")"}},
      {"quotes mean nothing here", "\"a,b", Quotes::None, {"\"a", "b"}},
      {"never closed", "a, \"b, c", Quotes::String, {"a", "\"b, c"}, true},
      {"ends in an escape", R"("b\)", Quotes::String, {R"("b\)"}, true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    ListMembers list(row.value, row.quotes);
    std::vector<std::string> members;
    while (const auto member = list.next()) members.emplace_back(*member);
    EXPECT_THAT(members, ElementsAreArray(row.members));
    EXPECT_EQ(list.unterminated(), row.unterminated);
  }
}

TEST(List, Tokens) {
  for (const char* text : {"a", "Max-Age", "!#$%&'*+-.^_`|~09"})
    EXPECT_TRUE(is_token(text)) << text;
  for (const char* text : {"", "a b", "a=b", "\"a\"", "a,", "\xC3\xBC", "a\x7f"})
    EXPECT_FALSE(is_token(text)) << text;
  EXPECT_FALSE(is_token(std::string_view("a\0", 2)));
}

}  // namespace
}  // namespace secondsight::cache::policy
