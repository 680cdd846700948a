#include <algorithm>
#include <array>
#include <random>

#include "cache/log/object_log.h"
#include "cache/log/record_format.h"
#include "cache/log/segment_format.h"
#include "tests/cache/log/log_fixture.h"
#include "tests/support/sim_file_system.h"

namespace secondsight::cache::log {
namespace {

namespace errc = boost::system::errc;
using test::ignore_reclaimed;
using test::ignore_recovered;
using test::open_log;
using test::read_all;
using test::SimFileSystem;
using test::TestIndex;
using test::TestRecord;
using test::version_read;

constexpr std::uint32_t kSegmentBytes = 8'192;
constexpr std::uint32_t kSegments = 8;

struct Log {
  explicit Log(SimFileSystem& disk, std::uint32_t segments = kSegments) {
    auto opened = open_log(disk, kSegmentBytes, segments, index.recorder());
    EXPECT_OK(opened);
    log = std::move(*opened);
  }
  Location append(const TestRecord& record) {
    auto location = log->append(record.view, index.reclaimer());
    EXPECT_OK(location);
    index.put(record.view.fingerprint, record.view.kind, *location);
    return *location;
  }
  std::int64_t version(std::uint64_t key) const {
    const auto place = index.find(key);
    if (!place) return 0;
    const auto read = read_all(*log, *place);
    return read ? version_read(*read, key) : 0;
  }
  TestIndex index;
  std::unique_ptr<ObjectLog> log;
};

void flip_byte(SimFileSystem& disk, std::uint32_t segment, std::uint64_t offset) {
  for (std::uint64_t bit = 0; bit < 8; bit += 3)
    disk.flip_bit(segment_file_name(segment), offset * 8 + bit);
}

TEST(ObjectLogRecovery, AnEmptyDirectoryIsAnEmptyLog) {
  SimFileSystem disk(1);
  const Log log(disk);
  EXPECT_TRUE(log.index.places.empty());
  EXPECT_EQ(log.log->bytes_on_disk(), 0U);
}

TEST(ObjectLogRecovery, OtherFilesAreLeftAlone) {
  SimFileSystem disk(1);
  disk.set_contents("seed", std::vector<std::byte>(32));
  disk.set_contents("00000009.segmen", std::vector<std::byte>(32));
  {
    Log log(disk);
    for (std::uint64_t i = 0; i < 200; ++i) log.append(TestRecord(i, 1, 1'000));
  }
  const auto names = *disk.list();
  EXPECT_NE(std::find(names.begin(), names.end(), "seed"), names.end());
  EXPECT_NE(std::find(names.begin(), names.end(), "00000009.segmen"), names.end());
}

TEST(ObjectLogRecovery, ForeignFilesWithASegmentsNameCostNothing) {
  SimFileSystem disk(1);
  {
    Log log(disk);
    for (std::uint64_t i = 0; i < 30; ++i) log.append(TestRecord(i, 1, 1'000));
    EXPECT_OK(log.log->close());
  }
  disk.set_contents("ffffffff.segment", std::vector<std::byte>(100));
  disk.set_contents("00010002.segment", std::vector<std::byte>(10 * kSegments * kSegmentBytes));
  disk.set_contents("00000020.segment", std::vector<std::byte>(2 * kSegmentBytes));
  Log log(disk);
  EXPECT_EQ(log.index.places.size(), 30U) << "no good segment made room for them";
  for (std::uint64_t i = 100; i < 110; ++i) log.append(TestRecord(i, 1, 1'000));
  const auto names = *disk.list();
  EXPECT_EQ(std::count(names.begin(), names.end(), "ffffffff.segment"), 0);
}

TEST(ObjectLogRecovery, ACopyOfASegmentUnderAnotherNameCostsNothing) {
  for (const char* name : {"ffffffff.segment", "0000000f.segment"}) {
    SCOPED_TRACE(name);
    SimFileSystem disk(1);
    {
      Log log(disk);
      for (std::uint64_t i = 0; i < 20; ++i) log.append(TestRecord(i, 1, 1'000));
      EXPECT_OK(log.log->close());
    }
    disk.set_contents(name, disk.contents(segment_file_name(2)));
    Log log(disk);
    EXPECT_EQ(log.index.places.size(), 20U);
    for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(log.version(i), 1) << i;
    for (std::uint64_t i = 100; i < 110; ++i) log.append(TestRecord(i, 1, 1'000));
    EXPECT_EQ(log.version(105), 1);
    const auto names = *disk.list();
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 0);
  }
}

TEST(ObjectLogRecovery, AfterACleanCloseNoRecordIsRead) {
  SimFileSystem disk(1);
  {
    Log log(disk);
    for (std::uint64_t i = 0; i < 30; ++i) log.append(TestRecord(i, 1, 1'000));
    EXPECT_OK(log.log->close());
  }
  const auto files = disk.list()->size();
  const auto before = disk.operations();
  const Log log(disk);
  // List; per segment open, size, header, size again, trailer, footer.
  EXPECT_EQ(disk.operations() - before, 1 + files * 6);
  for (std::uint64_t i = 0; i < 30; ++i) EXPECT_EQ(log.version(i), 1) << i;
}

TEST(ObjectLogRecovery, TheTailIsScannedOnceThenSealed) {
  SimFileSystem disk(1);
  {
    Log log(disk);
    for (std::uint64_t i = 0; i < 12; ++i) log.append(TestRecord(i, 1, 1'000));
  }
  { const Log log(disk); }
  const auto files = disk.list()->size();
  const auto before = disk.operations();
  const Log log(disk);
  EXPECT_EQ(disk.operations() - before, 1 + files * 6);
  for (std::uint64_t i = 0; i < 12; ++i) EXPECT_EQ(log.version(i), 1) << i;
}

TEST(ObjectLogRecovery, ADamagedFooterCostsOnlyAScan) {
  SimFileSystem disk(1);
  {
    Log log(disk);
    for (std::uint64_t i = 0; i < 5; ++i) log.append(TestRecord(i, 1, 1'000));
    EXPECT_OK(log.log->close());
  }
  for (const std::uint64_t from_end : {1U, 10U, 24U, 40U, 149U}) {
    flip_byte(disk, 1, kSegmentBytes - from_end);
    const Log log(disk);
    for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(log.version(i), 1) << i << ' ' << from_end;
  }
}

TEST(ObjectLogRecovery, ADamagedSegmentHeaderCostsNothing) {
  for (const bool is_closed : {false, true}) {
    SimFileSystem disk(1);
    {
      Log log(disk);
      for (std::uint64_t i = 0; i < 5; ++i) log.append(TestRecord(i, 1, 1'000));
      if (is_closed) EXPECT_OK(log.log->close());
    }
    flip_byte(disk, 1, 9);
    const Log log(disk);
    for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(log.version(i), 1) << i;
  }
}

TEST(ObjectLogRecovery, DamageInTheMiddleCostsThatRecordOnly) {
  // In its header, its front and its body; with a footer and without.
  for (const std::uint32_t offset : {0U, 20U, 50U, 67U, 70U, 90U, 105U, 500U, 1'100U})
    for (const bool is_closed : {false, true}) {
      SimFileSystem disk(1);
      Location victim;
      {
        Log log(disk);
        for (std::uint64_t i = 0; i < 5; ++i) {
          const auto place = log.append(TestRecord(i, 1, 1'100));
          if (i == 2) victim = place;
        }
        if (is_closed) EXPECT_OK(log.log->close());
      }
      flip_byte(disk, victim.segment, victim.offset_bytes + offset);
      const Log log(disk);
      for (std::uint64_t i = 0; i < 5; ++i)
        EXPECT_EQ(log.version(i), i == 2 ? 0 : 1) << i << " damaged at " << offset;
    }
}

TEST(ObjectLogRecovery, ADamagedRecordDoesNotBringBackWhatItReplaced) {
  for (const RecordKind kind : {RecordKind::Object, RecordKind::Tombstone}) {
    SimFileSystem disk(1);
    Location newer;
    {
      Log log(disk);
      log.append(TestRecord(1, 1, 500));
      newer = log.append(TestRecord(1, 2, kind == RecordKind::Object ? 500 : 0, kind));
    }
    flip_byte(disk, newer.segment, newer.offset_bytes + kRecordHeaderBytes + 5);
    const Log log(disk);
    EXPECT_EQ(log.version(1), 0);
    EXPECT_FALSE(log.index.find(1));
  }
}

TEST(ObjectLogRecovery, ADamagedPurgeStaysOne) {
  for (const bool damaged : {false, true}) {
    SimFileSystem disk(1);
    const TestRecord purge(2, 1, 0, RecordKind::Purge);
    Location at;
    {
      Log log(disk);
      log.append(TestRecord(1, 1, 500));
      at = log.append(purge);
    }
    if (damaged) flip_byte(disk, at.segment, at.offset_bytes + kRecordHeaderBytes + 5);
    std::vector<std::pair<admission::Fingerprint, Location>> purges;
    auto log = open_log(
        disk, kSegmentBytes, kSegments,
        [&](const admission::Fingerprint& fingerprint, RecordKind kind, const Location& location) {
          EXPECT_NE(kind, RecordKind::Tombstone);
          if (kind == RecordKind::Purge) purges.emplace_back(fingerprint, location);
        });
    ASSERT_TRUE(log);
    ASSERT_EQ(purges.size(), 1U);
    EXPECT_EQ(purges.front().first, purge.view.fingerprint);
    EXPECT_EQ(purges.front().second, at);
  }
}

TEST(ObjectLogRecovery, ADamagedPartReplacesNothing) {
  SimFileSystem disk(1);
  Location part;
  {
    Log log(disk);
    log.append(TestRecord(1, 1, 500));
    part = log.append(TestRecord(1, 2, 500, RecordKind::Part));
  }
  flip_byte(disk, part.segment, part.offset_bytes + 300);
  const Log log(disk);
  EXPECT_EQ(log.version(1), 1);
}

TEST(ObjectLogRecovery, AnOtherSeedsSegmentsAreRemoved) {
  SimFileSystem disk(1);
  Location old;
  {
    Log log(disk);
    old = log.append(TestRecord(1, 1, 500));
    EXPECT_OK(log.log->close());
  }
  ObjectLog::Options options{std::uint64_t{kSegmentBytes} * 8, kSegmentBytes, test::kSeedId + 1};
  TestIndex index;
  auto log = ObjectLog::open(disk, options, index.recorder());
  ASSERT_TRUE(log);
  EXPECT_TRUE(index.places.empty());
  EXPECT_TRUE(disk.list()->empty());
  // A number is not used twice.
  EXPECT_GT((*log)->append(TestRecord(1, 1, 500).view, ignore_reclaimed)->segment, old.segment);
}

void write_version(SimFileSystem& disk, std::uint32_t number, std::uint32_t version) {
  auto bytes = encode_segment_header({version, number, test::kSeedId, kSegmentBytes});
  bytes.resize(kSegmentBytes, std::byte{0x55});
  disk.set_contents(segment_file_name(number), bytes);
}

TEST(ObjectLogRecovery, ANewerVersionIsRefusedAndNothingTouched) {
  SimFileSystem disk(1);
  { Log(disk).append(TestRecord(1, 1, 500)); }
  write_version(disk, 2, kFormatVersion - 1);
  write_version(disk, 3, kFormatVersion + 1);
  const auto names = *disk.list();
  std::vector<std::vector<std::byte>> before;
  for (const auto& name : names) before.push_back(disk.contents(name));
  EXPECT_EQ(open_log(disk, kSegmentBytes, kSegments, ignore_recovered).error(),
            errc::not_supported);
  EXPECT_EQ(*disk.list(), names);
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(disk.contents(names[i]), before[i]);
}

TEST(ObjectLogRecovery, RecordsOfAnOlderVersionAreNotReadThoughTheyVerify) {
  SimFileSystem disk(1);
  {
    Log log(disk);
    log.append(TestRecord(1, 1, 100));
    EXPECT_OK(log.log->close());
  }
  auto bytes = disk.contents(segment_file_name(1));
  const auto header = encode_segment_header({kFormatVersion - 1, 1, test::kSeedId, kSegmentBytes});
  std::copy(header.begin(), header.end(), bytes.begin());
  disk.set_contents(segment_file_name(1), bytes);
  const Log log(disk);
  EXPECT_TRUE(log.index.places.empty());
  EXPECT_EQ(log.log->bytes_on_disk(), 0U);
}

TEST(ObjectLogRecovery, AnOlderVersionIsRemoved) {
  SimFileSystem disk(1);
  { Log(disk).append(TestRecord(1, 1, 500)); }
  write_version(disk, 2, kFormatVersion - 1);
  const Log log(disk);
  EXPECT_EQ(log.version(1), 1);
  EXPECT_EQ(*disk.list(), std::vector<std::string>{segment_file_name(1)});
}

TEST(ObjectLogRecovery, ASmallerCapacityDropsTheOldest) {
  SimFileSystem disk(1);
  {
    Log log(disk);
    for (std::uint64_t i = 0; i < 40; ++i) log.append(TestRecord(i, 1, 1'000));
    EXPECT_OK(log.log->close());
    ASSERT_GE(log.log->bytes_on_disk(), 6 * kSegmentBytes);
  }
  Log log(disk, 4);
  EXPECT_LE(log.log->bytes_on_disk(), 4 * kSegmentBytes);
  EXPECT_EQ(log.version(0), 0);
  EXPECT_EQ(log.version(39), 1);
  for (std::uint64_t i = 100; i < 140; ++i) {
    log.append(TestRecord(i, 1, 1'000));
    ASSERT_LE(log.log->bytes_on_disk(), 4 * kSegmentBytes);
  }
}

TEST(ObjectLogRecovery, JunkNamedLikeASegmentIsRemoved) {
  SimFileSystem disk(1);
  { Log(disk).append(TestRecord(1, 1, 500)); }
  std::mt19937_64 random(3);
  std::vector<std::byte> junk(kSegmentBytes);
  for (auto& b : junk) b = static_cast<std::byte>(random() & 0xFF);
  disk.set_contents(segment_file_name(2), junk);
  disk.set_contents(segment_file_name(3), {});
  disk.set_contents(segment_file_name(4), std::vector<std::byte>(kSegmentBytes));
  // A good segment under a wrong number.
  disk.set_contents(segment_file_name(5), disk.contents(segment_file_name(1)));
  Log log(disk);
  EXPECT_EQ(log.version(1), 1);
  EXPECT_EQ(log.index.places.size(), 1U);
  EXPECT_EQ(*disk.list(), std::vector<std::string>{segment_file_name(1)});
  EXPECT_EQ(log.append(TestRecord(2, 1, 100)).segment, 6U);
}

TEST(ObjectLogRecovery, BytesOfAnEarlierFileNeverPassForRecords) {
  // A new segment whose unwritten space shows what an earlier segment left on the medium.
  SimFileSystem disk(1);
  {
    Log log(disk);
    for (std::uint64_t i = 0; i < 6; ++i) log.append(TestRecord(i, 1, 1'000));
  }
  const auto earlier = disk.contents(segment_file_name(1));
  {
    Log log(disk);
    log.append(TestRecord(100, 1, 1'000));
  }
  auto mixed = disk.contents(segment_file_name(2));
  const std::size_t end = kSegmentHeaderBytes + encoded_bytes(TestRecord(100, 1, 1'000).view);
  std::copy(earlier.begin() + static_cast<std::ptrdiff_t>(end), earlier.end(),
            mixed.begin() + static_cast<std::ptrdiff_t>(end));
  disk.set_contents(segment_file_name(2), mixed);
  EXPECT_OK(disk.remove(segment_file_name(1)));
  const Log log(disk);
  EXPECT_EQ(log.index.places.size(), 1U);
  EXPECT_EQ(log.version(100), 1);
}

TEST(ObjectLogRecovery, EverySegmentCutOffAnywhereOpens) {
  SimFileSystem disk(1);
  std::vector<Location> places;
  {
    Log log(disk);
    for (std::uint64_t i = 0; i < 4; ++i) places.push_back(log.append(TestRecord(i, 1, 700)));
    EXPECT_OK(log.log->close());
  }
  const auto whole = disk.contents(segment_file_name(1));
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    disk.set_contents(segment_file_name(1),
                      {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
    {
      const Log log(disk);
      for (std::uint64_t i = 0; i < 4; ++i) {
        const bool is_whole = places[i].offset_bytes + places[i].length_bytes <= length;
        ASSERT_EQ(log.version(i), is_whole ? 1 : 0) << length << ' ' << i;
      }
    }
    for (const auto& name : *disk.list()) EXPECT_OK(disk.remove(name));
  }
}

TEST(ObjectLogRecovery, AFlippedBitAnywhereIsAMissNeverAWrongByte) {
  // Two segments with a footer and one without, a record replaced, one removed.
  const auto fill = [](SimFileSystem& disk) {
    Log log(disk);
    for (std::uint64_t i = 0; i < 14; ++i) log.append(TestRecord(i, 1, 900 + i * 10));
    log.append(TestRecord(3, 2, 800));
    log.append(TestRecord(4, 0, 0, RecordKind::Tombstone));
    log.append(TestRecord(20, 1, 900));
    EXPECT_OK(log.log->sync());
  };
  SimFileSystem original(1);
  fill(original);
  const auto names = *original.list();
  ASSERT_GE(names.size(), 3U);
  std::mt19937_64 random(11);
  for (const auto& name : names) {
    const auto bytes = original.contents(name);
    for (std::size_t at = 0; at < bytes.size(); at += 5) {
      SimFileSystem disk(1);
      for (const auto& other : names) disk.set_contents(other, original.contents(other));
      disk.flip_bit(name, at * 8 + random() % 8);
      const Log log(disk);
      std::size_t misses = 0;
      for (const auto& [key, newest] :
           {std::pair{0, 1}, {1, 1}, {2, 1}, {3, 2}, {5, 1}, {9, 1}, {13, 1}, {20, 1}}) {
        const auto version = log.version(static_cast<std::uint64_t>(key));
        if (version == 0) ++misses;
        // Only in a segment without footer can a lost header bring back what it had replaced.
        const bool is_unsealed = name == names.back();
        ASSERT_TRUE(version == 0 || version == newest || (is_unsealed && version == 1))
            << name << " byte " << at << " key " << key << " version " << version;
      }
      ASSERT_LE(misses, 1U) << name << " byte " << at;
      if (name != names.back()) {
        ASSERT_FALSE(log.index.find(4)) << name << " byte " << at;
      }
    }
  }
}

TEST(ObjectLogRecovery, ReadErrorsWhileOpeningAreReportedAndNoLoss) {
  SimFileSystem disk(1);
  {
    Log log(disk);
    for (std::uint64_t i = 0; i < 12; ++i) log.append(TestRecord(i, 1, 1'000));
  }
  std::uint64_t failures = 0;
  for (std::uint64_t n = 0;; ++n) {
    const auto start = disk.operations();
    disk.fail_operation(start + n, errc::io_error);
    TestIndex index;
    auto log = open_log(disk, kSegmentBytes, kSegments, index.recorder());
    if (!log) {
      EXPECT_EQ(log.error(), errc::io_error);
      ++failures;
      continue;
    }
    ASSERT_EQ(index.places.size(), 12U) << n;
    if (disk.operations() <= start + n) break;
  }
  EXPECT_GT(failures, 10U);
}

}  // namespace
}  // namespace secondsight::cache::log
