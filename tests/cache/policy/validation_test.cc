#include "cache/policy/validation.h"

#include <gtest/gtest.h>

#include "tests/cache/policy/heads.h"

namespace secondsight::cache::policy {
namespace {

constexpr const char* kDayBefore = "Sat, 05 Nov 1994 08:49:37 GMT";
constexpr const char* kHourLater = "Sun, 06 Nov 1994 09:49:37 GMT";

TEST(Validation, NotModified) {
  struct Row {
    const char* clause;
    bool not_modified;
    HeadLines stored;
    HeadLines request;
  };
  const Row rows[] = {
      {"RFC 9110 13.1: no condition",
       false,
       {{"ETag", "\"a\""}, {"Last-Modified", kDayBefore}},
       {}},
      {"RFC 9110 13.1.2: equal", true, {{"ETag", "\"a\""}}, {{"If-None-Match", "\"a\""}}},
      {"RFC 9110 13.1.2: different", false, {{"ETag", "\"a\""}}, {{"If-None-Match", "\"b\""}}},
      {"RFC 9110 8.8.3.2: weak and weak",
       true,
       {{"ETag", "W/\"a\""}},
       {{"If-None-Match", "W/\"a\""}}},
      {"RFC 9110 8.8.3.2: stored is weak",
       true,
       {{"ETag", "W/\"a\""}},
       {{"If-None-Match", "\"a\""}}},
      {"RFC 9110 8.8.3.2: asked is weak",
       true,
       {{"ETag", "\"a\""}},
       {{"If-None-Match", "W/\"a\""}}},
      {"RFC 9110 8.8.3: case matters", false, {{"ETag", "\"a\""}}, {{"If-None-Match", "\"A\""}}},
      {"RFC 9110 13.1.2: first of a list",
       true,
       {{"ETag", "\"a\""}},
       {{"If-None-Match", "\"a\", \"b\",\"c\""}}},
      {"RFC 9110 13.1.2: last of a list",
       true,
       {{"ETag", "\"c\""}},
       {{"If-None-Match", "\"a\", W/\"b\",\"c\""}}},
      {"RFC 9110 13.1.2: none of a list",
       false,
       {{"ETag", "\"d\""}},
       {{"If-None-Match", "\"a\", \"b\",\"c\""}}},
      {"RFC 9110 8.8.3: a comma inside a tag",
       true,
       {{"ETag", "\"a,b\""}},
       {{"If-None-Match", "\"x\", \"a,b\""}}},
      {"RFC 9110 8.8.3: half of a tag with a comma",
       false,
       {{"ETag", "b\""}},
       {{"If-None-Match", "\"a,b\""}}},
      {"RFC 9110 8.8.3: a backslash is no escape",
       true,
       {{"ETag", "\"b\""}},
       {{"If-None-Match", "\"a\\\", \"b\""}}},
      {"RFC 9110 5.3: several lines",
       true,
       {{"ETag", "\"b\""}},
       {{"If-None-Match", "\"a\""}, {"if-none-match", "\"b\""}}},
      {"RFC 9110 13.1.2: star", true, {{"ETag", "\"a\""}}, {{"If-None-Match", "*"}}},
      {"RFC 9110 13.1.2: star without a stored tag", true, {}, {{"If-None-Match", "*"}}},
      {"RFC 9110 13.1.2: no stored tag", false, {}, {{"If-None-Match", "\"a\""}}},
      {"RFC 9110 13.1.2: an empty list", false, {{"ETag", "\"a\""}}, {{"If-None-Match", ""}}},
      {"RFC 9110 8.8.3: bytes above 0x7f",
       true,
       {{"ETag", "\"\xC3\xBC\""}},
       {{"If-None-Match", "\"\xC3\xBC\""}}},
      {"RFC 9110 8.8.3: quotes are part of it",
       false,
       {{"ETag", "\"a\""}},
       {{"If-None-Match", "a"}}},

      {"RFC 9110 13.2.2: If-None-Match decides alone, match",
       true,
       {{"ETag", "\"a\""}, {"Last-Modified", kHourLater}},
       {{"If-None-Match", "\"a\""}, {"If-Modified-Since", kDayBefore}}},
      {"RFC 9110 13.2.2: If-None-Match decides alone, no match",
       false,
       {{"ETag", "\"a\""}, {"Last-Modified", kDayBefore}},
       {{"If-None-Match", "\"b\""}, {"If-Modified-Since", kDayBefore}}},

      {"RFC 9110 13.1.3: the same time",
       true,
       {{"Last-Modified", kDayBefore}},
       {{"If-Modified-Since", kDayBefore}}},
      {"RFC 9110 13.1.3: a later time",
       true,
       {{"Last-Modified", kDayBefore}},
       {{"If-Modified-Since", kReceivedText}}},
      {"RFC 9110 13.1.3: an earlier time",
       false,
       {{"Last-Modified", kReceivedText}},
       {{"If-Modified-Since", kDayBefore}}},
      {"RFC 9110 13.1.3: an invalid date is ignored",
       false,
       {{"Last-Modified", kDayBefore}},
       {{"If-Modified-Since", "x"}}},
      {"RFC 9110 5.6.7: rfc850 form",
       true,
       {{"Last-Modified", kDayBefore}},
       {{"If-Modified-Since", "Saturday, 05-Nov-94 08:49:37 GMT"}}},
      {"RFC 9111 4.3.2: Date stands in, reached",
       true,
       {{"Date", kReceivedText}},
       {{"If-Modified-Since", kReceivedText}}},
      {"RFC 9111 4.3.2: Date stands in, not reached",
       false,
       {{"Date", kReceivedText}},
       {{"If-Modified-Since", kDayBefore}}},
      {"RFC 9111 4.3.2: the time of receipt stands in, reached",
       true,
       {},
       {{"If-Modified-Since", kReceivedText}}},
      {"RFC 9111 4.3.2: the time of receipt stands in, not reached",
       false,
       {},
       {{"If-Modified-Since", kDayBefore}}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(is_not_modified(head(row.request), response_facts(200, row.stored), kAtOnce),
              row.not_modified);
  }
}

TEST(Validation, RequestToTheOrigin) {
  struct Row {
    const char* clause;
    HeadLines stored, request;
    const char* sent;
  };
  const Row rows[] = {
      {"RFC 9111 4.3.1: both validators",
       {{"ETag", "W/\"a\""}, {"Last-Modified", kDayBefore}},
       {{"Host", "h"}},
       "Host: h\r\nIf-None-Match: W/\"a\"\r\nIf-Modified-Since: Sat, 05 Nov 1994 08:49:37 GMT\r\n"},
      {"RFC 9111 4.3.1: the client's conditions and range go",
       {{"ETag", "\"a\""}},
       {{"If-None-Match", "\"b\""},
        {"if-modified-since", kDayBefore},
        {"If-Match", "*"},
        {"If-Unmodified-Since", kDayBefore},
        {"If-Range", "\"b\""},
        {"Range", "bytes=0-"},
        {"Accept", "x"}},
       "Accept: x\r\nIf-None-Match: \"a\"\r\n"},
      {"RFC 9111 4.3.1: Last-Modified as it was written",
       {{"Last-Modified", "Saturday, 05-Nov-94 08:49:37 GMT"}},
       {},
       "If-Modified-Since: Saturday, 05-Nov-94 08:49:37 GMT\r\n"},
      {"RFC 9110 8.8.2: an invalid Last-Modified is no validator",
       {{"Last-Modified", "yesterday"}},
       {},
       ""},
      {"RFC 9111 4.3.1: no validator", {}, {{"Accept", "x"}}, "Accept: x\r\n"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    const FieldBlock stored = head(row.stored);
    EXPECT_EQ(with_validators(head(row.request), read_facts(200, stored, kReceived), stored).text(),
              row.sent);
  }
}

TEST(Validation, FreshenedHead) {
  struct Row {
    const char* clause;
    HeadLines stored, not_modified;
    const char* result;
  };
  const Row rows[] = {
      {"RFC 9111 3.2: replaced, added, kept",
       {{"A", "1"}, {"B", "1"}},
       {{"b", "2"}, {"C", "3"}},
       "A: 1\r\nb: 2\r\nC: 3\r\n"},
      {"RFC 9111 3.2: all lines of a name",
       {{"A", "1"}, {"a", "2"}},
       {{"A", "3"}, {"A", "4"}},
       "A: 3\r\nA: 4\r\n"},
      {"RFC 9111 3.2: Content-Length stays", {{"A", "1"}}, {{"Content-Length", "10"}}, "A: 1\r\n"},
      {"RFC 9111 3.2: Content-Type is updated",
       {{"Content-Type", "a/b"}},
       {{"Content-Type", "c/d"}},
       "Content-Type: c/d\r\n"},
      {"RFC 9111 3.2: what describes the stored bytes stays",
       {{"Content-Encoding", "gzip"}},
       {{"Content-Encoding", "br"}, {"Content-Range", "bytes 0-1/2"}},
       "Content-Encoding: gzip\r\n"},
      {"RFC 9111 3.1: connection fields stay out",
       {{"A", "1"}},
       {{"Connection", "x"},
        {"X", "1"},
        {"Keep-Alive", "timeout=5"},
        {"Transfer-Encoding", "chunked"}},
       "A: 1\r\n"},
      {"RFC 9111 5.1: Age is not stored", {{"A", "1"}}, {{"Age", "10"}}, "A: 1\r\n"},
      {"RFC 9111 4.3.4: freshness is renewed",
       {{"Cache-Control", "max-age=1"}, {"Date", kDayBefore}},
       {{"Cache-Control", "max-age=9"}, {"Date", kReceivedText}},
       "Cache-Control: max-age=9\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"},
      {"RFC 9111 4.3.4: an empty 304", {{"A", "1"}}, {}, "A: 1\r\n"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(freshened(head(row.stored), head(row.not_modified)).text(), row.result);
  }
}

TEST(Validation, WhichStoredResponseA304Freshens) {
  struct Row {
    const char* clause;
    HeadLines stored, told;
    bool may;
  };
  const HeadLines tag{{"ETag", "\"a\""}};
  const HeadLines date{{"Last-Modified", kReceivedText}};
  const Row rows[] = {
      {"RFC 9111 4.3.4: the same strong tag", tag, tag, true},
      {"RFC 9111 4.3.4: another strong tag", tag, {{"ETag", "\"b\""}}, false},
      {"RFC 9111 4.3.4: a strong tag for a weak one", {{"ETag", "W/\"a\""}}, tag, false},
      {"RFC 9111 4.3.4: a strong tag where there was none", date, tag, false},
      {"RFC 9111 4.3.4: a weak tag", tag, {{"ETag", "W/\"a\""}}, true},
      {"RFC 9111 4.3.4: no validator", tag, {}, true},
      {"RFC 9111 4.3.4: only a date", date, date, true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(may_freshen(response_facts(200, row.stored), response_facts(304, row.told)), row.may);
  }
}

TEST(Validation, WhatA200ToHeadSaysOfAStoredResponse) {
  struct Row {
    const char* clause;
    HeadLines stored, head;
    std::optional<std::uint64_t> length;
    HeadVerdict verdict;
  };
  const HeadLines tag{{"ETag", "\"a\""}};
  const HeadLines date{{"Last-Modified", kReceivedText}};
  const Row rows[] = {
      {"RFC 9111 4.3.5: the same entity tag", tag, tag, 10, HeadVerdict::Same},
      {"RFC 9111 4.3.5: another entity tag", tag, {{"ETag", "\"b\""}}, 10, HeadVerdict::Outdated},
      {"RFC 9111 4.3.5: a tag turned weak", tag, {{"ETag", "W/\"a\""}}, 10, HeadVerdict::Outdated},
      {"RFC 9111 4.3.5: a tag where there was none", {}, tag, 10, HeadVerdict::Outdated},
      {"RFC 9111 4.3.5: validators that do not come are not compared",
       tag,
       {},
       10,
       HeadVerdict::Same},
      {"RFC 9111 4.3.5: the same date", date, date, {}, HeadVerdict::Same},
      {"RFC 9111 4.3.5: another date",
       date,
       {{"Last-Modified", "Sun, 06 Nov 1994 08:49:38 GMT"}},
       {},
       HeadVerdict::Outdated},
      {"RFC 9111 4.3.5: another length", tag, tag, 11, HeadVerdict::Outdated},
      {"RFC 9111 4.3.5: no length", tag, tag, {}, HeadVerdict::Same},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(judge_by_head(response_facts(200, row.stored), 10, response_facts(200, row.head),
                            row.length),
              row.verdict);
  }
}

TEST(Validation, FieldsOfA304) {
  SCOPED_TRACE("RFC 9110 15.4.5");
  const HeadLines lines{{"Content-Type", "a/b"},
                        {"Cache-Control", "max-age=1"},
                        {"Date", kReceivedText},
                        {"Vary", "a"},
                        {"Expires", kHourLater},
                        {"Content-Location", "/x"},
                        {"X", "y"}};
  const std::string common =
      "Cache-Control: max-age=1\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nVary: a\r\n"
      "Expires: Sun, 06 Nov 1994 09:49:37 GMT\r\nContent-Location: /x\r\n";
  HeadLines with_etag = lines;
  with_etag.insert(with_etag.end(), {{"Last-Modified", kDayBefore}, {"ETag", "\"a\""}});
  EXPECT_EQ(not_modified_fields(head(with_etag)).text(), common + "ETag: \"a\"\r\n");
  HeadLines without_etag = lines;
  without_etag.emplace_back("Last-Modified", kDayBefore);
  EXPECT_EQ(not_modified_fields(head(without_etag)).text(),
            common + "Last-Modified: Sat, 05 Nov 1994 08:49:37 GMT\r\n");
}

TEST(Validation, EntityTagComparison) {
  struct Row {
    const char *a, *b;
    bool strong, weak;
  };
  // The table in RFC 9110 8.8.3.2.
  const Row rows[] = {{"W/\"1\"", "W/\"1\"", false, true},
                      {"W/\"1\"", "W/\"2\"", false, false},
                      {"W/\"1\"", "\"1\"", false, true},
                      {"\"1\"", "\"1\"", true, true},
                      {"", "", false, false}};
  for (const Row& row : rows) {
    EXPECT_EQ(matches_strongly(row.a, row.b), row.strong) << row.a << row.b;
    EXPECT_EQ(matches_weakly(row.a, row.b), row.weak) << row.a << row.b;
  }
}

}  // namespace
}  // namespace secondsight::cache::policy
