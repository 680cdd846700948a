#include "loadtest/object_url.h"

#include <string>

#include <gtest/gtest.h>

namespace secondsight::loadtest {
namespace {

TEST(ObjectUrl, KeepsUnreservedAndEncodesTheRest) {
  EXPECT_EQ(object_target("aZ09-._~", 7), "/o/aZ09-._~/7");
  EXPECT_EQ(object_target("/a b?%\xff", 0), "/o/%2Fa%20b%3F%25%FF/0");
}

TEST(ObjectUrl, ReadsBackWhatItWrote) {
  for (const char* const key : {"a", "/x/y?z", "%", "\x01"}) {
    const std::string target = object_target(key, 123);
    const auto object = parse_object_target(target);
    ASSERT_TRUE(object) << target;
    EXPECT_EQ(object->size_bytes, 123u);
    EXPECT_EQ("/o/" + std::string(object->name) + "/123", target);
  }
}

TEST(ObjectUrl, RefusesEverythingElse) {
  for (const char* const target : {"", "/", "/o/", "/o//1", "/o/a", "/o/a/", "/o/a/x", "/o/a/-1",
                                   "/o/a/1/", "/o/a/1?q", "/o/a/99999999999999999999", "/p/a/1"}) {
    EXPECT_FALSE(parse_object_target(target)) << target;
  }
}

}  // namespace
}  // namespace secondsight::loadtest
