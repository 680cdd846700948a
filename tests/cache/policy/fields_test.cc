#include "cache/policy/fields.h"

#include <gtest/gtest.h>

#include "tests/cache/policy/heads.h"

namespace secondsight::cache::policy {
namespace {

TEST(Fields, FindsTheFirstOfANameInAnyCase) {
  const FieldBlock fields = head({{"Foo", "1"}, {"fOO", "2"}, {"Bar", ""}});
  EXPECT_EQ(fields.count(), 3u);
  EXPECT_EQ(fields.find("foo"), "1");
  EXPECT_EQ(fields.find("BAR"), "");
  EXPECT_FALSE(fields.contains("Fo"));
  EXPECT_FALSE(fields.contains("Fooo"));
}

TEST(Fields, JoinsLinesOfOneName) {
  const FieldBlock fields = head({{"a", "1"}, {"b", "x"}, {"A", ""}, {"a", "2"}});
  EXPECT_EQ(fields.joined("a"), "1, , 2");
  EXPECT_EQ(fields.joined("b"), "x");
  EXPECT_EQ(fields.joined("c"), std::nullopt);
}

TEST(Fields, TextIsReadyToSendAndReadsBack) {
  const FieldBlock fields = head({{"A", "1: 2"}, {"b", ""}, {"C", "x\xC3\xBC"}});
  EXPECT_EQ(fields.text(), "A: 1: 2\r\nb: \r\nC: x\xC3\xBC\r\n");
  const auto back = FieldBlock::from_text(fields.text());
  ASSERT_TRUE(back);
  EXPECT_EQ(back->text(), fields.text());
  EXPECT_EQ(back->find("A"), "1: 2");
  EXPECT_GE(back->memory_bytes(), back->text().size());
}

TEST(Fields, DamagedTextIsRefused) {
  for (const char* text : {"A: 1", "A\r\n", ": 1\r\n", "A:1\r\n", "\r\n", "A: 1\r\nB\r\n"})
    EXPECT_FALSE(FieldBlock::from_text(text)) << text;
  ASSERT_TRUE(FieldBlock::from_text(""));
  EXPECT_EQ(FieldBlock::from_text("")->count(), 0u);
}

}  // namespace
}  // namespace secondsight::cache::policy
