#include "loadtest/origin_response.h"

#include <gmock/gmock.h>
#include <string>

#include <gtest/gtest.h>

namespace secondsight::loadtest {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

constexpr WallTime kNow{std::chrono::milliseconds(784'111'777'000)};

OriginResponse respond(OriginRequestHead request) {
  return answer(request, seconds(60), kNow);
}
OriginRequestHead get(std::string_view target) {
  OriginRequestHead head;
  head.method = "GET";
  head.target = target;
  return head;
}

std::string tag_of(const OriginResponse& response) {
  const auto at = response.head.find("ETag: ") + 6;
  return response.head.substr(at, response.head.find("\r\n", at) - at);
}

TEST(OriginResponse, GetHasTheFieldsACacheNeeds) {
  const OriginResponse response = respond(get("/o/key/1000"));
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.head, testing::StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(response.head, HasSubstr("\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
  EXPECT_THAT(response.head, HasSubstr("\r\nCache-Control: max-age=60\r\n"));
  EXPECT_THAT(response.head, HasSubstr("\r\nLast-Modified: "));
  EXPECT_THAT(response.head, HasSubstr("\r\nContent-Length: 1000\r\n"));
  EXPECT_THAT(response.head, testing::EndsWith("\r\n\r\n"));
  EXPECT_EQ(response.first, 0u);
  EXPECT_EQ(response.end, 1'000u);
  EXPECT_EQ(tag_of(response), tag_of(respond(get("/o/key/1000"))));
  EXPECT_NE(tag_of(response), tag_of(respond(get("/o/key/1001"))));
}

TEST(OriginResponse, HeadIsGetWithoutItsBody) {
  OriginRequestHead request = get("/o/key/1000");
  const std::string head = respond(request).head;
  request.method = "HEAD";
  const OriginResponse response = respond(request);
  EXPECT_EQ(response.head, head);
  EXPECT_EQ(response.end, 0u);
}

TEST(OriginResponse, IfNoneMatch) {
  const std::string tag = tag_of(respond(get("/o/key/10")));
  for (const std::string& field :
       {tag, "W/" + tag, std::string("*"), "\"x\", " + tag, tag + ", \"x\""}) {
    OriginRequestHead request = get("/o/key/10");
    request.if_none_match = field;
    const OriginResponse response = respond(request);
    EXPECT_EQ(response.status, 304) << field;
    EXPECT_EQ(response.end, 0u);
    EXPECT_THAT(response.head, Not(HasSubstr("Content-Length")));
    EXPECT_THAT(response.head, HasSubstr("ETag: " + tag));
  }
  OriginRequestHead request = get("/o/key/10");
  request.if_none_match = "\"other\"";
  EXPECT_EQ(respond(request).status, 200);
}

TEST(OriginResponse, RangeTable) {
  struct Case {
    const char* field;
    ByteRange::Kind kind;
    std::uint64_t first, end;
  };
  using enum ByteRange::Kind;
  for (const Case& c :
       {Case{"bytes=0-0", Satisfiable, 0, 1}, Case{"bytes=2-5", Satisfiable, 2, 6},
        Case{"bytes=7-", Satisfiable, 7, 10}, Case{"bytes=-3", Satisfiable, 7, 10},
        Case{"bytes=-30", Satisfiable, 0, 10}, Case{"bytes=5-99", Satisfiable, 5, 10},
        Case{"bytes=10-", Unsatisfiable, 0, 0}, Case{"bytes=-0", Unsatisfiable, 0, 0},
        Case{"bytes=5-2", Ignored, 0, 0}, Case{"bytes=0-1,3-4", Ignored, 0, 0},
        Case{"bytes=a-", Ignored, 0, 0}, Case{"bytes=-", Ignored, 0, 0},
        Case{"items=0-1", Ignored, 0, 0}, Case{"", Ignored, 0, 0},
        Case{"bytes=0-18446744073709551615", Satisfiable, 0, 10}}) {
    const ByteRange range = read_range(c.field, 10);
    EXPECT_EQ(range.kind, c.kind) << c.field;
    if (c.kind != Satisfiable) continue;
    EXPECT_EQ(range.first, c.first) << c.field;
    EXPECT_EQ(range.end, c.end) << c.field;
  }
}

TEST(OriginResponse, RangesInAnswers) {
  OriginRequestHead request = get("/o/key/10");
  request.range = "bytes=2-5";
  const OriginResponse part = respond(request);
  EXPECT_EQ(part.status, 206);
  EXPECT_THAT(part.head, HasSubstr("Content-Range: bytes 2-5/10\r\n"));
  EXPECT_THAT(part.head, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_EQ(part.first, 2u);
  EXPECT_EQ(part.end, 6u);

  request.range = "bytes=10-";
  const OriginResponse none = respond(request);
  EXPECT_EQ(none.status, 416);
  EXPECT_THAT(none.head, HasSubstr("Content-Range: bytes */10\r\n"));
  EXPECT_EQ(none.end, 0u);

  request.range = "bytes=2-5";
  request.if_range = "\"other\"";
  EXPECT_EQ(respond(request).status, 200);
  const std::string tag = tag_of(respond(get("/o/key/10")));
  request.if_range = tag;
  EXPECT_EQ(respond(request).status, 206);
}

TEST(OriginResponse, RefusesWhatItDoesNotServe) {
  EXPECT_EQ(respond(get("/")).status, 404);
  EXPECT_EQ(respond(get("/o/key/ten")).status, 404);
  OriginRequestHead request = get("/o/key/10");
  request.method = "POST";
  EXPECT_EQ(respond(request).status, 405);
  EXPECT_EQ(respond(request).end, 0u);
  request = get("/o/key/10");
  request.keep_alive = false;
  EXPECT_THAT(respond(request).head, HasSubstr("Connection: close\r\n"));
}

}  // namespace
}  // namespace secondsight::loadtest
