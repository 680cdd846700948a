#include "cache/policy/range.h"

#include <ostream>

#include <gtest/gtest.h>

#include "tests/cache/policy/heads.h"

namespace secondsight::cache::policy {
namespace {

constexpr const char* kDayBefore = "Sat, 05 Nov 1994 08:49:37 GMT";

std::string name(const std::variant<WholeBody, ByteRange, NotSatisfiable>& answer) {
  if (std::holds_alternative<WholeBody>(answer)) return "whole";
  if (std::holds_alternative<NotSatisfiable>(answer)) return "416";
  const ByteRange range = std::get<ByteRange>(answer);
  return std::to_string(range.first) + "+" + std::to_string(range.size);
}

TEST(Range, SingleRangesOfAStoredBody) {
  struct Row {
    const char* clause;
    const char* range;
    std::uint64_t complete_bytes;
    const char* answer;
  };
  const Row rows[] = {
      {"RFC 9110 14.1.2: first and last", "bytes=0-499", 1000, "0+500"},
      {"RFC 9110 14.1.2: one byte", "bytes=0-0", 1000, "0+1"},
      {"RFC 9110 14.1.2: the last byte", "bytes=999-999", 1000, "999+1"},
      {"RFC 9110 14.1.2: open end", "bytes=500-", 1000, "500+500"},
      {"RFC 9110 14.1.2: last beyond the end", "bytes=500-5000", 1000, "500+500"},
      {"RFC 9110 14.1.2: last beyond 64 bits", "bytes=500-99999999999999999999999", 1000,
       "500+500"},
      {"RFC 9110 14.1.2: suffix", "bytes=-1", 1000, "999+1"},
      {"RFC 9110 14.1.2: suffix longer than the body", "bytes=-5000", 1000, "0+1000"},
      {"RFC 9110 14.1: the unit in any case", "BYTES=0-0", 1000, "0+1"},
      {"RFC 9110 5.6.1: empty members", "bytes=, 0-0 ,", 1000, "0+1"},
      {"RFC 9110 15.5.17: first at the end", "bytes=1000-", 1000, "416"},
      {"RFC 9110 15.5.17: first beyond 64 bits", "bytes=99999999999999999999999-", 1000, "416"},
      {"RFC 9110 15.5.17: empty suffix", "bytes=-0", 1000, "416"},
      {"RFC 9110 15.5.17: an empty body", "bytes=0-", 0, "416"},
      {"RFC 9110 14.1.2: suffix of an empty body", "bytes=-5", 0, "whole"},
      {"RFC 9110 14.1.1: last before first is invalid", "bytes=5-4", 1000, "whole"},
      {"RFC 9110 14.2: several ranges", "bytes=0-0,5-6", 1000, "whole"},
      {"RFC 9110 14.2: unknown unit", "items=0-5", 1000, "whole"},
      {"RFC 9110 14.2: unreadable", "bytes=a-b", 1000, "whole"},
      {"RFC 9110 14.2: no dash", "bytes=5", 1000, "whole"},
      {"RFC 9110 14.2: only a dash", "bytes=-", 1000, "whole"},
      {"RFC 9110 14.2: signs", "bytes=+1-2", 1000, "whole"},
      {"RFC 9110 14.2: two dashes", "bytes=1-2-3", 1000, "whole"},
      {"RFC 9110 14.2: spaces inside", "bytes=1 - 2", 1000, "whole"},
      {"RFC 9110 14.2: no range", "bytes=", 1000, "whole"},
      {"RFC 9110 14.2: no unit", "0-5", 1000, "whole"},
      {"RFC 9110 14.2: empty", "", 1000, "whole"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(name(requested_range(head({{"Range", row.range}}), {}, row.complete_bytes)),
              row.answer);
  }
  EXPECT_EQ(name(requested_range(head({}), {}, 1000)), "whole");
  EXPECT_EQ(name(requested_range(head({{"Range", "bytes=0-0"}, {"Range", "bytes=1-1"}}), {}, 1000)),
            "whole");
}

TEST(Range, IfRange) {
  struct Row {
    const char* clause;
    const char* condition;
    HeadLines stored;
    bool holds;
  };
  const HeadLines strong_date{{"Last-Modified", kDayBefore}, {"Date", kReceivedText}};
  const Row rows[] = {
      {"RFC 9110 13.1.5: equal strong tags", "\"a\"", {{"ETag", "\"a\""}}, true},
      {"RFC 9110 13.1.5: different tags", "\"b\"", {{"ETag", "\"a\""}}, false},
      {"RFC 9110 13.1.5: a weak tag never holds", "W/\"a\"", {{"ETag", "W/\"a\""}}, false},
      {"RFC 9110 13.1.5: no stored tag", "\"a\"", {}, false},
      {"RFC 9110 13.1.5: no list", "\"a\", \"b\"", {{"ETag", "\"a\""}}, false},
      {"RFC 9110 13.1.5: exactly that date", kDayBefore, strong_date, true},
      {"RFC 9110 13.1.5: that date in another form", "Sat Nov  5 08:49:37 1994", strong_date, true},
      {"RFC 9110 13.1.5: a later date is no match", kReceivedText.data(), strong_date, false},
      {"RFC 9110 8.8.2.2: a date is weak without Date",
       kDayBefore,
       {{"Last-Modified", kDayBefore}},
       false},
      {"RFC 9110 8.8.2.2: a date is weak within its second",
       kDayBefore,
       {{"Last-Modified", kDayBefore}, {"Date", kDayBefore}},
       false},
      {"RFC 9110 13.1.5: no stored date", kDayBefore, {{"Date", kReceivedText}}, false},
      {"RFC 9110 13.1.5: unreadable", "yesterday", strong_date, false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    const FieldBlock request = head({{"Range", "bytes=0-0"}, {"If-Range", row.condition}});
    EXPECT_EQ(name(requested_range(request, response_facts(200, row.stored), 10)),
              row.holds ? "0+1" : "whole");
    const FieldBlock beyond = head({{"Range", "bytes=10-"}, {"If-Range", row.condition}});
    EXPECT_EQ(name(requested_range(beyond, response_facts(200, row.stored), 10)),
              row.holds ? "416" : "whole");
  }
}

TEST(Range, EveryRangeLiesInsideTheBody) {
  for (std::uint64_t complete = 0; complete < 6; ++complete)
    for (int first = -1; first < 8; ++first)
      for (int last = -1; last < 8; ++last) {
        const std::string spec =
            (first < 0 ? "" : std::to_string(first)) + "-" + (last < 0 ? "" : std::to_string(last));
        const auto answer = requested_range(head({{"Range", "bytes=" + spec}}), {}, complete);
        if (const auto* range = std::get_if<ByteRange>(&answer)) {
          EXPECT_GT(range->size, 0u) << spec;
          EXPECT_LE(range->first + range->size, complete) << spec;
        }
      }
}

}  // namespace
}  // namespace secondsight::cache::policy
