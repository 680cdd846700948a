#include "admission/access_log.h"

#include <array>
#include <cstdio>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace secondsight::admission {
namespace {

using std::chrono::milliseconds;

WallTime at(std::int64_t unix_milliseconds) {
  return WallTime(milliseconds(unix_milliseconds));
}

// 2026-11-30T21:03:29Z
constexpr std::int64_t kSecond = 1'796'072'609'000;

struct Understood {
  std::string line;
  LoggedRequest request;
};

const std::vector<Understood>& understood_lines() {
  static const std::vector<Understood> kLines{
      // Common.
      {R"(192.0.2.1 - - [30/Nov/2026:21:03:29 +0000] "GET /a?b=c HTTP/1.1" 200 2326)",
       {at(kSecond), "GET", "", "/a?b=c", 200, 2326}},
      {R"(192.0.2.1 - - [30/Nov/2026:22:33:29 +0130] "GET / HTTP/1.0" 304 -)",
       {at(kSecond), "GET", "", "/", 304, {}}},
      {R"(client.example - alice [30/Nov/2026:16:03:29 -0500] "HEAD /x HTTP/2.0" 200 0)",
       {at(kSecond), "HEAD", "", "/x", 200, 0}},
      // Combined, with what a site adds to it.
      {R"(2001:db8::1 - - [30/Nov/2026:21:03:29 +0000] "GET /a HTTP/1.1" 206 10 "-" "curl/8 \"x\"" 0.003)",
       {at(kSecond), "GET", "", "/a", 206, 10}},
      // A user's name with blanks and brackets; a client's identity.
      {R"(192.0.2.1 - john [the 1st] doe [30/Nov/2026:21:03:29 +0000] "GET /a HTTP/1.1" 200 1)",
       {at(kSecond), "GET", "", "/a", 200, 1}},
      {R"(192.0.2.1 ident user [30/Nov/2026:21:03:29 +0000] "GET /a HTTP/1.1" 200 1)",
       {at(kSecond), "GET", "", "/a", 200, 1}},
      // With the virtual host.
      {R"(www.example.com:80 192.0.2.1 - - [30/Nov/2026:21:03:29 +0000] "GET /a HTTP/1.1" 200 1 "-" "-")",
       {at(kSecond), "GET", "www.example.com", "/a", 200, 1}},
      {R"(www.example.com:443 192.0.2.1 - - [30/Nov/2026:21:03:29 +0000] "GET /a HTTP/1.1" 200 1)",
       {at(kSecond), "GET", "www.example.com", "/a", 200, 1}},
      {R"(www.example.com:8080 192.0.2.1 - - [30/Nov/2026:21:03:29 +0000] "GET /a HTTP/1.1" 200 1)",
       {at(kSecond), "GET", "www.example.com:8080", "/a", 200, 1}},
      {R"(www.example.com 192.0.2.1 - john doe [30/Nov/2026:21:03:29 +0000] "GET /a HTTP/1.1" 200 1)",
       {at(kSecond), "GET", "www.example.com", "/a", 200, 1}},
      {R"(- 192.0.2.1 - - [30/Nov/2026:21:03:29 +0000] "GET /a HTTP/1.1" 200 1)",
       {at(kSecond), "GET", "", "/a", 200, 1}},
      // Escapes, as Apache and as nginx write them.
      {R"(192.0.2.1 - - [30/Nov/2026:21:03:29 +0000] "GET /\"\\\xc3\xA9\t HTTP/1.1" 200 1)",
       {at(kSecond), "GET", "", "/\"\\\xc3\xa9\t", 200, 1}},
      {R"(192.0.2.1 - - [30/Nov/2026:21:03:29 +0000] "GET /\x22\x5C HTTP/1.1" 200 1)",
       {at(kSecond), "GET", "", "/\"\\", 200, 1}},
      {R"(192.0.2.1 - - [30/Nov/2026:21:03:29 +0000] "GET http://a.example/b HTTP/1.1" 200 1)",
       {at(kSecond), "GET", "", "http://a.example/b", 200, 1}},
      {R"(192.0.2.1 - - [30/Nov/2026:21:03:29 +0000] "GET /old" 200 1)",
       {at(kSecond), "GET", "", "/old", 200, 1}},
      // What came was no request.
      {R"(192.0.2.1 - - [30/Nov/2026:21:03:29 +0000] "-" 408 -)",
       {at(kSecond), "", "", "", 408, {}}},
      {R"(192.0.2.1 - - [30/Nov/2026:21:03:29 +0000] "" 400 0)", {at(kSecond), "", "", "", 400, 0}},
      {R"(192.0.2.1 - - [30/Nov/2026:21:03:29 +0000] "\x16\x03\x01 \x02" 400 166)",
       {at(kSecond), "", "", "", 400, 166}},
      // The proxy's own.
      {R"({"time":"2026-11-30T21:03:29.123Z","method":"GET","host":"a.example:8080","target":"/a?\"b","status":200,)"
       R"("body_bytes":17,"duration_us":1200,"outcome":"miss","detail":"first-sighting"})",
       {at(kSecond + 123), "GET", "a.example:8080", "/a?\"b", 200, 17}},
      // nginx's.
      {R"({"time_iso8601":"2026-11-30T22:03:29+01:00","request_method":"GET","http_host":"a.example",)"
       R"("host":"default","request_uri":"/a","status":"200","body_bytes_sent":"17"})",
       {at(kSecond), "GET", "a.example", "/a", 200, 17}},
      {R"({"msec":"1796072609.042","request":"GET /a HTTP/1.1","host":"a.example","status":404,"bytes_sent":300})",
       {at(kSecond + 42), "GET", "a.example", "/a", 404, 300}},
      {R"({"msec":1796072609.042,"request_method":"POST","request_uri":"/a","http_host":"-","status":201})",
       {at(kSecond + 42), "POST", "", "/a", 201, {}}},
      {R"({"time_local":"30/Nov/2026:21:03:29 +0000","request":"","status":"400","more":{"x":[1,null]}})",
       {at(kSecond), "", "", "", 400, {}}},
      {"{\"msec\":1796072609,\"request\":\"GET /\xe9 HTTP/1.1\",\"status\":200}",
       {at(kSecond), "GET", "", "/\xe9", 200, {}}},
      {R"({"time":"2026-11-30T21:03:29.000Z","method":"","host":"","target":"","status":400,"body_bytes":0})",
       {at(kSecond), "", "", "", 400, 0}},
  };
  return kLines;
}

void expect_equal(const LoggedRequest& got, const LoggedRequest& wanted, const std::string& line) {
  EXPECT_EQ(got.time, wanted.time) << line;
  EXPECT_EQ(got.method, wanted.method) << line;
  EXPECT_EQ(got.host, wanted.host) << line;
  EXPECT_EQ(got.target, wanted.target) << line;
  EXPECT_EQ(got.status, wanted.status) << line;
  EXPECT_EQ(got.body_bytes, wanted.body_bytes) << line;
}

TEST(AccessLog, UnderstandsTheUsualFormats) {
  LoggedRequest request;  // one for all: nothing of a line may stay for the next
  for (const auto& [line, wanted] : understood_lines()) {
    EXPECT_EQ(parse_access_line(line, request), "") << line;
    expect_equal(request, wanted, line);
  }
}

TEST(AccessLog, SaysWhyALineIsNone) {
  const std::vector<std::pair<std::string, std::string>> lines{
      {"", "empty"},
      {"  \t", "empty"},
      {"hello", "no time such as [30/Nov/2026:21:03:29 +0100]"},
      {R"(1.2.3.4 - - [31/Nov/2026:21:03:29 +0000] "GET / HTTP/1.1" 200 1)",
       "no time such as [30/Nov/2026:21:03:29 +0100]"},
      {R"(1.2.3.4 - - [30/Nov/2026:21:03:29 +0000])",
       "the request is not quoted as Apache and nginx do"},
      {R"(1.2.3.4 - - [30/Nov/2026:21:03:29 +0000] GET / 200 1)",
       "the request is not quoted as Apache and nginx do"},
      {R"(1.2.3.4 - - [30/Nov/2026:21:03:29 +0000] "GET /\q HTTP/1.1" 200 1)",
       "the request is not quoted as Apache and nginx do"},
      {R"(1.2.3.4 - - [30/Nov/2026:21:03:29 +0000] "GET /\x2 HTTP/1.1" 200 1)",
       "the request is not quoted as Apache and nginx do"},
      {R"(1.2.3.4 - - [30/Nov/2026:21:03:29 +0000] "GET / HTTP/1.1)",
       "the request is not quoted as Apache and nginx do"},
      {R"(1.2.3.4 - - [30/Nov/2026:21:03:29 +0000] "GET / HTTP/1.1" OK 1)", "no status"},
      {R"(1.2.3.4 - - [30/Nov/2026:21:03:29 +0000] "GET / HTTP/1.1")", "no status"},
      {R"(1.2.3.4 - - [30/Nov/2026:21:03:29 +0000] "GET /a b HTTP/1.1" 200 1)",
       "the request is no request line"},
      {R"(1.2.3.4 [30/Nov/2026:21:03:29 +0000] "GET / HTTP/1.1" 200 1)",
       "neither Common, Combined nor JSON"},
      {R"({"time":"2026-11-30T21:03:29Z")", "no whole JSON object"},
      {R"({"a":1} trailing)", "no whole JSON object"},
      {R"({"status":200})", "no time, time_iso8601, msec or time_local"},
      {R"({"msec":-1,"status":200})", "no time, time_iso8601, msec or time_local"},
      {R"({"msec":1e300,"status":200})", "no time, time_iso8601, msec or time_local"},
      {R"({"msec":"nan","status":200})", "no time, time_iso8601, msec or time_local"},
      {R"({"msec":1,"request":"GET / HTTP/1.1"})", "no status"},
      {R"({"msec":1,"request":"GET / HTTP/1.1","status":-1})", "no status"},
      {R"({"msec":1,"status":200})",
       "neither method and target, request_method and request_uri, nor request"},
  };
  LoggedRequest request;
  for (const auto& [line, reason] : lines)
    EXPECT_EQ(parse_access_line(line, request), reason) << line;
}

TEST(AccessLog, ReadsIsoTimes) {
  const std::vector<std::pair<std::string, std::optional<WallTime>>> texts{
      {"1970-01-01T00:00:00Z", at(0)},
      {"2026-11-30T21:03:29Z", at(kSecond)},
      {"2026-11-30t21:03:29z", at(kSecond)},
      {"2026-11-30 21:03:29Z", at(kSecond)},
      {"2026-11-30T21:03:29.1Z", at(kSecond + 100)},
      {"2026-11-30T21:03:29.123987654Z", at(kSecond + 123)},
      {"2026-12-01T02:33:29+05:30", at(kSecond)},
      {"2026-11-30T13:03:29-0800", at(kSecond)},
      {"2028-02-29T00:00:00Z", at(1'835'395'200'000)},
      {"2026-12-31T23:59:60Z", at(1'798'761'600'000)},
      {"2026-02-29T00:00:00Z", std::nullopt},
      {"2026-13-01T00:00:00Z", std::nullopt},
      {"2026-11-30T24:00:00Z", std::nullopt},
      {"2026-11-30T21:60:00Z", std::nullopt},
      {"2026-11-30T21:03:61Z", std::nullopt},
      {"2026-11-30T21:03:29", std::nullopt},
      {"2026-11-30T21:03:29.Z", std::nullopt},
      {"2026-11-30T21:03:29Zx", std::nullopt},
      {"2026-11-3T21:03:29Z", std::nullopt},
      {"-026-11-30T21:03:29Z", std::nullopt},
      {"", std::nullopt},
  };
  for (const auto& [text, time] : texts) EXPECT_EQ(parse_iso_time(text), time) << text;
}

TEST(AccessLog, ReadsTimesOfEveryMonth) {
  constexpr std::array<const char*, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  for (unsigned m = 0; m < 12; ++m) {
    std::array<char, 32> iso{};
    std::snprintf(iso.data(), iso.size(), "2026-%02u-07T08:09:10Z", m + 1);
    const auto wanted = parse_iso_time(iso.data());
    ASSERT_TRUE(wanted);
    EXPECT_EQ(parse_log_time("07/" + std::string(kMonths[m]) + "/2026:08:09:10 +0000"), wanted);
  }
  EXPECT_FALSE(parse_log_time("07/jan/2026:08:09:10 +0000"));
  EXPECT_FALSE(parse_log_time("07/Jan/2026:08:09:10"));
  EXPECT_FALSE(parse_log_time("07/Jan/2026:08:09:10 0000"));
}

/// As nginx does by default, and in JSON.
std::string escape(const std::string& text, bool is_json) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    std::array<char, 8> escaped{};
    const bool is_special = byte < 0x20 || c == '"' || c == '\\';
    if (is_json && is_special)
      std::snprintf(escaped.data(), escaped.size(), "\\u%04X", byte);
    else if (!is_json && (is_special || byte > 0x7e))
      std::snprintf(escaped.data(), escaped.size(), "\\x%02X", byte);
    else
      escaped[0] = c;
    out += escaped.data();
  }
  return out;
}

TEST(AccessLog, ReadsBackAnyTarget) {
  const std::uint32_t seed = 20261130;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    std::string target = "/";
    for (auto length = random() % 20; target.size() <= length;) {
      const auto c = static_cast<char>(random() % 255 + 1);
      if (c != ' ') target += c;
    }
    LoggedRequest request;
    const std::string words = R"(1.2.3.4 - - [30/Nov/2026:21:03:29 +0000] "GET )" +
                              escape(target, false) + R"( HTTP/1.1" 200 1 "-" "-")";
    EXPECT_EQ(parse_access_line(words, request), "") << words;
    EXPECT_EQ(request.target, target) << words;
    const std::string json = R"({"msec":1,"request_method":"GET","request_uri":")" +
                             escape(target, true) + R"(","status":200})";
    EXPECT_EQ(parse_access_line(json, request), "") << json;
    EXPECT_EQ(request.target, target) << json;
  }
}

TEST(AccessLog, TakesNoMutatedLineForMoreThanItSays) {
  const std::uint32_t seed = 20261201;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  unsigned refused = 0;
  const auto check = [&refused](const std::string& line) {
    LoggedRequest request;
    const std::string_view fault = parse_access_line(line, request);
    if (!fault.empty()) {
      ++refused;
      return;
    }
    // What is understood is one request, or none.
    EXPECT_EQ(request.method.empty(), request.target.empty()) << line;
    EXPECT_EQ(request.method.find(' '), std::string::npos) << line;
    EXPECT_LE(request.method.size() + request.target.size() + request.host.size(), line.size())
        << line;
    EXPECT_GE(request.status, 0) << line;
    LoggedRequest again;
    EXPECT_EQ(parse_access_line(line, again), "") << line;
    expect_equal(again, request, line);
  };
  for (const auto& [line, wanted] : understood_lines()) {
    for (std::size_t size = 0; size < line.size(); ++size) check(line.substr(0, size));
    for (std::size_t i = 0; i < line.size(); ++i) {
      std::string mutated = line;
      mutated[i] = static_cast<char>(random() % 256);
      check(mutated);
      check(std::string(line).erase(i, 1));
      check(std::string(line).insert(i, 1, static_cast<char>(random() % 256)));
    }
  }
  EXPECT_GT(refused, 1'000U);
}

}  // namespace
}  // namespace secondsight::admission
