#include "tests/tidy_test/text_rules.h"

#include <gmock/gmock.h>

#include <gtest/gtest.h>

namespace secondsight::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(GuardRule, WantsPragmaOnceInHeaders) {
  EXPECT_THAT(
      headers_without_guard(
          {{"a.h", "#pragma once\n"}, {"b.h", "// #pragma once is missing\n"}, {"c.cc", ""}}),
      ElementsAre("b.h: has no #pragma once"));
}

TEST(LengthRule, CountsLines) {
  EXPECT_THAT(files_too_long({{"a.cc", std::string(700, '\n')},
                              {"b.cc", std::string(701, '\n')},
                              {"c.md", std::string(5'000, '\n')}}),
              ElementsAre("b.cc: has 701 lines; split it"));
}

TEST(BlankRule, FindsTabsTrailingBlanksAndLineEnds) {
  EXPECT_THAT(untidy_blanks({{"a.cc", "int a;\n\n  int b;\n"},
                             {"Makefile", "test:\n\tctest\n"},
                             {"tests/fuzz/corpus/x.txt", "a \r\n\t"}}),
              IsEmpty());
  EXPECT_THAT(untidy_blanks({{"a.cc", "\tint a;\nint b; \n"}, {"b.md", "a\r\nb"}}),
              ElementsAre("a.cc:1: tab", "a.cc:2: blank at the end",
                          "b.md: has no newline at its end", "b.md:1: carriage return"));
}

TEST(NoteRule, FindsWholeWordsOnly) {
  const std::string note = std::string{"TO"} + "DO";
  EXPECT_THAT(notes_to_oneself({{"a.cc", "// " + note + "S and mkstemp(\"/tmp/XXXXXX\")\n"}}),
              IsEmpty());
  EXPECT_THAT(notes_to_oneself({{"a.cc", "\n// " + note + ": later\n"}}),
              ElementsAre("a.cc:2: " + note));
}

TEST(LinkRule, FollowsRelativeLinks) {
  const Repository good{{"README.md",
                         "[a](docs/a.md) [b](docs) [c](docs/#x) [d](https://example.com/x)\n"
                         "[e](#here) ![f](docs/f.txt \"title\")\n```\n[g](nowhere.md)\n```\n"},
                        {"docs/a.md", "[up](../README.md#top) [same](f.txt)\n"},
                        {"docs/f.txt", ""}};
  EXPECT_THAT(broken_links(good), IsEmpty());
  EXPECT_THAT(
      broken_links({{"docs/a.md", "[up](README.md)\n\n[x](../gone.md#y), [z](b/)\n"}}),
      ElementsAre("docs/a.md:1: no README.md to link to", "docs/a.md:3: no ../gone.md to link to",
                  "docs/a.md:3: no b/ to link to"));
}

TEST(NameRule, WantsSnakeCase) {
  EXPECT_THAT(odd_file_names({{"proxy/disk_pool2.cc", ""}, {"docs/README.md", ""}}), IsEmpty());
  EXPECT_THAT(odd_file_names({{"proxy/DiskPool.cc", ""}, {"proxy/disk-pool.h", ""}}),
              ElementsAre("proxy/DiskPool.cc: is not in snake_case",
                          "proxy/disk-pool.h: is not in snake_case"));
}

}  // namespace
}  // namespace secondsight::test
