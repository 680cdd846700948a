#include <atomic>
#include <string>

#include <gtest/gtest.h>

#include "tests/proxy/flight_fixture.h"

namespace secondsight::proxy::test {
namespace {

using namespace literals;

/// Answers "Range: bytes=A-B" as an origin does that has `body` under the strong tag "v1".
RoutedOrigin::Answer ranged(const std::string& body, const std::string& fields) {
  return [body, fields](const std::string& request) -> std::string {
    const auto at = request.find("Range: bytes=");
    if (at == std::string::npos) return ok(fields, body);
    if (request.find("If-Range: \"v1\"") == std::string::npos) return ok(fields, "not conditional");
    const std::size_t first = std::stoul(request.substr(at + 13));
    const std::size_t last = std::stoul(request.substr(request.find('-', at) + 1));
    const std::string part = body.substr(first, last - first + 1);
    return "HTTP/1.1 206 Partial Content\r\nContent-Length: " + std::to_string(part.size()) +
           "\r\nContent-Range: bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" +
           std::to_string(body.size()) + "\r\n" + fields + "\r\n" + part;
  };
}

/// A slow reader of a stored body, and a ring that goes round under it.
class LappedReader : public ::testing::Test {
 protected:
  static constexpr std::size_t kBodyBytes = 12'000'000;
  LappedReader()
      : body(body_of(kBodyBytes)), proxy(origin.url(), [](Settings& s) {
          s.admission.policy = PolicyName::Always;
          s.cache.memory_bytes = 0;
          s.cache.disk_bytes = 32_MiB;
        }) {}

  /// Stores /big, lets a slow client ask for it, and writes the ring full of other things.
  RawResponse read_while_the_ring_goes_round() {
    EXPECT_EQ(proxy.get("/big").body, body);
    proxy.drain();
    const double sent_bytes = proxy.metric("secondsight_sent_body_bytes_total");
    const auto slow = ask(proxy, "/big", {}, kSlow);
    EXPECT_TRUE(
        eventually([&] { return proxy.metric("secondsight_sent_body_bytes_total") > sent_bytes; }));
    const std::string other = body_of(1'000'000, 2);
    for (int i = 0; i < 45; ++i) {
      const std::string target = "/" + std::to_string(i);
      origin.on(target, ok(kFresh, other));
      EXPECT_EQ(proxy.get(target).status, 200);
      proxy.drain();
    }
    return slow->read_response();
  }

  RoutedOrigin origin;
  const std::string body;
  RunningProxy proxy;
};

TEST_F(LappedReader, GoesOnFromTheOriginUnderAStrongTag) {
  origin.on("/big", ranged(body, "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n"));
  const RawResponse response = read_while_the_ring_goes_round();
  EXPECT_TRUE(response.whole);
  EXPECT_EQ(response.body, body);
  EXPECT_EQ(proxy.metric("secondsight_continued_responses_total"), 1);
}

TEST_F(LappedReader, IsGivenTheRightPartOfAWhole200) {
  origin.on("/big", ok("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", body));
  const RawResponse response = read_while_the_ring_goes_round();
  EXPECT_TRUE(response.whole);
  EXPECT_EQ(response.body, body);
}

TEST_F(LappedReader, IsCutRatherThanGivenAnotherVersion) {
  std::atomic<int> asked{0};
  origin.on("/big", [this, &asked](const std::string&) {
    const bool is_first = asked.fetch_add(1) == 0;
    return ok(std::string("Cache-Control: max-age=60\r\nETag: ") +
                  (is_first ? "\"v1\"\r\n" : "\"v2\"\r\n"),
              is_first ? body : body_of(kBodyBytes, 3));
  });
  const RawResponse response = read_while_the_ring_goes_round();
  EXPECT_FALSE(response.whole);
  EXPECT_EQ(response.body, body.substr(0, response.body.size()));
  EXPECT_EQ(proxy.metric("secondsight_cut_responses_total"), 1);
}

TEST_F(LappedReader, IsCutWithoutAStrongTag) {
  origin.on("/big", ok("Cache-Control: max-age=60\r\nETag: W/\"v1\"\r\n", body));
  const RawResponse response = read_while_the_ring_goes_round();
  EXPECT_FALSE(response.whole);
  EXPECT_EQ(response.body, body.substr(0, response.body.size()));
  EXPECT_EQ(origin.count("/big"), 1U) << "nothing to ask under";
}

}  // namespace
}  // namespace secondsight::proxy::test
