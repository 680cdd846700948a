#include "cache/purge_list.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cache/tags.h"
#include "tests/cache/cache_fixture.h"

namespace secondsight::cache {
namespace {

constexpr WallTime kNoon{std::chrono::hours{500'000}};
using std::chrono::seconds;

policy::FieldBlock tagged(std::string_view tags) {
  policy::FieldBlock fields;
  if (!tags.empty()) fields.add("Surrogate-Key", tags);
  return fields;
}

log::Location at(std::uint32_t segment, std::uint32_t offset) {
  return {segment, offset, 8};
}

const char* const kKey = "http://a.test/shop/1?x=1";

TEST(PurgeList, ScopesMatchWhatTheySay) {
  struct Row {
    const char* what;
    Purge purge;
    std::string key;
    const char* tags;
    bool matches;
  };
  const auto hard = PurgeKind::Hard;
  const Row rows[] = {
      {"everything", {PurgeScope::Everything, hard}, kKey, "", true},
      {"the URL", {PurgeScope::Url, hard, kKey}, kKey, "", true},
      {"a variant of it", {PurgeScope::Url, hard, kKey}, std::string(kKey) + "\n2:ab", "", true},
      {"a part of that",
       {PurgeScope::Url, hard, kKey},
       std::string(kKey) + "\n@17\n2:ab\n%part",
       "",
       true},
      {"one by a header",
       {PurgeScope::Url, hard, kKey},
       std::string(kKey) + "\n+h1:a=1:b",
       "",
       true},
      {"a longer URL", {PurgeScope::Url, hard, kKey}, std::string(kKey) + "0", "", false},
      {"a shorter URL", {PurgeScope::Url, hard, kKey}, "http://a.test/shop/1", "", false},
      {"a URL is no tag", {PurgeScope::Url, hard, "x"}, kKey, "x", false},
      {"a prefix", {PurgeScope::Prefix, hard, "http://a.test/shop/"}, kKey, "", true},
      {"the whole as a prefix", {PurgeScope::Prefix, hard, kKey}, kKey, "", true},
      {"a longer prefix", {PurgeScope::Prefix, hard, std::string(kKey) + "0"}, kKey, "", false},
      {"another host", {PurgeScope::Prefix, hard, "http://b.test/shop/"}, kKey, "", false},
      {"a prefix is no URL", {PurgeScope::Url, hard, "http://a.test/shop/"}, kKey, "", false},
      {"a prefix ends with the line",
       {PurgeScope::Prefix, hard, std::string(kKey) + "\n2"},
       std::string(kKey) + "\n2:ab",
       "",
       false},
      {"a tag", {PurgeScope::Tag, hard, "b"}, kKey, "a b c", true},
      {"another tag", {PurgeScope::Tag, hard, "b"}, kKey, "a c", false},
      {"no tags", {PurgeScope::Tag, hard, "b"}, kKey, "", false},
      {"case", {PurgeScope::Tag, hard, "B"}, kKey, "b", false},
      {"part of a tag", {PurgeScope::Tag, hard, "b"}, kKey, "bb", false},
  };
  for (const Row& row : rows) {
    for (const PurgeKind kind : {PurgeKind::Hard, PurgeKind::Soft}) {
      SCOPED_TRACE(std::string(row.what) + " " + std::string(to_string(kind)));
      PurgeList list(kSeed);
      Purge purge = row.purge;
      purge.kind = kind;
      const PurgeStamp stamp = list.add(purge, kNoon);
      const auto fields = tagged(row.tags);
      const auto check = [&](const PurgeList::Verdict& verdict) {
        EXPECT_EQ(verdict.is_purged, row.matches && kind == PurgeKind::Hard);
        EXPECT_EQ(verdict.stale_since.has_value(), row.matches && kind == PurgeKind::Soft);
        if (verdict.stale_since) {
          EXPECT_EQ(*verdict.stale_since, kNoon);
        }
      };
      check(list.judge(0, row.key, &fields));
      check(list.judge(at(7, 7'000), row.key, &fields));  // its record is yet to be written
      list.note_written(stamp, at(3, 40));
      check(list.judge(at(3, 32), row.key, &fields));
      EXPECT_TRUE(list.judge(stamp.sequence, row.key, &fields).is_clear());
      EXPECT_TRUE(list.judge(at(3, 40), row.key, &fields).is_clear());
      EXPECT_TRUE(list.judge(at(4, 0), row.key, &fields).is_clear());

      PurgeList recovered(kSeed);  // by a record's fingerprint alone
      recovered.recover(stamp.record, at(3, 40));
      check(recovered.judge(at(3, 32), row.key, &fields));
      EXPECT_TRUE(recovered.judge(at(3, 48), row.key, &fields).is_clear());
    }
  }
}

TEST(PurgeList, WhatIsNotKnownYetIsJudgedByItsKeyAlone) {
  PurgeList list(kSeed);
  list.add({PurgeScope::Tag, PurgeKind::Hard, "b"}, kNoon);
  EXPECT_TRUE(list.judge(0, kKey, nullptr).is_clear());
  list.add({PurgeScope::Prefix, PurgeKind::Hard, "http://a.test/"}, kNoon);
  EXPECT_TRUE(list.judge(0, kKey, nullptr).is_purged);
}

TEST(PurgeList, OnlyWhatIsOlderIsConcerned) {
  PurgeList list(kSeed);
  const auto fields = tagged("a b");
  const auto seen_before = list.sequence();
  const auto first = list.add({PurgeScope::Tag, PurgeKind::Hard, "a"}, kNoon);
  const auto seen_between = list.sequence();
  const auto second = list.add({PurgeScope::Tag, PurgeKind::Hard, "b"}, kNoon);
  EXPECT_TRUE(list.judge(seen_before, kKey, &fields).is_purged);
  EXPECT_TRUE(list.judge(seen_between, kKey, &fields).is_purged);
  EXPECT_TRUE(list.judge(list.sequence(), kKey, &fields).is_clear());
  const auto only_a = tagged("a");
  EXPECT_TRUE(list.judge(seen_between, kKey, &only_a).is_clear());
  list.note_written(first, at(1, 80));
  list.note_written(second, at(2, 40));
  EXPECT_TRUE(list.judge(at(1, 40), kKey, &only_a).is_purged);
  EXPECT_TRUE(list.judge(at(1, 120), kKey, &only_a).is_clear());
  EXPECT_TRUE(list.judge(at(1, 120), kKey, &fields).is_purged);
}

TEST(PurgeList, OfTwoAlikeTheLaterCounts) {
  PurgeList list(kSeed);
  const Purge purge{PurgeScope::Tag, PurgeKind::Hard, "a"};
  const auto fields = tagged("a");
  const auto first = list.add(purge, kNoon);
  const auto second = list.add(purge, kNoon);
  list.note_written(first, at(1, 40));
  EXPECT_TRUE(list.judge(at(1, 80), kKey, &fields).is_purged) << "the later has no place yet";
  list.note_written(second, at(1, 120));
  EXPECT_TRUE(list.judge(at(1, 80), kKey, &fields).is_purged);
  EXPECT_TRUE(list.judge(at(1, 160), kKey, &fields).is_clear());
  EXPECT_EQ(list.stamps(), 1U);
}

TEST(PurgeList, HardAndSoftStandSideBySide) {
  PurgeList list(kSeed);
  const auto fields = tagged("a b");
  const auto seen = list.sequence();
  list.add({PurgeScope::Tag, PurgeKind::Soft, "a"}, kNoon + seconds{2});
  list.add({PurgeScope::Tag, PurgeKind::Soft, "b"}, kNoon + seconds{1});
  EXPECT_EQ(list.judge(seen, kKey, &fields).stale_since, kNoon + seconds{1}) << "the earliest";
  const auto seen_soft = list.sequence();
  list.add({PurgeScope::Tag, PurgeKind::Hard, "a"}, kNoon + seconds{3});
  EXPECT_TRUE(list.judge(seen, kKey, &fields).is_purged);
  EXPECT_TRUE(list.judge(seen_soft, kKey, &fields).is_purged);
  list.add({PurgeScope::Everything, PurgeKind::Soft}, kNoon + seconds{4});
  const auto none = tagged("");
  EXPECT_EQ(list.judge(seen_soft, kKey, &none).stale_since, kNoon + seconds{4});
}

/// Else whoever purges softly again and again never gets rid of anything.
TEST(PurgeList, WhatIsStaleDoesNotBecomeStaleOnceMore) {
  for (const PurgeScope scope : {PurgeScope::Tag, PurgeScope::Everything}) {
    SCOPED_TRACE(to_string(scope));
    PurgeList list(kSeed);
    const Purge purge{scope, PurgeKind::Soft, scope == PurgeScope::Tag ? "a" : ""};
    const auto fields = tagged("a");
    const auto before = list.sequence();
    std::vector<std::uint64_t> seen;
    for (std::uint32_t i = 0; i < 3; ++i) {
      list.note_written(list.add(purge, kNoon + seconds{i}), at(1, 80 + 80 * i));
      seen.push_back(list.sequence());
    }
    EXPECT_EQ(list.judge(before, kKey, &fields).stale_since, kNoon);
    EXPECT_EQ(list.judge(at(1, 40), kKey, &fields).stale_since, kNoon);
    EXPECT_EQ(list.judge(seen[0], kKey, &fields).stale_since, kNoon + seconds{2});
    EXPECT_EQ(list.judge(at(1, 120), kKey, &fields).stale_since, kNoon + seconds{2});
    EXPECT_TRUE(list.judge(seen[2], kKey, &fields).is_clear());
    EXPECT_TRUE(list.judge(at(1, 280), kKey, &fields).is_clear());
    EXPECT_EQ(list.stamps(), 1U);
    list.forget(list.sequence(), 2);
    EXPECT_EQ(list.stamps(), 0U);
  }
}

TEST(PurgeList, EverythingMakesRoomForOthers) {
  PurgeList list(kSeed);
  for (int i = 0; i < 100; ++i)
    list.add({PurgeScope::Url, PurgeKind::Hard, std::to_string(i)}, kNoon);
  EXPECT_EQ(list.stamps(), 100U);
  list.add({PurgeScope::Everything, PurgeKind::Soft}, kNoon);
  EXPECT_EQ(list.stamps(), 101U) << "stale is not gone";
  const auto all = list.add({PurgeScope::Everything, PurgeKind::Hard}, kNoon);
  EXPECT_EQ(list.stamps(), 1U);
  list.note_written(all, at(1, 40));
  EXPECT_TRUE(list.judge(at(1, 80), kKey, nullptr).is_clear())
      << "what was to be written before counts no more";
}

TEST(PurgeList, WhoseTagsCannotAllBeReadGoesWithEachOfThem) {
  const auto fields = tagged(std::string(kTagBytesMax + 1, 'x'));
  for (const PurgeKind kind : {PurgeKind::Hard, PurgeKind::Soft}) {
    PurgeList list(kSeed);
    list.add({PurgeScope::Url, kind, "http://a.test/other"}, kNoon);
    EXPECT_TRUE(list.judge(0, kKey, &fields).is_clear());
    const auto stamp = list.add({PurgeScope::Tag, kind, "other"}, kNoon);
    EXPECT_EQ(list.judge(0, kKey, &fields).is_purged, kind == PurgeKind::Hard);
    EXPECT_EQ(list.judge(0, kKey, &fields).stale_since.has_value(), kind == PurgeKind::Soft);
    list.note_written(stamp, at(1, 40));
    EXPECT_FALSE(list.judge(at(1, 32), kKey, &fields).is_clear());
    EXPECT_TRUE(list.judge(stamp.sequence, kKey, &fields).is_clear());
  }
}

/// No purge is ever lost to the bound: what it concerned is concerned by what took its place.
TEST(PurgeList, BeyondItsBoundTheOlderHalfPurgesEverythingAsOld) {
  constexpr std::size_t kMax = 64;
  PurgeList list(kSeed, kMax);
  std::vector<PurgeStamp> stamps;
  const auto key = [](std::size_t i) { return "http://a.test/" + std::to_string(i); };
  for (std::size_t i = 0; i < 200; ++i) {
    const auto kind = i % 3 == 0 ? PurgeKind::Soft : PurgeKind::Hard;
    stamps.push_back(list.add({PurgeScope::Url, kind, key(i)}, kNoon));
    const auto record = static_cast<std::uint32_t>(8 * i);
    list.note_written(stamps.back(), at(1, record));
    EXPECT_LE(list.stamps(), kMax + 1);
    for (std::size_t j = 0; j <= i; ++j) {
      const bool is_concerned = !list.judge(stamps[j].sequence - 1, key(j), nullptr).is_clear();
      ASSERT_TRUE(is_concerned) << j << " after " << i;
      if (j > 0) {
        const auto place = at(1, static_cast<std::uint32_t>(8 * (j - 1)));
        ASSERT_FALSE(list.judge(place, key(j), nullptr).is_clear()) << j << " after " << i;
      }
    }
    ASSERT_TRUE(list.judge(list.sequence(), key(i), nullptr).is_clear());
    ASSERT_TRUE(list.judge(at(1, record), key(i), nullptr).is_clear());
  }
  EXPECT_GT(list.folds(), 0U);
}

TEST(PurgeList, WhatIsYetToBeWrittenIsNotFolded) {
  constexpr std::size_t kMax = 8;
  PurgeList list(kSeed, kMax);
  for (std::size_t i = 0; i < 2 * kMax; ++i)
    list.add({PurgeScope::Url, PurgeKind::Hard, std::to_string(i)}, kNoon);
  EXPECT_EQ(list.folds(), 0U);
  EXPECT_EQ(list.stamps(), 2 * kMax);
  EXPECT_TRUE(list.judge(0, kKey, nullptr).is_clear());
}

TEST(PurgeList, ForgetsWhatConcernsNothingAnyMore) {
  PurgeList list(kSeed);
  const auto fields = tagged("a");
  const auto seen = list.sequence();
  const auto tag = list.add({PurgeScope::Tag, PurgeKind::Hard, "a"}, kNoon);
  list.note_written(tag, at(3, 40));
  const auto prefix = list.add({PurgeScope::Prefix, PurgeKind::Soft, "http://a.test/"}, kNoon);

  list.forget(tag.sequence, 3);
  EXPECT_EQ(list.stamps(), 2U) << "its segment is there, and so may be what it concerns";
  list.forget(tag.sequence - 1, 4);
  EXPECT_EQ(list.stamps(), 2U) << "memory was not swept after it";
  list.forget(prefix.sequence, 100);
  EXPECT_EQ(list.stamps(), 1U) << "what is not written yet stays";
  EXPECT_TRUE(list.judge(tag.sequence, kKey, nullptr).stale_since);
  EXPECT_TRUE(list.judge(seen, kKey, &fields).is_purged) << "from before what was forgotten";
  EXPECT_TRUE(list.judge(seen, "http://b.test/", nullptr).is_purged) << "whatever it is";
  EXPECT_TRUE(list.judge(tag.sequence, "http://b.test/", nullptr).is_clear());
  list.note_written(prefix, at(5, 40));
  list.forget(prefix.sequence, 6);
  EXPECT_EQ(list.stamps(), 0U);
  EXPECT_TRUE(list.judge(prefix.sequence, kKey, &fields).is_clear());
}

/// A disk may be opened late: what it remembers is older than all that this process purged.
TEST(PurgeList, WhatIsRecoveredConcernsTheDiskAlone) {
  const auto record_of = [](Purge purge) { return PurgeList(kSeed).add(purge, kNoon).record; };
  const auto tag = record_of({PurgeScope::Tag, PurgeKind::Hard, "a"});
  const auto fields = tagged("a");
  PurgeList list(kSeed);
  const auto seen = list.sequence();
  list.recover(tag, at(5, 40));
  EXPECT_TRUE(list.judge(seen, kKey, &fields).is_clear()) << "memory is younger";
  EXPECT_TRUE(list.judge(at(5, 32), kKey, &fields).is_purged);
  list.recover(tag, at(4, 40));
  EXPECT_TRUE(list.judge(at(5, 32), kKey, &fields).is_purged) << "the later counts";

  const auto pending = list.add({PurgeScope::Tag, PurgeKind::Hard, "a"}, kNoon);
  const auto other = list.add({PurgeScope::Tag, PurgeKind::Hard, "b"}, kNoon);
  list.recover(tag, at(6, 40));
  list.recover(record_of({PurgeScope::Everything, PurgeKind::Hard}), at(6, 80));
  EXPECT_TRUE(list.judge(at(9, 40), kKey, &fields).is_purged) << "not written yet";
  EXPECT_TRUE(list.judge(seen, kKey, &fields).is_purged);
  const auto tagged_b = tagged("b");
  EXPECT_TRUE(list.judge(at(9, 40), kKey, &tagged_b).is_purged);
  list.note_written(pending, at(7, 40));
  list.note_written(other, at(7, 80));
  EXPECT_TRUE(list.judge(at(7, 32), kKey, &fields).is_purged);
  EXPECT_TRUE(list.judge(at(7, 48), kKey, &fields).is_clear());
  EXPECT_TRUE(list.judge(at(6, 72), kKey, nullptr).is_purged) << "everything";
  EXPECT_TRUE(list.judge(at(6, 88), kKey, nullptr).is_clear());
}

TEST(PurgeList, WhereTheLogWasEmptiedNothingIsOlder) {
  PurgeList list(kSeed);
  const auto seen = list.sequence();
  const auto stamp = list.add({PurgeScope::Url, PurgeKind::Hard, kKey}, kNoon);
  EXPECT_TRUE(list.judge(at(9, 40), kKey, nullptr).is_purged);
  list.note_log_emptied();
  EXPECT_TRUE(list.judge(at(9, 40), kKey, nullptr).is_clear());
  EXPECT_TRUE(list.judge(seen, kKey, nullptr).is_purged) << "in memory it still is";
  list.note_written(stamp, at(9, 80));
  EXPECT_TRUE(list.judge(at(9, 40), kKey, nullptr).is_clear()) << "its record is only a word";
}

/// Recovered ones have no order but that of their places.
TEST(PurgeList, AStartWithTooManyFoldsTheOlderHalf) {
  PurgeList source(kSeed);
  PurgeList list(kSeed, 8);
  for (std::uint32_t i = 0; i < 9; ++i) {
    const Purge purge{PurgeScope::Url, PurgeKind::Hard, std::to_string(i)};
    list.recover(source.add(purge, kNoon).record, at(1, 80 * i));
  }
  EXPECT_EQ(list.folds(), 1U);
  EXPECT_TRUE(list.judge(at(1, 0), kKey, nullptr).is_purged);
  EXPECT_TRUE(list.judge(at(1, 80 * 5), kKey, nullptr).is_clear());
}

TEST(PurgeList, RecordsHaveGoldenFingerprints) {
  PurgeList list(kSeed);
  const auto record = [&](Purge purge) {
    return list.add(purge, WallTime{seconds{1'700'000'000}}).record;
  };
  constexpr std::uint64_t kTime = 1'700'000'000'000;
  const auto everything = record({PurgeScope::Everything, PurgeKind::Hard});
  EXPECT_EQ(everything.high, kTime);
  EXPECT_EQ(everything.low, 0U);
  const auto tag = record({PurgeScope::Tag, PurgeKind::Soft, "a"});
  EXPECT_EQ(tag.high, std::uint64_t{0b011} << 61U | kTime);
  EXPECT_EQ(tag.low, kSeed.fingerprint_of("a").low);
  const auto prefix = record({PurgeScope::Prefix, PurgeKind::Hard, "http://a.test/"});
  EXPECT_EQ(prefix.high, std::uint64_t{0b100} << 61U | std::uint64_t{14} << 45U | kTime);
  const auto url = record({PurgeScope::Url, PurgeKind::Soft, "http://a.test/"});
  EXPECT_EQ(url.high, std::uint64_t{0b111} << 61U | kTime);
  EXPECT_EQ(url.low, prefix.low);
}

TEST(PurgeList, CountsItsMemory) {
  PurgeList list(kSeed);
  const auto before = list.memory_bytes();
  for (int i = 0; i < 10'000; ++i)
    list.add({PurgeScope::Prefix, PurgeKind::Hard, std::string(static_cast<std::size_t>(i), 'x')},
             kNoon);
  EXPECT_GT(list.memory_bytes(), before + 10'000 * 56);
}

}  // namespace
}  // namespace secondsight::cache
