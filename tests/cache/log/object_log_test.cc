#include "cache/log/object_log.h"

#include <algorithm>
#include <set>

#include "cache/log/record_format.h"
#include "cache/log/segment_format.h"
#include "config/units.h"
#include "tests/cache/log/file_system_fixture.h"

namespace secondsight::cache::log {
namespace {

namespace errc = boost::system::errc;
using test::body_of;
using test::ignore_reclaimed;
using test::ignore_recovered;
using test::open_log;
using test::read_all;
using test::TestIndex;
using test::TestRecord;
using test::version_read;

class ObjectLogTest : public test::OnEveryFileSystem {
 protected:
  std::unique_ptr<ObjectLog> open(std::uint32_t segment_bytes, std::uint32_t segments) {
    index_ = {};
    auto log = open_log(files(), segment_bytes, segments, index_.recorder());
    EXPECT_OK(log);
    return std::move(*log);
  }
  Location append(ObjectLog& log, const TestRecord& record) {
    auto location = log.append(record.view, index_.reclaimer());
    EXPECT_OK(location);
    index_.put(record.view.fingerprint, record.view.kind, *location);
    return *location;
  }
  TestIndex index_;
};
INSTANTIATE_ON_EVERY_FILE_SYSTEM(ObjectLogTest);
INSTANTIATE_ON_SPARSE_FILES(ObjectLogTest);

TEST_P(ObjectLogTest, ReadsBackWhatWasAppendedAtEveryBoundary) {
  auto log = open(1_MiB * 16, 4);
  const std::size_t part = log->part_body_bytes_max();
  ASSERT_EQ(part, 4_MiB);
  const std::size_t sizes[] = {0,      1,      7,       8,       9,       4'095,    65'535, 65'536,
                               65'537, 69'000, 131'071, 131'072, 131'073, part - 1, part};
  std::vector<Location> places;
  for (std::size_t i = 0; i < std::size(sizes); ++i)
    places.push_back(append(*log, TestRecord(i, 1, sizes[i])));
  EXPECT_OK(log->close());
  for (const bool is_reopened : {false, true}) {
    if (is_reopened) log = open(1_MiB * 16, 4);
    for (std::size_t i = 0; i < std::size(sizes); ++i) {
      const auto found = index_.find(i);
      ASSERT_EQ(found, places[i]) << sizes[i];
      const auto read = read_all(*log, places[i]);
      ASSERT_TRUE(read) << sizes[i] << ": " << read.error().message();
      EXPECT_EQ(version_read(*read, i), 1) << sizes[i];
      EXPECT_EQ(read->body.size(), sizes[i]);
      EXPECT_EQ(read->head.status, 200);
    }
  }
}

TEST_P(ObjectLogTest, ReadsAnyRangeOfABody) {
  auto log = open(1_MiB, 4);
  const std::size_t bytes = 3 * 65'536 + 1'000;
  const auto place = append(*log, TestRecord(1, 1, bytes));
  const auto body = body_of(1, 1, bytes);
  auto reader = log->open_object(place, ReadMode::Blocking);
  ASSERT_TRUE(reader);
  const std::size_t edges[] = {0,       1,       65'535,  65'536,  65'537,    131'072,
                               131'073, 196'607, 196'608, 196'609, bytes - 1, bytes};
  for (const std::size_t from : edges)
    for (const std::size_t to : edges) {
      if (from > to) continue;
      std::vector<std::byte> out(to - from);
      EXPECT_OK((*reader)->read_body(from, out, ReadMode::Blocking));
      ASSERT_TRUE(std::equal(out.begin(), out.end(), body.data() + from)) << from << '-' << to;
    }
  for (std::size_t at = 0; at < bytes; at += 10'000) {
    std::vector<std::byte> out(std::min<std::size_t>(10'000, bytes - at));
    EXPECT_OK((*reader)->read_body(at, out, ReadMode::Blocking));
    ASSERT_TRUE(std::equal(out.begin(), out.end(), body.data() + at)) << at;
  }
}

TEST_P(ObjectLogTest, ABodyMayComeInPieces) {
  auto log = open(1_MiB, 4);
  TestRecord record(1, 1, 150'000);
  std::vector<std::span<const std::byte>> pieces;
  for (std::size_t at = 0; at < record.body.size(); at += 4'096)
    pieces.push_back(
        record.piece.subspan(at, std::min<std::size_t>(4'096, record.body.size() - at)));
  record.view.body = pieces;
  const auto read = read_all(*log, append(*log, record));
  ASSERT_TRUE(read);
  EXPECT_EQ(version_read(*read, 1), 1);
}

TEST_P(ObjectLogTest, AHeadMayBeLongerThanTheFirstRead) {
  auto log = open(1_MiB, 4);
  TestRecord record(1, 1, 100'000);
  record.head.append(200'000, 'h');
  record.view.head = record.head;
  const auto read = read_all(*log, append(*log, record));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->head.head, record.head);
  EXPECT_EQ(read->body, record.body);
}

TEST_P(ObjectLogTest, RefusesWhatDoesNotFit) {
  auto log = open(256_KiB, 4);
  ASSERT_EQ(log->part_body_bytes_max(), 64_KiB);
  EXPECT_OK(log->append(TestRecord(1, 1, 64_KiB).view, ignore_reclaimed));
  EXPECT_EQ(log->append(TestRecord(1, 1, 64_KiB + 1).view, ignore_reclaimed).error(),
            errc::value_too_large);
  TestRecord record(1, 1, 0);
  record.head.assign(256_KiB, 'h');
  record.view.head = record.head;
  EXPECT_EQ(log->append(record.view, ignore_reclaimed).error(), errc::value_too_large);
}

TEST_P(ObjectLogTest, ALargestRecordFillsASegmentToTheByte) {
  auto log = open(8'192, 4);
  TestRecord record(1, 1, 0);
  const std::size_t room =
      8'192 - kSegmentHeaderBytes - footer_bytes(1) - kRecordHeaderBytes - record.key.size();
  record.head.assign(room / 8 * 8 - 16, 'h');
  record.view.head = record.head;
  while (encoded_bytes(record.view) + kSegmentHeaderBytes + footer_bytes(1) <= 8'192) {
    record.head += 'h';
    record.view.head = record.head;
  }
  EXPECT_EQ(log->append(record.view, ignore_reclaimed).error(), errc::value_too_large);
  record.head.pop_back();
  record.view.head = record.head;
  append(*log, record);
  append(*log, TestRecord(2, 1, 10));
  EXPECT_OK(log->close());
  log = open(8'192, 4);
  ASSERT_TRUE(index_.find(1));
  EXPECT_EQ(read_all(*log, *index_.find(1))->head.head, record.head);
}

TEST_P(ObjectLogTest, RefusesACapacityBelowFourSegments) {
  EXPECT_EQ(open_log(files(), 8'192, 3, ignore_recovered).error(), errc::invalid_argument);
  EXPECT_EQ(open_log(files(), 2'048, 8, ignore_recovered).error(), errc::invalid_argument);
  EXPECT_OK(open_log(files(), 8'192, 4, ignore_recovered));
}

TEST_P(ObjectLogTest, ReclaimsTheOldestFirstAndNamesWhatItHeld) {
  constexpr std::uint32_t kSegmentBytes = 8'192;
  auto log = open(kSegmentBytes, 4);
  std::vector<std::pair<std::uint64_t, Location>> reclaimed;
  std::vector<Location> places;
  const auto note = [&](const admission::Fingerprint& fingerprint, const Location& location) {
    reclaimed.emplace_back(fingerprint.low, location);
  };
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto place = log->append(TestRecord(i, 1, 1'500).view, note);
    ASSERT_TRUE(place);
    places.push_back(*place);
    ASSERT_LE(log->bytes_on_disk(), 4 * kSegmentBytes);
  }
  ASSERT_GT(reclaimed.size(), 50U);
  ASSERT_LT(reclaimed.size(), 100U);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i < reclaimed.size()) {
      EXPECT_EQ(reclaimed[i].first, test::fingerprint_of(i).low);
      EXPECT_EQ(reclaimed[i].second, places[i]);
      EXPECT_EQ(log->open_object(places[i], ReadMode::Blocking).error(),
                errc::no_such_file_or_directory);
    } else {
      EXPECT_EQ(version_read(*read_all(*log, places[i]), i), 1);
    }
  }
  EXPECT_GT(log->counters().segments_reclaimed, 0U);
  EXPECT_EQ(log->counters().records, 100U);
}

TEST_P(ObjectLogTest, RecordsComeBackOldestFirst) {
  auto log = open(8'192, 8);
  for (std::uint64_t i = 0; i < 20; ++i) append(*log, TestRecord(i, 1, 900));
  append(*log, TestRecord(3, 0, 0, RecordKind::Tombstone));
  EXPECT_OK(log->sync());
  log.reset();
  std::vector<std::pair<std::uint64_t, RecordKind>> seen;
  log = *open_log(files(), 8'192, 8,
                  [&](const admission::Fingerprint& fingerprint, RecordKind kind, const Location&) {
                    seen.emplace_back(fingerprint.low, kind);
                  });
  ASSERT_EQ(seen.size(), 21U);
  for (std::uint64_t i = 0; i < 20; ++i)
    EXPECT_EQ(seen[i], std::pair(test::fingerprint_of(i).low, RecordKind::Object)) << i;
  EXPECT_EQ(seen[20], std::pair(test::fingerprint_of(3).low, RecordKind::Tombstone));
}

TEST_P(ObjectLogTest, AppendingAfterReopeningStartsANewSegment) {
  auto log = open(8'192, 8);
  const auto before = append(*log, TestRecord(1, 1, 100));
  log.reset();
  log = open(8'192, 8);
  const auto after = append(*log, TestRecord(2, 1, 100));
  EXPECT_GT(after.segment, before.segment);
  EXPECT_EQ(version_read(*read_all(*log, before), 1), 1);
  EXPECT_EQ(version_read(*read_all(*log, after), 2), 1);
}

TEST_P(ObjectLogTest, ASmallObjectOutlivesItsSegmentInTheReader) {
  auto log = open(8'192, 4);
  const auto place = append(*log, TestRecord(1, 1, 1'000));
  auto reader = log->open_object(place, ReadMode::Blocking);
  ASSERT_TRUE(reader);
  for (std::uint64_t i = 2; i < 60; ++i) append(*log, TestRecord(i, 1, 1'000));
  ASSERT_FALSE(log->open_object(place, ReadMode::Blocking));
  log.reset();
  std::vector<std::byte> body(1'000);
  EXPECT_OK((*reader)->read_body(0, body, ReadMode::Blocking));
  EXPECT_EQ(body, body_of(1, 1, 1'000));
}

TEST_P(ObjectLogTest, AHeldSegmentStaysReadableAndCharged) {
  constexpr std::uint32_t kSegmentBytes = 512 * 1024;
  auto log = open(kSegmentBytes, 4);
  const auto place = append(*log, TestRecord(1, 1, 128 * 1024));
  auto reader = log->open_object(place, ReadMode::Blocking);
  ASSERT_TRUE(reader);
  for (std::uint64_t i = 2; i < 30; ++i) {
    append(*log, TestRecord(i, 1, 128 * 1024));
    ASSERT_LE(log->bytes_on_disk(), 4 * kSegmentBytes);
  }
  ASSERT_FALSE(log->open_object(place, ReadMode::Blocking));
  std::vector<std::byte> body(128 * 1024);
  EXPECT_OK((*reader)->read_body(0, body, ReadMode::Blocking));
  EXPECT_EQ(body, body_of(1, 1, body.size()));
  const auto held = log->bytes_on_disk();
  reader->reset();
  EXPECT_EQ(log->bytes_on_disk(), held - kSegmentBytes);
}

TEST_P(ObjectLogTest, IsBusyWhileReadersHoldEverySegment) {
  constexpr std::uint32_t kSegmentBytes = 512 * 1024;
  auto log = open(kSegmentBytes, 4);
  std::vector<std::unique_ptr<ObjectReader>> readers;
  std::set<std::uint32_t> segments;
  std::uint64_t key = 0;
  boost::system::error_code error;
  while (!error && key < 100) {
    const auto place = log->append(TestRecord(key++, 1, 128 * 1024).view, index_.reclaimer());
    if (!place) {
      error = place.error();
    } else if (segments.insert(place->segment).second) {
      readers.push_back(*log->open_object(*place, ReadMode::Blocking));
    }
  }
  EXPECT_EQ(error, errc::device_or_resource_busy);
  EXPECT_EQ(segments.size(), 4U);
  EXPECT_EQ(index_.reclaimed, 0U) << "nothing is thrown away in vain";
  readers.erase(readers.begin() + 2);
  EXPECT_OK(log->append(TestRecord(key, 1, 128 * 1024).view, index_.reclaimer()));
  EXPECT_LE(log->bytes_on_disk(), 4 * kSegmentBytes);
}

/// Appends parts of `part_bytes` each and the large object over them.
struct LargeObject {
  LargeObject(std::uint64_t key, std::size_t parts, std::size_t part_bytes)
      : key_(key), whole(body_of(key, 1, parts * part_bytes)), part_bytes_(part_bytes) {}

  void append_parts(ObjectLog& log, const ObjectLog::OnReclaimed& reclaimed) {
    for (std::size_t at = 0; at < whole.size(); at += part_bytes_) {
      TestRecord part(key_ + 1'000'000, 1, 0, RecordKind::Part);
      const auto piece = std::span<const std::byte>(whole).subspan(at, part_bytes_);
      part.view.body = {&piece, 1};
      const auto place = log.append(part.view, reclaimed);
      EXPECT_OK(place);
      refs.push_back({*place, part_bytes_});
    }
  }
  Result<Location> append_head(ObjectLog& log, const ObjectLog::OnReclaimed& reclaimed) {
    TestRecord head(key_, 1, 0, RecordKind::LargeObject);
    head.view.parts = refs;
    return log.append(head.view, reclaimed);
  }

  std::uint64_t key_;
  std::vector<std::byte> whole;
  std::size_t part_bytes_;
  std::vector<PartRef> refs;
};

TEST_P(ObjectLogTest, ReadsALargeObjectOverItsParts) {
  auto log = open(1_MiB, 8);
  LargeObject large(5, 7, 200'000);
  large.append_parts(*log, index_.reclaimer());
  const auto place = large.append_head(*log, index_.reclaimer());
  EXPECT_OK(place);
  EXPECT_OK(log->close());
  log = open(1_MiB, 8);
  ASSERT_EQ(index_.find(5), *place);
  ASSERT_EQ(index_.places.size(), 1U) << "parts are not objects";
  const auto read = read_all(*log, *place);
  ASSERT_TRUE(read);
  EXPECT_EQ(version_read(*read, 5), 1);
  EXPECT_EQ(read->body, large.whole);

  auto reader = log->open_object(*place, ReadMode::Blocking);
  ASSERT_TRUE(reader);
  for (const std::size_t from : {0U, 199'999U, 200'000U, 650'001U, 1'399'999U})
    for (const std::size_t length : {0U, 1U, 2U, 70'000U, 500'000U}) {
      if (from + length > large.whole.size()) continue;
      std::vector<std::byte> out(length);
      EXPECT_OK((*reader)->read_body(from, out, ReadMode::Blocking));
      ASSERT_TRUE(std::equal(out.begin(), out.end(), large.whole.data() + from));
    }
}

TEST_P(ObjectLogTest, ARefreshedHeadUsesTheOldBody) {
  auto log = open(1_MiB, 8);
  const auto old = append(*log, TestRecord(1, 1, 100'000));
  TestRecord head(1, 2, 0, RecordKind::LargeObject);
  const PartRef part{old, 100'000};
  head.view.parts = {&part, 1};
  const auto read = read_all(*log, append(*log, head));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->head.head, "version=2");
  EXPECT_EQ(read->body, body_of(1, 1, 100'000));
}

TEST_P(ObjectLogTest, ALargeObjectWhosePartIsGoneIsAMiss) {
  auto log = open(256_KiB, 4);
  LargeObject large(5, 3, 60'000);
  large.append_parts(*log, index_.reclaimer());
  std::uint64_t filler = 100;
  const auto open_part = [&](std::size_t i) {
    return log->open_object(large.refs[i].record, ReadMode::Blocking).has_value();
  };
  while (log->counters().segments_created < 4) append(*log, TestRecord(filler++, 1, 60'000));
  const auto place = large.append_head(*log, index_.reclaimer());
  EXPECT_OK(place);
  auto reader = log->open_object(*place, ReadMode::Blocking);
  EXPECT_OK(reader);
  while (open_part(0)) append(*log, TestRecord(filler++, 1, 60'000));
  EXPECT_EQ(log->open_object(*place, ReadMode::Blocking).error(), errc::no_such_file_or_directory);
  std::vector<std::byte> out(10);
  EXPECT_EQ((*reader)->read_body(0, out, ReadMode::Blocking).error(),
            errc::no_such_file_or_directory);
}

TEST_P(ObjectLogTest, APartOfAnotherLengthIsNoneOfItsObject) {
  auto log = open(256_KiB, 4);
  for (const int off : {-1, 1}) {
    LargeObject large(5, 3, 1'000);
    large.append_parts(*log, index_.reclaimer());
    large.refs[1].body_bytes += static_cast<std::uint64_t>(off);
    const auto place = large.append_head(*log, index_.reclaimer());
    auto reader = log->open_object(*place, ReadMode::Blocking);
    ASSERT_TRUE(reader);
    std::vector<std::byte> out(999);
    EXPECT_OK((*reader)->read_body(0, out, ReadMode::Blocking));
    EXPECT_EQ((*reader)->read_body(1'000, out, ReadMode::Blocking).error(), errc::bad_message);
  }
}

TEST_P(ObjectLogTest, APartInHandSurvivesReclaim) {
  auto log = open(512_KiB, 4);
  LargeObject large(5, 2, 128 * 1024);
  large.append_parts(*log, index_.reclaimer());
  const auto place = large.append_head(*log, index_.reclaimer());
  auto reader = log->open_object(*place, ReadMode::Blocking);
  EXPECT_OK(reader);
  std::vector<std::byte> out(10);
  EXPECT_OK((*reader)->read_body(0, out, ReadMode::Blocking));
  std::uint64_t filler = 100;
  while (log->open_object(*place, ReadMode::Blocking))
    append(*log, TestRecord(filler++, 1, 128 * 1024));
  EXPECT_OK((*reader)->read_body(100'000, out, ReadMode::Blocking));
  EXPECT_TRUE(std::equal(out.begin(), out.end(), large.whole.data() + 100'000));
  EXPECT_EQ((*reader)->read_body(200'000, out, ReadMode::Blocking).error(),
            errc::no_such_file_or_directory);
}

TEST_P(ObjectLogTest, OverheadIsSmall) {
  struct Case {
    std::size_t body_bytes;
    double ratio_max;
  };
  for (const Case& c : {Case{2'048, 1.15}, Case{16'384, 1.05}}) {
    auto log = open(1_MiB, 4);
    TestRecord record(1, 1, c.body_bytes);
    record.head.assign(120, 'h');
    record.view.head = record.head;
    const auto before = log->counters();
    for (int i = 0; i < 2'000; ++i) append(*log, record);
    EXPECT_OK(log->close());
    const auto after = log->counters();
    const auto written = after.record_bytes + after.footer_bytes + after.header_bytes -
                         before.record_bytes - before.footer_bytes - before.header_bytes;
    const double ratio =
        static_cast<double>(written) / (2'000.0 * static_cast<double>(c.body_bytes));
    RecordProperty("written_per_body_byte_" + std::to_string(c.body_bytes), std::to_string(ratio));
    EXPECT_LE(ratio, c.ratio_max) << c.body_bytes << " byte bodies, key and head included";
  }
}

TEST(ObjectLogSizes, SegmentsAreASixtyFourthOrFewAndNotTiny) {
  struct Case {
    std::uint64_t capacity, segment;
  };
  for (const Case& c :
       {Case{0, 256_KiB}, Case{1_MiB, 256_KiB}, Case{1_MiB - 16_KiB, 252_KiB}, Case{4_MiB, 256_KiB},
        Case{8_MiB, 512_KiB}, Case{16_MiB, 1_MiB}, Case{2'030'000, 249'856}, Case{64_MiB, 1_MiB},
        Case{128_MiB, 2_MiB}, Case{10_GiB, 160_MiB}, Case{100_GiB, 256_MiB},
        Case{1_GiB + 1'000'000, (1_GiB + 1'000'000) / 64 / 4'096 * 4'096}})
    EXPECT_EQ(ObjectLog::segment_bytes_for(c.capacity), c.segment) << c.capacity;
}

TEST(ObjectLogPageCache, ColdReadsAskToTryAgain) {
  test::SimFileSystem disk(1);
  auto log = open_log(disk, 1 << 20, 4, ignore_recovered);
  EXPECT_OK(log);
  const auto place = (*log)->append(TestRecord(1, 1, 200'000).view, ignore_reclaimed);
  EXPECT_OK(place);
  auto warm = (*log)->open_object(*place, ReadMode::PageCacheOnly);
  EXPECT_OK(warm);
  disk.set_page_cache(test::SimFileSystem::PageCache::Cold);
  EXPECT_EQ((*log)->open_object(*place, ReadMode::PageCacheOnly).error(),
            errc::resource_unavailable_try_again);
  std::vector<std::byte> out(100);
  EXPECT_OK((*warm)->read_body(0, out, ReadMode::PageCacheOnly));  // came with the front
  EXPECT_EQ((*warm)->read_body(100'000, out, ReadMode::PageCacheOnly).error(),
            errc::resource_unavailable_try_again);
  EXPECT_OK((*warm)->read_body(100'000, out, ReadMode::Blocking));
}

TEST(ObjectLogReads, ASmallObjectTakesOneRead) {
  test::SimFileSystem disk(1);
  auto log = open_log(disk, 1 << 20, 4, ignore_recovered);
  EXPECT_OK(log);
  const auto small = (*log)->append(TestRecord(1, 1, 65'536).view, ignore_reclaimed);
  const auto larger = (*log)->append(TestRecord(2, 1, 262'144).view, ignore_reclaimed);
  ASSERT_TRUE(small && larger);
  auto before = disk.operations();
  EXPECT_OK(read_all(**log, *small));
  EXPECT_EQ(disk.operations() - before, 1U);
  before = disk.operations();
  EXPECT_OK(read_all(**log, *larger));
  EXPECT_EQ(disk.operations() - before, 2U);
}

TEST(ObjectLogReads, AWrongPlaceIsNeverARecord) {
  test::SimFileSystem disk(1);
  auto log = open_log(disk, 1 << 16, 4, ignore_recovered);
  EXPECT_OK(log);
  const auto place = (*log)->append(TestRecord(1, 1, 1'000).view, ignore_reclaimed);
  EXPECT_OK(place);
  auto wrong = *place;
  wrong.offset_bytes += 8;
  EXPECT_EQ((*log)->open_object(wrong, ReadMode::Blocking).error(), errc::bad_message);
  wrong = *place;
  wrong.length_bytes += 8;
  EXPECT_EQ((*log)->open_object(wrong, ReadMode::Blocking).error(), errc::bad_message);
  wrong.length_bytes = 3;
  EXPECT_EQ((*log)->open_object(wrong, ReadMode::Blocking).error(), errc::bad_message);
  wrong = {place->segment, 65'530, 100};
  EXPECT_EQ((*log)->open_object(wrong, ReadMode::Blocking).error(), errc::bad_message);
  wrong = *place;
  wrong.segment += 1;
  EXPECT_EQ((*log)->open_object(wrong, ReadMode::Blocking).error(),
            errc::no_such_file_or_directory);
}

}  // namespace
}  // namespace secondsight::cache::log
