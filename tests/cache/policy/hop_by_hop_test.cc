#include "cache/policy/hop_by_hop.h"

#include <gtest/gtest.h>

#include "tests/cache/policy/heads.h"

namespace secondsight::cache::policy {
namespace {

TEST(HopByHop, Names) {
  for (const char* name : {"Connection", "Keep-Alive", "proxy-connection",
                           "Proxy-Authentication-Info", "Proxy-Authenticate", "Proxy-Authorization",
                           "TE", "trailer", "Transfer-Encoding", "Upgrade"})
    EXPECT_TRUE(is_hop_by_hop(name)) << name;
  for (const char* name :
       {"Trailers", "Via", "Content-Length", "WWW-Authenticate", "Set-Cookie", ""})
    EXPECT_FALSE(is_hop_by_hop(name)) << name;
}

TEST(HopByHop, WhatCrossesAProxy) {
  struct Row {
    const char* clause;
    HeadLines received;
    const char* forwarded;
  };
  const Row rows[] = {
      {"RFC 9110 7.6.1: what is named goes",
       {{"A", "1"}, {"Connection", "a, close , B"}, {"b", "2"}, {"C", "3"}},
       "C: 3\r\n"},
      {"RFC 9110 7.6.1: several Connection lines",
       {{"Connection", "a"}, {"connection", "b"}, {"A", "1"}, {"B", "2"}},
       ""},
      {"RFC 9110 7.6.1: fixed ones go unnamed",
       {{"TE", "trailers"}, {"Transfer-Encoding", "chunked"}, {"Upgrade", "h2c"}, {"A", "1"}},
       "A: 1\r\n"},
      {"RFC 9110 7.6.1: what is meant for all stays",
       {{"Connection",
         "host, Cache-Control, age, date, etag, content-length, authorization, cookie, vary, "
         "range, x"},
        {"Host", "h"},
        {"Cache-Control", "no-store"},
        {"Age", "1"},
        {"Date", "d"},
        {"ETag", "\"a\""},
        {"Content-Length", "3"},
        {"Authorization", "x"},
        {"Cookie", "c"},
        {"Vary", "v"},
        {"Range", "r"},
        {"X", "gone"}},
       "Host: h\r\nCache-Control: no-store\r\nAge: 1\r\nDate: d\r\nETag: \"a\"\r\nContent-Length: "
       "3\r\nAuthorization: x\r\nCookie: c\r\nVary: v\r\nRange: r\r\n"},
      {"RFC 9110 5.3: order and duplicates are kept",
       {{"Set-Cookie", "a"}, {"X", "1"}, {"Set-Cookie", "b"}},
       "Set-Cookie: a\r\nX: 1\r\nSet-Cookie: b\r\n"},
      {"nothing", {}, ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(end_to_end(head(row.received)).text(), row.forwarded);
  }
}

TEST(HopByHop, WhatMayComeBehindABody) {
  struct Row {
    const char* clause;
    const char* name;
    bool may;
  };
  const Row rows[] = {
      {"RFC 9110 6.5.1: unknown", "Server-Timing", true},
      {"RFC 9110 6.5.1: unknown", "X-Checksum", true},
      {"RFC 9530 2: made for it", "content-digest", true},
      {"RFC 9110 8.8.3: allowed by its definition", "ETag", true},
      {"RFC 9110 11.6.3: allowed by its definition", "Authentication-Info", true},
      {"RFC 9110 6.5.1: framing", "Content-Length", false},
      {"RFC 9110 6.5.1: framing", "transfer-encoding", false},
      {"RFC 9110 6.5.1: the connection's", "Connection", false},
      {"RFC 9110 6.5.1: the connection's", "Trailer", false},
      {"RFC 9110 6.5.1: routing", "host", false},
      {"RFC 9110 6.5.1: routing", "Location", false},
      {"RFC 9110 6.5.1: credentials", "Authorization", false},
      {"RFC 9110 6.5.1: credentials", "SET-COOKIE", false},
      {"RFC 9110 6.5.1: credentials", "WWW-Authenticate", false},
      {"RFC 9110 6.5.1: request modifiers", "Max-Forwards", false},
      {"RFC 9110 6.5.1: response controls", "Cache-Control", false},
      {"RFC 9110 6.5.1: response controls", "cdn-cache-control", false},
      {"RFC 9110 6.5.1: response controls", "Vary", false},
      {"RFC 9110 6.5.1: format", "Content-Type", false},
      {"RFC 9110 6.5.1: format", "Content-Anything", false},
  };
  for (const Row& row : rows)
    EXPECT_EQ(may_be_trailer(row.name), row.may) << row.clause << row.name;
}

TEST(HopByHop, WhatConnectionNames) {
  const FieldBlock received =
      head({{"Connection", "close, X-a"}, {"connection", "cookie ,b"}, {"X-A", "1"}});
  for (const char* name : {"x-a", "X-A", "B", "Close"})
    EXPECT_TRUE(is_named_by_connection(received, name)) << name;
  for (const char* name : {"x", "c", "Cookie", ""})
    EXPECT_FALSE(is_named_by_connection(received, name)) << name;
  EXPECT_FALSE(is_named_by_connection({}, "x-a"));
}

TEST(HopByHop, WhatIsStored) {
  // RFC 9111 3.1, 3.2 (Content-Length), 5.1 (Age).
  const FieldBlock received = head({{"Date", "d"},
                                    {"Age", "5"},
                                    {"content-length", "3"},
                                    {"X", "1"},
                                    {"Connection", "x"},
                                    {"Set-Cookie", "a=b"},
                                    {"Unknown", "u"}});
  EXPECT_EQ(storable_fields(received).text(), "Date: d\r\nSet-Cookie: a=b\r\nUnknown: u\r\n");
}

}  // namespace
}  // namespace secondsight::cache::policy
