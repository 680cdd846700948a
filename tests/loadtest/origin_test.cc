#include "loadtest/origin.h"

#include <gmock/gmock.h>
#include <string>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "loadtest/body.h"

namespace secondsight::loadtest {
namespace {

using boost::system::error_code;
using testing::HasSubstr;

/// Sends bytes in pieces and reads until the server closes.
std::string talk(const Origin& origin, const std::vector<std::string>& pieces) {
  net::io_context io;
  tcp::socket socket(io);
  socket.connect(origin.endpoint());
  socket.set_option(tcp::no_delay(true));
  for (const std::string& piece : pieces) net::write(socket, net::buffer(piece));
  std::string answer;
  error_code error;
  net::read(socket, net::dynamic_buffer(answer), error);
  return answer;
}

std::string body_after_head(const std::string& answer) {
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

TEST(Origin, ServesTheBodyOfTheObject) {
  const auto origin = Origin::start({});
  ASSERT_TRUE(origin);
  const std::string answer =
      talk(**origin, {"GET /o/key/3000000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"});
  EXPECT_THAT(answer, testing::StartsWith("HTTP/1.1 200 OK\r\n"));
  const std::string body = body_after_head(answer);
  EXPECT_EQ(body.size(), 3'000'000u);
  EXPECT_TRUE(Body("key", 3'000'000).matches(0, std::as_bytes(std::span(body))));
  EXPECT_EQ((*origin)->counters().fetches, 1u);
  EXPECT_EQ((*origin)->counters().body_bytes, 3'000'000u);
}

TEST(Origin, ServesARangeOfIt) {
  const auto origin = Origin::start({});
  ASSERT_TRUE(origin);
  const std::string body =
      body_after_head(talk(**origin, {"GET /o/key/900000 HTTP/1.1\r\nHost: x\r\nRange: "
                                      "bytes=5-600004\r\nConnection: close\r\n\r\n"}));
  EXPECT_EQ(body.size(), 600'000u);
  EXPECT_TRUE(Body("key", 900'000).matches(5, std::as_bytes(std::span(body))));
}

TEST(Origin, TakesARequestSplitAnywhereAndPipelines) {
  const auto origin = Origin::start({});
  ASSERT_TRUE(origin);
  const std::string both =
      "GET /o/a/20 HTTP/1.1\r\nHost: x\r\n\r\n"
      "HEAD /o/b/30 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  const std::string whole = talk(**origin, {both});
  EXPECT_THAT(whole, HasSubstr("Content-Length: 20\r\n"));
  EXPECT_THAT(whole, HasSubstr("Content-Length: 30\r\n"));
  for (std::size_t split = 1; split < both.size(); split += 7) {
    const std::string answer = talk(**origin, {both.substr(0, split), both.substr(split)});
    EXPECT_EQ(answer.size(), whole.size()) << split;
  }
  EXPECT_EQ((*origin)->counters().fetches, (*origin)->counters().heads);
}

// The part that comes with an answered request must not bring its answer again.
TEST(Origin, APartOfTheNextRequestBehindAWholeOne) {
  const auto origin = Origin::start({});
  ASSERT_TRUE(origin);
  const std::string first = "GET /o/a/20 HTTP/1.1\r\nHost: x\r\n\r\n";
  const std::string second = "GET /o/b/30 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  const std::size_t first_answer =
      talk(**origin, {"GET /o/a/20 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"}).size() -
      std::string("Connection: close\r\n").size();
  const std::string second_answer = talk(**origin, {second});
  for (std::size_t split = 1; split < second.size(); ++split) {
    net::io_context io;
    tcp::socket socket(io);
    socket.connect((*origin)->endpoint());
    net::write(socket, net::buffer(first + second.substr(0, split)));
    std::string answer(first_answer, ' ');
    net::read(socket, net::buffer(answer));
    const std::string rest = second.substr(split);
    net::write(socket, net::buffer(rest));
    answer.clear();
    error_code error;
    net::read(socket, net::dynamic_buffer(answer), error);
    EXPECT_EQ(answer.size(), second_answer.size()) << split;
    EXPECT_EQ(body_after_head(answer), body_after_head(second_answer)) << split;
  }
}

TEST(Origin, CountsWhatItAnswers) {
  const auto origin = Origin::start({});
  ASSERT_TRUE(origin);
  talk(**origin, {"GET /o/a/1 HTTP/1.1\r\nHost: x\r\nIf-None-Match: *\r\n\r\n"
                  "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
                  "GET /o/a/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"});
  EXPECT_EQ((*origin)->counters().not_modified, 1u);
  EXPECT_EQ((*origin)->counters().refused, 1u);
  EXPECT_EQ((*origin)->counters().fetches, 1u);
}

TEST(Origin, RefusesRubbishAndBodiesAndCloses) {
  const auto origin = Origin::start({});
  ASSERT_TRUE(origin);
  EXPECT_THAT(talk(**origin, {"rubbish\r\n\r\n"}), testing::StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(talk(**origin, {"POST /o/a/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"}),
              testing::AllOf(testing::StartsWith("HTTP/1.1 405 "), HasSubstr("Connection: close")));
}

TEST(Origin, EndsWithConnectionsOpen) {
  net::io_context io;
  tcp::socket idle(io);
  tcp::socket stuck(io);
  {
    auto origin = Origin::start({});
    ASSERT_TRUE(origin);
    idle.connect((*origin)->endpoint());
    stuck.connect((*origin)->endpoint());
    const std::string request = "GET /o/a/1000000000 HTTP/1.1\r\nHost: x\r\n\r\n";
    net::write(stuck, net::buffer(request));
    char first = 0;
    net::read(stuck, net::buffer(&first, 1));  // its body waits for us now
  }
  error_code error;
  char byte = 0;
  net::read(idle, net::buffer(&byte, 1), error);
  EXPECT_TRUE(error);
}

TEST(Origin, SeveralThreads) {
  Origin::Options options;
  options.threads = 3;
  const auto origin = Origin::start(options);
  ASSERT_TRUE(origin);
  for (int i = 0; i < 9; ++i) {
    EXPECT_THAT(talk(**origin, {"GET /o/a/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"}),
                HasSubstr("200 OK"));
  }
  EXPECT_EQ((*origin)->counters().fetches, 9u);
  EXPECT_GE((*origin)->cpu_seconds(), 0);
}

TEST(Origin, SaysWhyItCannotListen) {
  const auto first = Origin::start({});
  ASSERT_TRUE(first);
  Origin::Options options;
  options.port = (*first)->endpoint().port();
  EXPECT_EQ(Origin::start(options).error(), boost::system::errc::address_in_use);
  options.host = "localhost";
  EXPECT_EQ(Origin::start(options).error(), boost::system::errc::invalid_argument);
}

TEST(Origin, UrlIsWhereItListens) {
  const auto origin = Origin::start({});
  ASSERT_TRUE(origin);
  EXPECT_EQ((*origin)->url(), "http://127.0.0.1:" + std::to_string((*origin)->endpoint().port()));
}

}  // namespace
}  // namespace secondsight::loadtest
