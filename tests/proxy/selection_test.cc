#include "proxy/selection.h"

#include <gtest/gtest.h>

namespace secondsight::proxy {
namespace {

cache::policy::FieldBlock request_of(std::string_view range) {
  cache::policy::FieldBlock fields;
  fields.add("Range", range);
  return fields;
}

cache::ObjectHead stored_head() {
  cache::ObjectHead head;
  head.status = 200;
  head.reason = "OK";
  head.fields.add("Content-Type", "text/plain");
  head.fields.add("ETag", "\"a\"");
  head.fields.add("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
  return head;
}

TEST(Selection, TheHeadFitsWhatIsSent) {
  struct Row {
    const char* range;
    int status;
    const char* fields;  // the beginning
    std::size_t ranges;
    bool keeps_head;
  };
  const auto head = stored_head();
  for (const Row& row : {
           Row{"bytes=0-9", 206, "Content-Range: bytes 0-9/1000\r\n", 1, true},
           Row{"bytes=-1", 206, "Content-Range: bytes 999-999/1000\r\n", 1, true},
           Row{"bytes=0-9,500-509", 206, "Content-Type: multipart/byteranges; boundary=", 2, false},
           Row{"bytes=1000-", 416, "Cache-Control: no-store\r\nContent-Range: bytes */1000\r\n", 0,
               false},
           Row{"lines=1-2", 200, "", 1, true},
       }) {
    SCOPED_TRACE(row.range);
    const Selection selection = select_parts(request_of(row.range), head, 1000);
    EXPECT_EQ(selection.status, row.status);
    EXPECT_EQ(selection.status_line.substr(0, 12), "HTTP/1.1 " + std::to_string(row.status));
    EXPECT_EQ(selection.fields.substr(0, std::string(row.fields).size()), row.fields);
    EXPECT_EQ(selection.ranges.size(), row.ranges);
    EXPECT_EQ(selection.ready(head) == head.fields.text(), row.keeps_head);
    std::uint64_t bytes = selection.closing.size();
    for (std::size_t i = 0; i < selection.ranges.size(); ++i)
      bytes += selection.preface(i).size() + selection.ranges[i].size;
    EXPECT_EQ(selection.content_length, bytes) << "what is promised is what is sent";
  }
}

TEST(Selection, NoTwoResponsesShareABoundary) {
  const auto head = stored_head();
  const auto fields = request_of("bytes=0-9,500-509");
  EXPECT_NE(select_parts(fields, head, 1000).fields, select_parts(fields, head, 1000).fields);
}

TEST(Selection, AWholeMayHaveNoEndYet) {
  const auto head = stored_head();
  EXPECT_EQ(select_whole(head, std::nullopt).content_length, std::nullopt);
  EXPECT_EQ(select_whole(head, std::nullopt).ranges.size(), 1U);
  EXPECT_EQ(select_whole(head, 0).content_length, 0U);
  EXPECT_TRUE(select_whole(head, 0).ranges.empty());
}

}  // namespace
}  // namespace secondsight::proxy
