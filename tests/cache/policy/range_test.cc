#include "cache/policy/range.h"

#include <ostream>
#include <random>

#include <gtest/gtest.h>

#include "tests/cache/policy/heads.h"

namespace secondsight::cache::policy {
namespace {

constexpr const char* kDayBefore = "Sat, 05 Nov 1994 08:49:37 GMT";

std::string name(const std::variant<WholeBody, ByteRanges, NotSatisfiable>& answer) {
  if (std::holds_alternative<WholeBody>(answer)) return "whole";
  if (std::holds_alternative<NotSatisfiable>(answer)) return "416";
  std::string text;
  for (const ByteRange& range : std::get<ByteRanges>(answer)) {
    if (!text.empty()) text += " ";
    text += std::to_string(range.first) + "+" + std::to_string(range.size);
  }
  return text;
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
    EXPECT_EQ(name(requested_ranges(head({{"Range", row.range}}), {}, row.complete_bytes)),
              row.answer);
  }
  EXPECT_EQ(name(requested_ranges(head({}), {}, 1000)), "whole");
  EXPECT_EQ(
      name(requested_ranges(head({{"Range", "bytes=0-0"}, {"Range", "bytes=1-1"}}), {}, 1000)),
      "whole");
}

TEST(Range, SeveralRangesOfAStoredBody) {
  struct Row {
    const char* clause;
    const char* range;
    const char* answer;
  };
  const Row rows[] = {
      {"RFC 9110 14.1.2: in the order asked", "bytes=500-599, 0-99, -100", "500+100 0+100 900+100"},
      {"RFC 9110 14.1.2: empty members", "bytes=0-9,,500-509,", "0+10 500+10"},
      {"RFC 9110 14.1.1: one that is invalid spoils the set", "bytes=0-9,9-8", "whole"},
      {"RFC 9110 14.2: one that is unreadable spoils the set", "bytes=0-9,x", "whole"},
      {"RFC 9110 15.5.17: those that cannot be satisfied are left out", "bytes=0-9,5000-", "0+10"},
      {"RFC 9110 15.5.17: none can be", "bytes=1000-,2000-3000,-0", "416"},
      {"RFC 9110 15.3.7.2: overlapping ranges become one", "bytes=500-699,0-9,600-799",
       "500+300 0+10"},
      {"RFC 9110 15.3.7.2: one inside another", "bytes=0-999,5-6,7-8", "0+1000"},
      {"RFC 9110 15.3.7.2: ranges that touch", "bytes=0-9,10-19", "0+20"},
      {"RFC 9110 15.3.7.2: a gap smaller than a part's head", "bytes=0-9,90-99", "0+100"},
      {"RFC 9110 15.3.7.2: a gap that is worth it", "bytes=0-9,91-100", "0+10 91+10"},
      {"RFC 9110 15.3.7.2: a later one joins two", "bytes=0-99,300-399,50-350", "0+400"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(name(requested_ranges(head({{"Range", row.range}}), {}, 1000)), row.answer);
  }
  std::string many = "bytes=0-0";
  for (std::size_t i = 1; i < kRangesMax; ++i) many += "," + std::to_string(i * 1000) + "-";
  EXPECT_NE(name(requested_ranges(head({{"Range", many}}), {}, 100'000)), "whole");
  EXPECT_EQ(name(requested_ranges(head({{"Range", many + ",0-0"}}), {}, 100'000)), "whole");
}

TEST(Range, ContentRangeOfA206) {
  struct Row {
    const char* clause;
    const char* text;
    std::optional<ContentRange> range;
  };
  const Row rows[] = {
      {"RFC 9110 14.4: the usual form", "bytes 0-499/1234", ContentRange{{0, 500}, 1234}},
      {"RFC 9110 14.4: to the end", "bytes 1233-1233/1234", ContentRange{{1233, 1}, 1234}},
      {"RFC 9110 14.4: complete length unknown", "bytes 5-9/*", ContentRange{{5, 5}, {}}},
      {"RFC 9110 14.4: the unit in any case", "Bytes 5-9/10", ContentRange{{5, 5}, 10}},
      {"RFC 9110 14.4: unsatisfied", "bytes */1234", {}},
      {"RFC 9110 14.4: last before first", "bytes 5-4/10", {}},
      {"RFC 9110 14.4: beyond the complete length", "bytes 5-10/10", {}},
      {"RFC 9110 14.4: another unit", "items 0-1/2", {}},
      {"RFC 9110 14.4: no complete length", "bytes 0-1", {}},
      {"RFC 9110 14.4: signs", "bytes +0-1/2", {}},
      {"RFC 9110 14.4: blanks", "bytes 0 - 1/2", {}},
      {"RFC 9110 14.4: beyond 64 bits", "bytes 0-99999999999999999999/*", {}},
      {"RFC 9110 14.4: with an equals sign", "bytes=0-1/2", {}},
      {"RFC 9110 14.4: empty", "", {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(parse_content_range(row.text), row.range);
  }
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
    EXPECT_EQ(name(requested_ranges(request, response_facts(200, row.stored), 10)),
              row.holds ? "0+1" : "whole");
    const FieldBlock beyond = head({{"Range", "bytes=10-"}, {"If-Range", row.condition}});
    EXPECT_EQ(name(requested_ranges(beyond, response_facts(200, row.stored), 10)),
              row.holds ? "416" : "whole");
  }
}

TEST(Range, EveryRangeLiesInsideTheBodyAndApart) {
  const auto spec_of = [](int first, int last) {
    return (first < 0 ? "" : std::to_string(first)) + "-" + (last < 0 ? "" : std::to_string(last));
  };
  std::mt19937 random(20261130);
  const auto position = [&random](int max) {
    return static_cast<int>(random() % (static_cast<unsigned>(max) + 2)) - 1;
  };
  for (int round = 0; round < 4000; ++round) {
    const int complete = static_cast<int>(random() % 1000);
    std::string set = spec_of(position(complete), position(complete));
    for (auto more = random() % 6; more > 0; --more)
      set += "," + spec_of(position(complete), position(complete));
    SCOPED_TRACE(set);
    const auto bytes = static_cast<std::uint64_t>(complete);
    const auto answer = requested_ranges(head({{"Range", "bytes=" + set}}), {}, bytes);
    const auto* ranges = std::get_if<ByteRanges>(&answer);
    if (ranges == nullptr) continue;
    ASSERT_FALSE(ranges->empty());
    for (const ByteRange& range : *ranges) {
      EXPECT_GT(range.size, 0u);
      EXPECT_LE(range.end(), bytes);
      for (const ByteRange& other : *ranges)
        EXPECT_TRUE(&range == &other || range.end() < other.first || other.end() < range.first);
    }
  }
}

}  // namespace
}  // namespace secondsight::cache::policy
