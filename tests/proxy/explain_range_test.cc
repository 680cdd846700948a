// What explain says of Range requests, and of parts that are kept.
#include <gtest/gtest.h>

#include "tests/proxy/explain_fixture.h"

namespace secondsight::proxy {
namespace {

constexpr const char* kFresh = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n";
constexpr const char* kNoTag = "Cache-Control: max-age=60\r\n";

TEST(Explain, WhatARangeGets) {
  struct Part {
    const char* request;
    const char* response;
    int age;
    const char* range;
    const char* asks_for;  // null: nobody
    Change change = {};
  };
  constexpr const char* kAsItComes =
      "the whole is asked for, and this part served from it as it comes; alone if it begins more "
      "than 8 MiB ahead";
  for (const Part& row : {
           // Of what is stored: 1000 bytes.
           Part{"Range: bytes=0-9\r\n", kFresh, 1, "206: bytes 0-9 of 1000", nullptr},
           Part{"Range: bytes=-5\r\n", kFresh, 1, "206: bytes 995-999 of 1000", nullptr},
           Part{"Range: bytes=500-,0-9\r\n", kFresh, 1, "206 multipart: bytes 500-999, 0-9 of 1000",
                nullptr},
           Part{"Range: bytes=1000-\r\n", kFresh, 1,
                "416: nothing of it lies within the 1000 bytes", nullptr},
           Part{"Range: lines=1-2\r\n", kFresh, 1,
                "200, the whole: a Range like this one is not served in parts", nullptr},
           Part{"Range: bytes=0-9\r\nIf-Range: \"v2\"\r\n", kFresh, 1,
                "200, the whole: If-Range names another version than the stored one", nullptr},
           Part{"Range: bytes=0-9\r\nIf-Range: \"v1\"\r\n", kFresh, 1, "206: bytes 0-9 of 1000",
                nullptr},
           Part{"Range: bytes=0-9\r\nIf-None-Match: \"v1\"\r\n", kFresh, 1,
                "none of it: answered 304", nullptr},
           Part{"Range: bytes=0-9\r\n", kFresh, 1, "404, the whole: there are parts of a 200 only",
                nullptr,
                [](Situation& s) {
                  auto head = std::make_shared<cache::ObjectHead>(*s.head);
                  head->status = 404;
                  s.head = std::move(head);
                }},
           Part{"Range: bytes=0-9\r\n", kFresh, 1, "ignored: it counts for GET alone", nullptr,
                [](Situation& s) { s.request.method = "HEAD"; }},
           Part{"Range: bytes=0-9\r\n", kFresh, 1, "", nullptr,
                [](Situation& s) { s.request.method = "POST"; }},
           // Of what is stale.
           Part{"Range: bytes=0-9\r\n", kFresh, 70,
                "validated without it; of what is stored: 206: bytes 0-9 of 1000", "whole"},
           Part{"Range: bytes=0-9\r\n", kNoTag, 70, kAsItComes, "whole"},
           Part{"Range: bytes=0-9\r\nAuthorization: x\r\n", kNoTag, 70,
                "the origin is asked for that part alone: what this request gets is for it alone",
                "part"},
           // Of what is not stored.
           Part{"Range: bytes=0-9\r\n", "", 0,
                "the origin is asked for that part alone: the whole is fetched for a part at its "
                "second sighting",
                "part"},
           Part{"Range: bytes=0-9\r\n", "", 0,
                "the origin is asked for that part alone: the policy writes nothing", "part",
                [](Situation& s) { s.verdict = Verdict::Never; }},
           Part{"Range: bytes=0-9\r\n", "", 0,
                "the origin is asked for that part alone: the whole was uncacheable lately", "part",
                [](Situation& s) {
                  s.verdict = Verdict::Repeat;
                  s.is_uncacheable = true;
                }},
           Part{"Range: bytes=0-9\r\n", "", 0, kAsItComes, "whole", on_repeat},
           Part{"Range: bytes=0-9\r\n", "", 0, kAsItComes, "whole",
                [](Situation& s) { s.is_being_fetched = true; }},
           Part{"Range: bytes=-9\r\n", "", 0, kAsItComes, "whole", on_repeat},
           Part{"Range: bytes=8388608-8388609\r\n", "", 0, kAsItComes, "whole", on_repeat},
           Part{"Range: bytes=8388609-8388609\r\n", "", 0,
                "the whole is asked for, and this part alone behind it: it begins more than 8 MiB "
                "ahead of what has come",
                "whole-then-part", on_repeat},
           Part{"Range: bytes=8388609-8388609\r\nIf-Range: \"v1\"\r\n", "", 0, kAsItComes, "whole",
                on_repeat},
           Part{"Range: bytes=8388609-8388609\r\n", "", 0, kAsItComes, "whole",
                [](Situation& s) { s.is_being_fetched = true; }},
           Part{"Range: bytes=500-,0-9\r\n", "", 0,
                "the whole is asked for, and this part alone behind it: it is several in another "
                "order than the body",
                "whole-then-part", on_repeat},
           Part{
               "Range: bytes=262145-\r\n", "", 0,
               "the whole is asked for, and this part alone behind it: it begins more than 256 KiB "
               "ahead of what has come",
               "whole-then-part",
               [](Situation& s) {
                 s.has_memory_tier = false;
                 s.verdict = Verdict::Repeat;
                 s.sighting = Detail::NoDisk;
               }},
           // Of what is kept in parts, of 1000 bytes.
           Part{"Range: bytes=195-199,100-109\r\n", "", 0,
                "206 multipart: bytes 195-199, 100-109 of 1000", nullptr, with_part(100, 199)},
           Part{"Range: bytes=190-200\r\n", "", 0, kAsItComes, "whole",
                both(with_part(100, 199), on_repeat)},
           Part{"Range: bytes=190-200\r\n", "", 0,
                "the rest is asked for, and this part served from the whole as it comes; alone if "
                "it begins more than 8 MiB ahead",
                "rest", both(with_part(0, 199), on_repeat)},
           Part{"Range: bytes=500-,0-9\r\n", "", 0,
                "the rest is asked for, and this part alone behind it: it is several in another "
                "order than the body",
                "rest-then-part", both(with_part(0, 199), on_repeat)},
           Part{"Range: bytes=190-200\r\n", "", 0, kAsItComes, "whole",
                both(with_part(0, 199), [](Situation& s) { s.is_being_fetched = true; })},
       }) {
    Situation s = situation(row.request, row.response, row.age);
    s.body_bytes = 1000;
    if (row.change) row.change(s);
    const Explanation explanation = explain(s);
    const auto* range = explanation.facts.at("next").at("range").if_object();
    EXPECT_EQ(words_of(explanation, "range"), row.range) << row.request;
    if (row.asks_for != nullptr) {
      ASSERT_NE(range, nullptr) << row.request;
      EXPECT_EQ(range->at("asks_for"), row.asks_for) << row.request << row.range;
    } else if (range != nullptr) {
      EXPECT_TRUE(range->at("asks_for").is_null()) << row.request;
    }
  }
  const Explanation parts = [] {
    Situation s = situation("Range: bytes=500-,0-9\r\n", kFresh, 1);
    s.body_bytes = 1000;
    return explain(s);
  }();
  EXPECT_EQ(boost::json::serialize(parts.facts.at("next").at("range")),
            R"({"status":206,"parts":[{"first":500,"last":999},{"first":0,"last":9}],)"
            R"("complete_bytes":1000,"asks_for":null})");
}

TEST(Explain, WhatOfAPartIsKept) {
  Situation s = situation("", "", 10);
  EXPECT_EQ(words_of(explain(s), "part"), "");
  EXPECT_TRUE(explain(s).facts.at("part").is_null());
  with_part(100, 199)(s);
  EXPECT_EQ(words_of(explain(s), "part"),
            "bytes 100-199 of 1000 in memory, entity tag \"v1\", fresh until Sun, 06 Nov 1994 "
            "08:50:37 GMT");
  EXPECT_EQ(boost::json::serialize(explain(s).facts.at("part")),
            R"({"first":100,"last":199,"complete_bytes":1000,"entity_tag":"\"v1\"",)"
            R"("is_fresh":true,"seconds_left":50,"fresh_until":"Sun, 06 Nov 1994 08:50:37 GMT"})");
  s.now += Seconds{60};
  EXPECT_EQ(words_of(explain(s), "part"),
            "bytes 100-199 of 1000 in memory, entity tag \"v1\", stale since Sun, 06 Nov 1994 "
            "08:50:37 GMT");
}

TEST(Explain, ABeginningIsCompleted) {
  Situation s = situation("", "", 10);
  s.tags = {"\"a\""};
  with_part(0, 199)(s);
  EXPECT_EQ(words_of(explain(s), "rest"),
            "asked for with Range: bytes=200-, If-Range: \"v1\": the beginning is kept");
  EXPECT_EQ(boost::json::serialize(explain(s).facts.at("next").at("completes")),
            R"({"range":"bytes=200-","if_range":"\"v1\""})");
  EXPECT_EQ(words_of(explain(s), "names"), "") << "one or the other";
  for (const Change& change :
       {with_part(1, 199), Change([](Situation& t) { t.is_being_fetched = true; }),
        Change([](Situation& t) { t.is_uncacheable = true; }),
        Change([](Situation& t) { t.request.fields = fields("Range: bytes=0-500\r\n"); }),
        Change([](Situation& t) { t.head = situation("", kNoTag, 70).head; })}) {
    Situation changed = s;
    change(changed);
    EXPECT_EQ(words_of(explain(changed), "rest"), "");
    EXPECT_TRUE(explain(changed).facts.at("next").at("completes").is_null());
  }
}

TEST(Explain, APartFarAheadOfABeginningCountsFromItsEnd) {
  constexpr std::uint64_t kBytes = 1U << 30;
  for (const std::uint64_t first : {200U + (8U << 20), 201U + (8U << 20)}) {
    Situation s = situation("Range: bytes=" + std::to_string(first) + "-\r\n", "", 10);
    both(with_part(0, 199), on_repeat)(s);
    s.part->range.complete_bytes = kBytes;
    const Explanation explanation = explain(s);
    const auto& range = explanation.facts.at("next").at("range");
    EXPECT_EQ(range.at("asks_for"), first == 200U + (8U << 20) ? "rest" : "rest-then-part");
  }
}

}  // namespace
}  // namespace secondsight::proxy
