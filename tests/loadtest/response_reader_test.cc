#include "loadtest/response_reader.h"

#include <string>

#include <gtest/gtest.h>

namespace secondsight::loadtest {
namespace {

std::string bytes_of(const Body& body) {
  std::string text;
  while (text.size() < body.size_bytes()) {
    for (const std::byte b : body.run_at(text.size())) text += static_cast<char>(b);
  }
  return text;
}

const Body kBody("key", 40);

std::string response(const std::string& body, const std::string& fields = "") {
  return "HTTP/1.1 200 OK\r\n" + fields + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

/// Feeds as a socket would: what was not used comes again with what follows.
void feed_in_two(ResponseReader& reader, const std::string& text, std::size_t split) {
  std::size_t used = reader.feed(text.data(), split);
  if (!reader.done() && !reader.failed())
    used += reader.feed(text.data() + used, text.size() - used);
}

TEST(ResponseReader, TakesAResponseSplitAnywhere) {
  const std::string text = response(bytes_of(kBody), "cache-status: secondsight; hit\r\n");
  for (std::size_t split = 1; split < text.size(); ++split) {
    ResponseReader reader(kBody);
    feed_in_two(reader, text, split);
    EXPECT_TRUE(reader.done()) << split;
    EXPECT_FALSE(reader.failed()) << split;
    EXPECT_EQ(reader.outcome(), Outcome::Ok) << split;
    EXPECT_EQ(reader.cache_status(), "secondsight; hit");
    EXPECT_TRUE(reader.keeps_connection());
  }
}

TEST(ResponseReader, TakesChunksSplitAnywhere) {
  const std::string body = bytes_of(kBody);
  const std::string text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1e\r\n" +
                           body.substr(0, 30) + "\r\na;x=y\r\n" + body.substr(30) + "\r\n0\r\n\r\n";
  for (std::size_t split = 1; split < text.size(); ++split) {
    ResponseReader reader(kBody);
    feed_in_two(reader, text, split);
    EXPECT_TRUE(reader.done()) << split;
    EXPECT_EQ(reader.outcome(), Outcome::Ok) << split;
  }
}

TEST(ResponseReader, JoinsCacheStatusLines) {
  const std::string text =
      response(bytes_of(kBody), "Cache-Status: up; fwd=miss\r\nCACHE-STATUS: secondsight; hit\r\n");
  ResponseReader reader(kBody);
  reader.feed(text.data(), text.size());
  EXPECT_EQ(reader.cache_status(), "up; fwd=miss, secondsight; hit");
}

Outcome outcome_of(const std::string& text) {
  ResponseReader reader(kBody);
  reader.feed(text.data(), text.size());
  EXPECT_TRUE(reader.done());
  return reader.outcome();
}

TEST(ResponseReader, NoticesEveryLie) {
  const std::string body = bytes_of(kBody);
  for (std::size_t i = 0; i < body.size(); ++i) {
    std::string wrong = body;
    wrong[i] = static_cast<char>(wrong[i] ^ 1);
    EXPECT_EQ(outcome_of(response(wrong)), Outcome::WrongBytes) << i;
  }
  EXPECT_EQ(outcome_of(response(body.substr(1))), Outcome::WrongLength);
  EXPECT_EQ(outcome_of(response(body + "x")), Outcome::WrongLength);
  EXPECT_EQ(outcome_of(response("")), Outcome::WrongLength);
  EXPECT_EQ(outcome_of("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"),
            Outcome::WrongStatus);
  EXPECT_EQ(outcome_of("HTTP/1.1 206 Partial\r\nContent-Length: 40\r\n\r\n" + body),
            Outcome::WrongStatus);
}

TEST(ResponseReader, EndOfStream) {
  const std::string body = bytes_of(kBody);
  ResponseReader by_close(kBody);
  const std::string text = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body;
  by_close.feed(text.data(), text.size());
  EXPECT_FALSE(by_close.done());
  by_close.feed_eof();
  EXPECT_FALSE(by_close.failed());
  EXPECT_EQ(by_close.outcome(), Outcome::Ok);
  EXPECT_FALSE(by_close.keeps_connection());

  const std::string whole = response(body);
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    ResponseReader reader(kBody);
    reader.feed(whole.data(), cut);
    reader.feed_eof();
    EXPECT_TRUE(reader.failed()) << cut;
  }
}

TEST(ResponseReader, RefusesWhatIsNotHttp) {
  for (const std::string text :
       {"HTTP/2 200\r\n\r\n", "hello\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"}) {
    ResponseReader reader(kBody);
    reader.feed(text.data(), text.size());
    EXPECT_TRUE(reader.failed()) << text;
  }
}

}  // namespace
}  // namespace secondsight::loadtest
