#include "proxy/origin_head_reader.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace secondsight::proxy {
namespace {

using Http2 = OriginHeadReader::Http2;

constexpr std::size_t kLimit = 4096;

std::string text_of(const OriginHead& head) {
  std::string out = std::to_string(head.version) + ' ' + std::to_string(head.status) + ' ' +
                    head.reason + " [" + std::string(head.fields.text()) + ']';
  if (head.content_length) out += ' ' + std::to_string(*head.content_length);
  return out;
}

// "malformed", "more", or the head in one line; interim heads before it, each with a " > ".
std::string read(std::string_view text, std::size_t limit = kLimit, Http2 http2 = Http2::Refused) {
  OriginHeadReader reader;
  reader.reset(limit, http2);
  std::string interim;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = end == std::string_view::npos ? text : text.substr(0, end + 1);
    text.remove_prefix(line.size());
    switch (reader.take(line)) {
      case OriginHeadReader::Step::More:
        continue;
      case OriginHeadReader::Step::Trailer:
      case OriginHeadReader::Step::Malformed:
        return "malformed";
      case OriginHeadReader::Step::Interim:
        interim += text_of(reader.release()) + " > ";
        continue;
      case OriginHeadReader::Step::Complete:
        break;
    }
    return interim + text_of(reader.release());
  }
  return "more";
}

std::string ok(std::string_view fields) {
  return "HTTP/1.1 200 OK\r\n" + std::string(fields) + "\r\n";
}

TEST(OriginHeadReader, AcceptsWhatHasOneMeaning) {
  using namespace std::string_literals;
  const std::vector<std::pair<std::string, std::string>> cases{
      {ok(""), "11 200 OK []"},
      {"HTTP/1.0 404 Not Found\r\n\r\n", "10 404 Not Found []"},
      {"HTTP/1.1 200\r\n\r\n", "11 200  []"},
      {"HTTP/1.1 200 \r\n\r\n", "11 200  []"},
      {"HTTP/1.1 999 \xe9t\xe9\r\n\r\n", "11 999 \xe9t\xe9 []"},
      {ok("a:b\r\n"), "11 200 OK [a: b\r\n]"},
      {ok("A: \t b c \t\r\n"), "11 200 OK [A: b c\r\n]"},
      {ok("Empty:\r\n"), "11 200 OK [Empty: \r\n]"},
      {ok("X: \xff\x80:;\"\r\n"), "11 200 OK [X: \xff\x80:;\"\r\n]"},
      {ok("Content-Length: 0\r\n"), "11 200 OK [Content-Length: 0\r\n] 0"},
      {ok("content-length: 9223372036854775807\r\n"),
       "11 200 OK [content-length: 9223372036854775807\r\n] 9223372036854775807"},
      {ok("Content-Length: 5\r\nContent-Length: 5\r\n"),
       "11 200 OK [Content-Length: 5\r\nContent-Length: 5\r\n] 5"},
      {ok("Transfer-Encoding: Chunked\r\n"), "11 200 OK [Transfer-Encoding: Chunked\r\n]"},
      {ok("Transfer-Encoding: odd\r\n"), "11 200 OK [Transfer-Encoding: odd\r\n]"},
      {ok("Transfer-Encoding: xchunked\r\n"), "11 200 OK [Transfer-Encoding: xchunked\r\n]"},
      {"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + ok("B: c\r\n"),
       "11 103 Early Hints [Link: a\r\n] > 11 100 Continue [] > 11 200 OK [B: c\r\n]"},
      {"HTTP/1.1 103 Early Hints\r\nContent-Length: 7\r\n\r\n" + ok(""),
       "11 103 Early Hints [Content-Length: 7\r\n] 7 > 11 200 OK []"},
      {"HTTP/1.1 199 Odd\r\nTransfer-Encoding: chunked\r\n\r\n" + ok("Content-Length: 5\r\n"),
       "11 199 Odd [Transfer-Encoding: chunked\r\n] > 11 200 OK [Content-Length: 5\r\n] 5"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(read(text), expected) << text;
}

TEST(OriginHeadReader, RefusesWhatHasSeveral) {
  using namespace std::string_literals;
  const std::vector<std::string> cases{
      "HTTP/1.1 20 OK\r\n\r\n",
      "HTTP/1.1 2000 OK\r\n\r\n",
      "HTTP/1.1 099 OK\r\n\r\n",
      "HTTP/1.1 -20 OK\r\n\r\n",
      "HTTP/1.1 2x0 OK\r\n\r\n",
      "HTTP/1.1  200 OK\r\n\r\n",
      "HTTP/1.1\t200 OK\r\n\r\n",
      "HTTP/1.1 200OK\r\n\r\n",
      "HTTP/1.1 200 O\rK\r\n\r\n",
      "HTTP/1.1 200 O\x01K\r\n\r\n",
      "HTTP/1.2 200 OK\r\n\r\n",
      "HTTP/2 200 \r\n\r\n",
      "http/1.1 200 OK\r\n\r\n",
      " HTTP/1.1 200 OK\r\n\r\n",
      "ICY 200 OK\r\n\r\n",
      "\r\n",
      "HTTP/1.1 101 Switching Protocols\r\n\r\n",
      "HTTP/1.1 200 OK\n\n",
      "HTTP/1.1 200 OK\r\nA: b\n\r\n",
      "HTTP/1.1 200 OK\r\n\n",
      ok("NoColon\r\n"),
      ok(": v\r\n"),
      ok("A : b\r\n"),
      ok(" A: b\r\n"),
      ok("A: b\r\n c\r\n"),
      ok("A: b\r\n\tc: d\r\n"),
      ok("A\"B: c\r\n"),
      ok("\xc3\xa4: c\r\n"),
      ok("A: b\rc\r\n"),
      ok("A: b\0c\r\n"s),
      ok("A\0: c\r\n"s),
      ok("A: \x7f\r\n"),
      ok("Content-Length: 5\r\nContent-Length: 6\r\n"),
      ok("Content-Length: 5, 5\r\n"),
      ok("Content-Length: +5\r\n"),
      ok("Content-Length: -5\r\n"),
      ok("Content-Length: 0x5\r\n"),
      ok("Content-Length: 5 5\r\n"),
      ok("Content-Length:\r\n"),
      ok("Content-Length: 9223372036854775808\r\n"),
      ok("Content-Length: 18446744073709551621\r\n"),
      ok("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
      ok("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
      ok("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
      ok("Transfer-Encoding: gzip, chunked\r\n"),
      ok("Transfer-Encoding: identity\r\n"),
      ok("Transfer-Encoding: GZIP\r\n"),
      ok("Transfer-Encoding: x-gzip\r\n"),
      ok("Transfer-Encoding: deflate\r\n"),
      ok("Transfer-Encoding: compress\r\n"),
      ok("Transfer-Encoding: x-compress\r\n"),
      ok("Transfer-Encoding: chunked, odd\r\n"),
      ok("Transfer-Encoding: odd, chunked\r\n"),
      ok("Transfer-Encoding: chunked;q=1\r\n"),
      ok("Transfer-Encoding: odd odd\r\n"),
      ok("Transfer-Encoding: \"odd\"\r\n"),
      ok("Transfer-Encoding: odd\r\nTransfer-Encoding: chunked\r\n"),
      ok("Transfer-Encoding: odd\r\nContent-Length: 5\r\n"),
      ok("Content-Length: 5\r\nTransfer-Encoding: odd\r\n"),
      "HTTP/1.0 200 OK\r\nTransfer-Encoding: odd\r\n\r\n",
      ok("Transfer-Encoding:\r\n"),
      "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
  };
  for (const auto& text : cases) EXPECT_EQ(read(text), "malformed") << testing::PrintToString(text);
}

TEST(OriginHeadReader, TakesHttp2OnlyWhereItCanBeSpoken) {
  const std::string head = "HTTP/2 200 \r\nage: 1\r\n\r\n";
  EXPECT_EQ(read(head, kLimit, Http2::Accepted), "20 200  [age: 1\r\n]");
  EXPECT_EQ(read("HTTP/2 200 \r\ntransfer-encoding: chunked\r\n\r\n", kLimit, Http2::Accepted),
            "malformed");
}

TEST(OriginHeadReader, BoundsAllHeadsTogether) {
  const std::string interim = "HTTP/1.1 103 Early Hints\r\n\r\n";
  const std::string head = interim + ok("A: b\r\n");
  EXPECT_EQ(read(head, head.size()), "11 103 Early Hints [] > 11 200 OK [A: b\r\n]");
  for (std::size_t limit = 0; limit < head.size(); ++limit)
    EXPECT_EQ(read(head, limit), "malformed") << limit;
}

TEST(OriginHeadReader, ReadsTrailersAndCountsThem) {
  OriginHeadReader reader;
  reader.reset(40, Http2::Refused);
  EXPECT_EQ(reader.take("HTTP/1.1 200 OK\r\n"), OriginHeadReader::Step::More);
  EXPECT_EQ(reader.take("\r\n"), OriginHeadReader::Step::Complete);
  EXPECT_TRUE(reader.complete());
  EXPECT_EQ(reader.take("Sum:  1 \r\n"), OriginHeadReader::Step::Trailer);
  EXPECT_EQ(reader.trailer().name, "Sum");
  EXPECT_EQ(reader.trailer().value, "1");
  EXPECT_EQ(reader.take("\r\n"), OriginHeadReader::Step::More);
  EXPECT_EQ(reader.take("Trailer: 2\r\n"), OriginHeadReader::Step::Malformed) << "over the limit";
}

TEST(OriginHeadReader, RefusesTrailersThatAreNoFields) {
  for (const char* line : {"x\r\n", ": x\r\n", "A : x\r\n", " A: x\r\n", "A: x\n", "A: \x01\r\n"}) {
    OriginHeadReader reader;
    reader.reset(kLimit, Http2::Refused);
    (void)reader.take("HTTP/1.1 200 OK\r\n");
    (void)reader.take("\r\n");
    EXPECT_EQ(reader.take(line), OriginHeadReader::Step::Malformed) << line;
  }
}

TEST(OriginHeadReader, ForgetsTheResponseBefore) {
  OriginHeadReader reader;
  reader.reset(kLimit, Http2::Refused);
  for (const char* line : {"HTTP/1.1 200 OK\r\n", "Transfer-Encoding: chunked\r\n", "\r\n"})
    ASSERT_NE(reader.take(line), OriginHeadReader::Step::Malformed);
  reader.reset(kLimit, Http2::Refused);
  EXPECT_FALSE(reader.complete());
  for (const char* line : {"HTTP/1.1 200 OK\r\n", "Content-Length: 5\r\n", "\r\n"})
    ASSERT_NE(reader.take(line), OriginHeadReader::Step::Malformed);
  EXPECT_EQ(reader.release().content_length, 5U);
}

}  // namespace
}  // namespace secondsight::proxy
