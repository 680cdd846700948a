#include "loadtest/cache_status.h"

#include <gtest/gtest.h>

namespace secondsight::loadtest {
namespace {

struct Case {
  const char* field;
  bool found, hit, stored, collapsed;
  const char* forward;
  const char* detail;
};

TEST(CacheStatus, Table) {
  const Case cases[] = {
      {"", false, false, false, false, "", ""},
      {"secondsight", true, false, false, false, "", ""},
      {"secondsight; hit", true, true, false, false, "", ""},
      {"secondsight;hit;ttl=30;detail=memory", true, true, false, false, "", "memory"},
      {"secondsight; hit=?1", true, true, false, false, "", ""},
      {"secondsight; hit=?0", true, false, false, false, "", ""},
      {"secondsight; fwd=uri-miss; stored; detail=first-sighting", true, false, true, false,
       "uri-miss", "first-sighting"},
      {"secondsight; fwd=uri-miss; fwd-status=200; stored; collapsed; detail=\"repeat\"", true,
       false, true, true, "uri-miss", "repeat"},
      {"\"secondsight\"; hit", true, true, false, false, "", ""},
      {"other; hit", false, false, false, false, "", ""},
      {"other; hit, secondsight; fwd=stale", true, false, false, false, "stale", ""},
      {"other; detail=\"a, secondsight; hit\"", false, false, false, false, "", ""},
      {"other; detail=\"quote \\\" , secondsight; hit\"", false, false, false, false, "", ""},
      {"secondsight; fwd=uri-miss, secondsight; hit", true, true, false, false, "", ""},
      {"secondsight; unknown=4; hits; stored-not", true, false, false, false, "", ""},
      {" \t secondsight \t;\t hit \t", true, true, false, false, "", ""},
      {";;;,,;hit", false, false, false, false, "", ""},
      {"\"unterminated", false, false, false, false, "", ""},
  };
  for (const Case& c : cases) {
    const CacheStatus status = read_cache_status(c.field, "secondsight");
    EXPECT_EQ(status.found, c.found) << c.field;
    EXPECT_EQ(status.hit, c.hit) << c.field;
    EXPECT_EQ(status.stored, c.stored) << c.field;
    EXPECT_EQ(status.collapsed, c.collapsed) << c.field;
    EXPECT_EQ(status.forward, c.forward) << c.field;
    EXPECT_EQ(status.detail, c.detail) << c.field;
  }
}

}  // namespace
}  // namespace secondsight::loadtest
