#include "cache/policy/http_date.h"

#include <gtest/gtest.h>

#include "tests/cache/policy/heads.h"

namespace secondsight::cache::policy {
namespace {

using namespace std::chrono;

constexpr WallTime at(int y, unsigned m, unsigned d, int h, int min, int s) {
  return WallTime{sys_days{year{y} / month{m} / day{d}}} + hours{h} + minutes{min} + seconds{s};
}
constexpr WallTime kNow = at(2026, 6, 15, 12, 0, 0);

TEST(HttpDate, ThreeForms) {
  struct Row {
    const char* clause;
    const char* text;
    WallTime time;
  };
  const Row rows[] = {
      {"RFC 9110 5.6.7: IMF-fixdate", "Sun, 06 Nov 1994 08:49:37 GMT", kReceived},
      {"RFC 9110 5.6.7: rfc850-date", "Sunday, 06-Nov-94 08:49:37 GMT", kReceived},
      {"RFC 9110 5.6.7: asctime-date", "Sun Nov  6 08:49:37 1994", kReceived},
      {"RFC 9110 5.6.7: asctime, two-digit day", "Wed Nov 16 08:49:37 1994",
       at(1994, 11, 16, 8, 49, 37)},
      {"RFC 9111 4.2: any case", "sUN, 06 nOV 1994 08:49:37 gmt", kReceived},
      {"RFC 9110 5.6.7: two digits, 24 years ahead", "Thursday, 18-Aug-50 02:01:18 GMT",
       at(2050, 8, 18, 2, 1, 18)},
      {"RFC 9110 5.6.7: two digits, exactly 50 years ahead", "Monday, 15-Jun-76 12:00:00 GMT",
       at(2076, 6, 15, 12, 0, 0)},
      {"RFC 9110 5.6.7: two digits, more than 50 years ahead", "Tuesday, 15-Jun-76 12:00:01 GMT",
       at(1976, 6, 15, 12, 0, 1)},
      {"RFC 9110 5.6.7: two digits, leap day", "Tuesday, 29-Feb-00 00:00:00 GMT",
       at(2000, 2, 29, 0, 0, 0)},
      {"after 32 bits of seconds", "Tue, 19 Jan 2038 14:14:08 GMT", at(2038, 1, 19, 14, 14, 8)},
      {"far future", "Fri, 31 Dec 9999 23:59:59 GMT", at(9999, 12, 31, 23, 59, 59)},
      {"before 1970", "Thu, 01 Jan 1953 00:00:00 GMT", at(1953, 1, 1, 0, 0, 0)},
      {"RFC 9110 5.6.7: leap second", "Sat, 31 Dec 2016 23:59:60 GMT", at(2017, 1, 1, 0, 0, 0)},
      {"RFC 9111 4.2: any case, the old forms", "SUNDAY, 06-NOV-94 08:49:37 gmt", kReceived},
      {"RFC 9110 5.6.7: a leap day of four digits", "Tue, 29 Feb 2000 00:00:00 GMT",
       at(2000, 2, 29, 0, 0, 0)},
      {"a weekday that is not the date's", "Mon, 06 Nov 1994 08:49:37 GMT", kReceived},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(parse_http_date(row.text, kNow), row.time);
  }
}

TEST(HttpDate, EverythingElseIsInvalid) {
  struct Row {
    const char* clause;
    std::vector<const char*> texts;
  };
  const Row rows[] = {
      {"RFC 9111 5.3: no date at all", {"", "0", "-1", "now", "784111777"}},
      {"RFC 9111 4.2: another zone, or none",
       {"Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 AEST",
        "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun Nov  6 08:49:37 1994 GMT"}},
      {"RFC 9110 5.6.7: years of another form",
       {"Sun, 06 Nov 94 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sunday, 06 Nov 94 08:49:37 GMT", "Sun Nov 06 08:49:37 94"}},
      {"RFC 9110 5.6.7: blanks",
       {"Sun,  06 Nov 1994 08:49:37 GMT", "Sun, 06  Nov  1994 08:49:37 GMT",
        "Sun,06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ",
        " Sun, 06 Nov 1994 08:49:37 GMT", "Sun Nov 6 08:49:37 1994"}},
      {"RFC 9110 5.6.7: separators",
       {"Sun 06 Nov 1994 08:49:37 GMT", "Sun, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08.49.37 GMT"}},
      {"RFC 9110 5.6.7: digits",
       {"Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 0x Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT"}},
      {"RFC 9110 5.6.7: no such day or time",
       {"Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT",
        "Mon, 29 Feb 1993 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT"}},
      {"RFC 9110 5.6.7: no such name",
       {"Sxn, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nvo 1994 08:49:37 GMT",
        "06 Nov 1994 08:49:37 GMT"}},
      {"RFC 9110 5.6.7: two dates",
       {"Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT"}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    for (const char* text : row.texts) EXPECT_EQ(parse_http_date(text, kNow), std::nullopt) << text;
  }
}

TEST(HttpDate, NoPrefixOfADateIsADate) {
  for (const std::string whole : {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                                  "Sun Nov  6 08:49:37 1994"})
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_EQ(parse_http_date(whole.substr(0, size), kNow), std::nullopt)
          << whole.substr(0, size);
}

TEST(HttpDate, FormatsAndReadsBack) {
  EXPECT_EQ(format_http_date(kReceived), kReceivedText);
  EXPECT_EQ(format_http_date(kReceived + milliseconds{999}), kReceivedText);
  for (WallTime time = at(1970, 1, 1, 0, 0, 0); time < at(2100, 1, 1, 0, 0, 0);
       time += hours{24 * 37} + seconds{3607})
    EXPECT_EQ(parse_http_date(format_http_date(time), kNow), time);
}

}  // namespace
}  // namespace secondsight::cache::policy
