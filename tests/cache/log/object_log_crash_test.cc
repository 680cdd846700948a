#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "cache/log/object_log.h"
#include "cache/log/segment.h"
#include "cache/log/segment_format.h"
#include "tests/cache/log/log_fixture.h"
#include "tests/support/sim_file_system.h"

// A workload runs until a planned fault ends it; then the log is opened again and compared with
// what may have been lost and what may not.
namespace secondsight::cache::log {
namespace {

namespace errc = boost::system::errc;
using test::open_log;
using test::read_all;
using test::SimFileSystem;
using test::TestIndex;
using test::TestRecord;
using test::version_read;

constexpr std::uint32_t kSegmentBytes = 4'096;
constexpr std::uint32_t kSegments = 5;
constexpr std::uint64_t kKeys = 9;
constexpr int kSteps = 70;

/// One attempt to change a key.
struct Change {
  std::int64_t version = 0;       // 0: removed
  std::optional<Location> place;  // empty: the log reported an error
  bool is_durable = false;
  bool is_doubtful = false;   // a sync that covered it failed: no later one makes it durable
  bool is_reclaimed = false;  // the log has said so
};
using History = std::map<std::uint64_t, std::vector<Change>>;

/// Drives a log with random changes and remembers what it was told.
class Workload {
 public:
  /// Whether single operations are going to fail.
  enum class Faults : std::uint8_t { None, Planned };
  Workload(SimFileSystem& disk, std::uint64_t seed, Faults faults = Faults::None)
      : disk_(disk), random_(seed), faults_(faults) {}

  void run() {
    if (!open()) return;
    for (int i = 0; i < kSteps && !disk_.has_crashed(); ++i) step();
  }

  /// Errors of single calls are part of the game; what was read must still be right.
  void step() {
    const std::uint64_t key = random_() % kKeys;
    const auto dice = random_() % 100;
    if (dice < 55) {
      change(key, ++last_version_, RecordKind::Object);
    } else if (dice < 70) {
      change(key, 0, RecordKind::Tombstone);
    } else if (dice < 85) {
      sync();
    } else if (dice < 95) {
      check_reads();
    } else {
      if (dice < 98 && log_) note_sync(log_->close());
      // What a failed sync inside an append lost was still to be reported.
      if (faults_ == Faults::Planned) note_sync(make_error_code(errc::io_error));
      open();
    }
  }

  bool open() {
    log_.reset();
    index_ = {};
    for (int attempt = 0; attempt < 3 && !log_; ++attempt) {
      index_ = {};
      // Sealed at once, a few together, or never before they are reclaimed.
      const std::uint64_t seal_bytes = random_() % 3 * kSegmentBytes * (kSegments / 2 + 1);
      auto opened = open_log(disk_, kSegmentBytes, kSegments, index_.recorder(), seal_bytes);
      if (opened) log_ = std::move(*opened);
    }
    return log_ != nullptr;
  }

  void sync() {
    if (log_) note_sync(log_->sync());
  }

  void check_reads() {
    if (!log_) return;
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      const auto place = index_.find(key);
      if (!place) continue;
      const auto read = read_all(*log_, *place);
      if (read) {
        ASSERT_GT(version_read(*read, key), 0) << "wrong bytes, key " << key;
      }
    }
  }

  const History& history() const { return history_; }
  void close_handles() { log_.reset(); }

 private:
  void change(std::uint64_t key, std::int64_t version, RecordKind kind) {
    if (!log_) return;
    const std::size_t bytes = kind == RecordKind::Object ? random_() % 900 : 0;
    const TestRecord record(key, static_cast<std::uint64_t>(version), bytes, kind);
    const auto reclaimer = index_.reclaimer();
    const auto place = log_->append(
        record.view, [&](const admission::Fingerprint& fingerprint, const Location& reclaimed) {
          reclaimer(fingerprint, reclaimed);
          note_reclaimed(reclaimed.segment);
        });
    history_[key].push_back({version, place ? std::optional(*place) : std::nullopt, false});
    if (place) index_.put(record.view.fingerprint, kind, *place);
    ASSERT_LE(log_->bytes_on_disk(), std::uint64_t{kSegmentBytes} * kSegments);
  }

  void note_reclaimed(std::uint32_t segment) {
    for (auto& [key, changes] : history_)
      for (Change& change : changes)
        if (change.place && change.place->segment == segment) change.is_reclaimed = true;
  }

  void note_sync(const Result<>& synced) {
    for (auto& [key, changes] : history_)
      for (Change& change : changes) {
        if (!change.place || change.is_durable || change.is_doubtful) continue;
        (synced ? change.is_durable : change.is_doubtful) = true;
      }
  }

  SimFileSystem& disk_;
  std::mt19937_64 random_;
  Faults faults_;
  std::unique_ptr<ObjectLog> log_;
  TestIndex index_;
  History history_;
  std::int64_t last_version_ = 0;
};

std::uint32_t oldest_segment(SimFileSystem& disk) {
  std::uint32_t oldest = 0xFFFFFFFF;
  for (const auto& name : *disk.list())
    if (const auto number = parse_segment_file_name(name)) oldest = std::min(oldest, *number);
  return oldest;
}

/// 0: a miss. Fails the test on a wrong byte.
std::int64_t version_of(const ObjectLog& log, const TestIndex& index, std::uint64_t key) {
  const auto place = index.find(key);
  if (!place) return 0;
  const auto read = read_all(log, *place);
  if (!read) return 0;
  const auto version = version_read(*read, key);
  EXPECT_GT(version, 0) << "wrong bytes, key " << key;
  return version;
}

/// What a reopened log may say of one key: its last durable change, or a later one.
void check_key(const ObjectLog& log, const TestIndex& index, std::uint64_t key,
               const std::vector<Change>& changes, std::uint32_t oldest) {
  const auto version = version_of(log, index, key);
  const auto durable = std::find_if(changes.rbegin(), changes.rend(),
                                    [](const Change& change) { return change.is_durable; });
  const auto first_allowed = durable == changes.rend() ? changes.begin() : durable.base() - 1;
  if (version == 0) {
    // A miss must have a reason: removed, reclaimed, or replaced by something that was torn.
    const bool has_reason = durable == changes.rend() || durable->version == 0 ||
                            durable->is_reclaimed || durable->place->segment < oldest ||
                            durable != changes.rbegin();
    EXPECT_TRUE(has_reason) << "key " << key << " lost version " << durable->version;
    return;
  }
  const bool is_allowed = std::any_of(first_allowed, changes.end(), [&](const Change& change) {
    return change.version == version;
  });
  EXPECT_TRUE(is_allowed) << "key " << key << " came back as version " << version;
}

std::unique_ptr<ObjectLog> reopen(SimFileSystem& disk, TestIndex& index) {
  index = {};
  auto log = open_log(disk, kSegmentBytes, kSegments, index.recorder());
  EXPECT_OK(log);
  return log ? std::move(*log) : nullptr;
}

/// Everything that must hold once the power is back.
void check_recovered(SimFileSystem& disk, const History& history) {
  TestIndex first;
  auto log = reopen(disk, first);
  ASSERT_TRUE(log);
  ASSERT_LE(log->bytes_on_disk(), std::uint64_t{kSegmentBytes} * kSegments);
  const auto oldest = oldest_segment(disk);
  for (const auto& [key, changes] : history) check_key(*log, first, key, changes, oldest);

  TestIndex second;
  log = reopen(disk, second);
  ASSERT_TRUE(log);
  EXPECT_EQ(first.places, second.places) << "opening again gives another index";

  constexpr std::uint64_t kNewKey = 1'000;
  const TestRecord fresh(kNewKey, 77, 500);
  const auto place = log->append(fresh.view, second.reclaimer());
  ASSERT_TRUE(place) << place.error().message();
  EXPECT_OK(log->sync());
  log = nullptr;
  disk.power_cycle();
  TestIndex third;
  log = reopen(disk, third);
  ASSERT_TRUE(log);
  EXPECT_EQ(version_of(*log, third, kNewKey), 77) << "appending does not work";
  third.places.erase(test::fingerprint_of(kNewKey).low);
  second.places.erase(test::fingerprint_of(kNewKey).low);
  EXPECT_EQ(third.places, second.places);
}

std::uint64_t operations_of(std::uint64_t seed) {
  SimFileSystem disk(seed);
  Workload workload(disk, seed);
  workload.run();
  return disk.operations();
}

class ObjectLogCrash : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, ObjectLogCrash, ::testing::Range<std::uint64_t>(1, 13));

TEST_P(ObjectLogCrash, AtEveryOperation) {
  const std::uint64_t seed = GetParam();
  const auto operations = operations_of(seed);
  ASSERT_GT(operations, 100U);
  for (std::uint64_t at = 0; at < operations; ++at) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", power fails at operation " +
                 std::to_string(at));
    SimFileSystem disk(seed * 1'000'003 + at);
    Workload workload(disk, seed);
    disk.crash_at(at);
    workload.run();
    workload.close_handles();
    disk.power_cycle();
    check_recovered(disk, workload.history());
    if (::testing::Test::HasFailure()) return;
  }
}

TEST_P(ObjectLogCrash, AgainWhileRecovering) {
  const std::uint64_t seed = GetParam();
  const auto operations = operations_of(seed);
  for (std::uint64_t at = seed % 7; at < operations; at += 7) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", power fails at operation " +
                 std::to_string(at));
    SimFileSystem disk(seed * 1'000'003 + at);
    Workload workload(disk, seed);
    disk.crash_at(at);
    workload.run();
    for (std::uint64_t again = at % 3; again < 40; again += 3) {
      workload.close_handles();
      disk.power_cycle();
      disk.crash_at(disk.operations() + again);
      workload.open();
      if (!disk.has_crashed()) break;
    }
    workload.close_handles();
    disk.power_cycle();
    check_recovered(disk, workload.history());
    if (::testing::Test::HasFailure()) return;
  }
}

TEST_P(ObjectLogCrash, AnyOperationFails) {
  const std::uint64_t seed = GetParam();
  const auto operations = operations_of(seed);
  for (const auto error : {errc::io_error, errc::no_space_on_device})
    for (std::uint64_t at = 0; at < operations; ++at) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", operation " + std::to_string(at) +
                   " fails with " + make_error_code(error).message());
      SimFileSystem disk(seed * 1'000'003 + at);
      Workload workload(disk, seed, Workload::Faults::Planned);
      disk.fail_operation(at, error);
      workload.run();
      workload.check_reads();
      workload.close_handles();
      disk.power_cycle();
      check_recovered(disk, workload.history());
      if (::testing::Test::HasFailure()) return;
    }
}

TEST(ObjectLogFaults, AFailedWriteMovesOnToAFreshSegment) {
  SimFileSystem disk(1);
  TestIndex index;
  auto log = reopen(disk, index);
  const auto first = log->append(TestRecord(1, 1, 100).view, index.reclaimer());
  ASSERT_TRUE(first);
  disk.fail_operation(disk.operations(), errc::io_error);
  EXPECT_EQ(log->append(TestRecord(2, 1, 100).view, index.reclaimer()).error(), errc::io_error);
  const auto third = log->append(TestRecord(3, 1, 100).view, index.reclaimer());
  ASSERT_TRUE(third);
  EXPECT_GT(third->segment, first->segment);
  EXPECT_OK(log->sync());
  log.reset();
  disk.power_cycle();
  log = reopen(disk, index);
  EXPECT_EQ(version_of(*log, index, 1), 1);
  EXPECT_EQ(version_of(*log, index, 2), 0);
  EXPECT_EQ(version_of(*log, index, 3), 1);
}

TEST(ObjectLogFaults, ADiskThatRefusesEveryWriteDoesNotCostTheCache) {
  SimFileSystem disk(1);
  TestIndex index;
  auto log = reopen(disk, index);
  for (std::uint64_t i = 0; i < 40; ++i) {
    const auto place = log->append(TestRecord(i, 1, 900).view, index.reclaimer());
    ASSERT_TRUE(place);
    index.put(test::fingerprint_of(i), RecordKind::Object, *place);
  }
  const auto before = index.reclaimed;
  const auto start = disk.operations();
  for (std::uint64_t i = 0; i < 1'000; ++i) disk.fail_operation(start + 8 + i, errc::io_error);
  for (std::uint64_t i = 0; i < 20; ++i)
    static_cast<void>(log->append(TestRecord(100, 1, 900).view, index.reclaimer()));
  EXPECT_LE(index.reclaimed - before, 4U) << "more than one segment's records";
}

TEST(ObjectLogFaults, AFailedSyncIsReportedOnceAndForAllRecordsItCovers) {
  SimFileSystem disk(1);
  TestIndex index;
  auto log = reopen(disk, index);
  ASSERT_TRUE(log->append(TestRecord(1, 1, 100).view, index.reclaimer()));
  disk.fail_operation(disk.operations(), errc::io_error);
  EXPECT_EQ(log->sync().error(), errc::io_error);
  const auto again = log->append(TestRecord(1, 2, 100).view, index.reclaimer());
  ASSERT_TRUE(again);
  EXPECT_OK(log->sync());
  log.reset();
  disk.power_cycle();
  log = reopen(disk, index);
  EXPECT_EQ(version_of(*log, index, 1), 2);
}

TEST(ObjectLogFaults, WhatAFailedWriteLeftIsNoRemovalOfWhatWasThere) {
  constexpr std::uint64_t kNeverSealed = 1U << 20;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SimFileSystem disk(seed);
    TestIndex index;
    auto log = *open_log(disk, kSegmentBytes, kSegments, index.recorder(), kNeverSealed);
    ASSERT_TRUE(log->append(TestRecord(1, 1, 900).view, index.reclaimer()));
    EXPECT_OK(log->sync());
    disk.fail_operation(disk.operations(), errc::io_error);
    ASSERT_FALSE(log->append(TestRecord(1, 2, 900).view, index.reclaimer()));
    log.reset();  // the process is killed
    TestIndex after;
    log = *open_log(disk, kSegmentBytes, kSegments, after.recorder(), kNeverSealed);
    EXPECT_EQ(version_of(*log, after, 1), 1) << "seed " << seed;
  }
}

TEST(ObjectLogFaults, ASyncThatFailsInsideAnAppendIsReportedByTheNextSync) {
  SimFileSystem disk(1);
  TestIndex index;
  auto log = reopen(disk, index);
  for (std::uint64_t i = 0; i < 3; ++i)
    ASSERT_TRUE(log->append(TestRecord(i, 1, 900).view, index.reclaimer()));
  // The next append finds the segment full and seals it: its first operation is that sync.
  disk.fail_operation(disk.operations(), errc::io_error);
  const auto next = log->append(TestRecord(9, 1, 900).view, index.reclaimer());
  ASSERT_TRUE(next);
  ASSERT_EQ(next->segment, 2U);
  EXPECT_EQ(log->sync().error(), errc::io_error);
  EXPECT_OK(log->sync());
}

TEST(ObjectLogFaults, ASyncAfterRestartCoversWhatAKilledProcessLeft) {
  // Whatever fails while opening: once sync() has succeeded, replayed records are durable.
  for (std::uint64_t n = 0; n < 20; ++n) {
    SimFileSystem disk(n);
    TestIndex index;
    auto log = reopen(disk, index);
    for (std::uint64_t i = 0; i < 3; ++i)
      ASSERT_TRUE(log->append(TestRecord(i, 1, 700).view, index.reclaimer()));
    log.reset();
    disk.fail_operation(disk.operations() + n, errc::io_error);
    auto opened = open_log(disk, kSegmentBytes, kSegments, test::ignore_recovered);
    if (!opened || !(*opened)->sync()) continue;
    opened->reset();
    disk.power_cycle();
    log = reopen(disk, index);
    for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(version_of(*log, index, i), 1) << n;
  }
}

TEST(ObjectLogFaults, AFullDiskCostsOneSegmentAndIsLeftWithoutRestart) {
  SimFileSystem disk(1);
  TestIndex index;
  auto log = reopen(disk, index);
  std::uint64_t key = 0;
  while (log->counters().segments_created < 3) {
    const auto place = log->append(TestRecord(key, 1, 900).view, index.reclaimer());
    ASSERT_TRUE(place);
    index.put(test::fingerprint_of(key++), RecordKind::Object, *place);
  }
  // Others take what there is: even after a segment of ours is given up there is no room.
  disk.set_capacity_bytes(kSegmentBytes);
  std::size_t refused = 0;
  for (int i = 0; i < 30; ++i) {
    const auto place = log->append(TestRecord(key++, 1, 900).view, index.reclaimer());
    if (place) continue;
    EXPECT_EQ(place.error(), errc::no_space_on_device);
    ++refused;
  }
  EXPECT_GT(refused, 20U);
  EXPECT_EQ(log->counters().segments_reclaimed, 1U);
  disk.set_capacity_bytes(1 << 20);
  const auto place = log->append(TestRecord(key, 5, 900).view, index.reclaimer());
  ASSERT_TRUE(place);
  EXPECT_EQ(version_read(*read_all(*log, *place), key), 5);
}

TEST(ObjectLogFaults, OnAFullDiskTheOldestSegmentMakesRoom) {
  SimFileSystem disk(1);
  TestIndex index;
  auto log = reopen(disk, index);
  disk.set_capacity_bytes(3 * kSegmentBytes);
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto place = log->append(TestRecord(i, 1, 900).view, index.reclaimer());
    ASSERT_TRUE(place) << i << place.error().message();
    ASSERT_EQ(version_read(*read_all(*log, *place), i), 1);
  }
  EXPECT_LE(disk.bytes_used_peak(), 3 * kSegmentBytes);
}

/// A power cut must not bring back a segment without the purge that concerned it and was removed
/// after it.
TEST(ObjectLogFaults, APurgeOutlivesWhatIsOlderThanItselfThroughAnyPowerCut) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SimFileSystem disk(seed);
    {
      TestIndex index;
      auto log = reopen(disk, index);
      std::uint64_t key = 0;
      // Appends until that segment is the newest.
      const auto fill = [&](std::uint32_t segment) {
        for (;;) {
          const auto place = log->append(TestRecord(key++, 1, 900).view, index.reclaimer());
          ASSERT_TRUE(place);
          if (place->segment >= segment) return;
        }
      };
      fill(2);
      ASSERT_TRUE(log->append(TestRecord(50, 1, 0, RecordKind::Purge).view, index.reclaimer()));
      ASSERT_TRUE(log->sync());
      while (log->segments()->next_after(0) < 3) fill(log->segments()->next_after(0) + kSegments);
    }
    disk.power_cycle();
    bool has_old = false;
    bool has_purge = false;
    const auto log =
        open_log(disk, kSegmentBytes, kSegments,
                 [&](const admission::Fingerprint& fingerprint, RecordKind kind, const Location&) {
                   has_purge = has_purge || kind == RecordKind::Purge;
                   has_old = has_old || fingerprint == test::fingerprint_of(0);
                 });
    ASSERT_TRUE(log);
    EXPECT_TRUE(!has_old || has_purge) << "seed " << seed;
  }
}

TEST(ObjectLogFaults, FailingSyncsNeverMakeAPromise) {
  SimFileSystem disk(5);
  TestIndex index;
  auto log = reopen(disk, index);
  disk.fail_every_sync();
  for (std::uint64_t i = 0; i < 40; ++i) {
    static_cast<void>(log->append(TestRecord(i, 1, 700).view, index.reclaimer()));
    EXPECT_FALSE(log->sync()) << i;
  }
}

}  // namespace
}  // namespace secondsight::cache::log
