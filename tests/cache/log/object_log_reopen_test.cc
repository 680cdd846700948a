// A log that opens late, and one that starts over in a directory that is another one now.

#include <gtest/gtest.h>

#include "cache/log/object_log.h"
#include "cache/log/segment_format.h"
#include "config/units.h"
#include "tests/cache/log/file_system_fixture.h"

namespace secondsight::cache::log {
namespace {

namespace errc = boost::system::errc;
using test::ignore_reclaimed;
using test::ignore_recovered;
using test::read_all;
using test::TestIndex;
using test::TestRecord;
using test::version_read;

constexpr std::uint32_t kSegmentBytes = 64_KiB;

ObjectLog::Options options_of(std::uint32_t segments) {
  ObjectLog::Options options;
  options.segment_bytes = kSegmentBytes;
  options.capacity_bytes = std::uint64_t{kSegmentBytes} * segments;
  options.seed_id = test::kSeedId;
  options.seal_bytes = 0;
  return options;
}

/// Keys from `first` on, of 10 KiB each.
void append_some(ObjectLog& log, TestIndex& index, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t key = first; key < first + count; ++key) {
    const TestRecord record(key, 1, 10_KiB);
    const auto at = log.append(record.view, index.reclaimer());
    ASSERT_TRUE(at) << at.error().message();
    index.put(record.view.fingerprint, record.view.kind, *at);
  }
}

void remove_key(ObjectLog& log, TestIndex& index, std::uint64_t key) {
  const TestRecord record(key, 2, 0, RecordKind::Tombstone);
  EXPECT_OK(log.append(record.view, index.reclaimer()));
  index.places.erase(record.view.fingerprint.low);
}

class ObjectLogReopen : public test::OnEveryFileSystem {};
INSTANTIATE_ON_EVERY_FILE_SYSTEM(ObjectLogReopen);

TEST_P(ObjectLogReopen, AClosedOneRefusesUntilItIsOpen) {
  TestIndex before;
  {
    auto log = test::open_log(files(), kSegmentBytes, 8, ignore_recovered);
    ASSERT_TRUE(log);
    append_some(**log, before, 0, 20);
    EXPECT_OK((*log)->close());
  }
  auto log = ObjectLog::closed(files(), options_of(8));
  ASSERT_TRUE(log);
  const TestRecord record(100, 1, 10);
  EXPECT_EQ((*log)->append(record.view, ignore_reclaimed).error(), errc::not_connected);
  EXPECT_EQ((*log)->sync().error(), errc::not_connected);
  EXPECT_OK((*log)->close());
  EXPECT_EQ((*log)->bytes_on_disk(), 0U);
  EXPECT_EQ((*log)->open_object(*before.find(0), ReadMode::Blocking).error(),
            errc::no_such_file_or_directory);

  TestIndex after;
  EXPECT_OK((*log)->open(after.recorder()));
  EXPECT_EQ(after.places, before.places);
  append_some(**log, after, 100, 1);
  EXPECT_EQ(version_read(*read_all(**log, *after.find(0)), 0), 1);
}

TEST_P(ObjectLogReopen, StartingOverLeavesNothing) {
  constexpr std::uint32_t kLarge = 2_MiB;  // for a record that is not read at once
  auto log = test::open_log(files(), kLarge, 8, ignore_recovered);
  ASSERT_TRUE(log);
  TestIndex index;
  append_some(**log, index, 0, 300);
  const TestRecord large(999, 1, 400_KiB);
  const Location old = *(*log)->append(large.view, index.reclaimer());
  const auto held = (*log)->open_object(old, ReadMode::Blocking);
  ASSERT_TRUE(held);

  EXPECT_OK((*log)->start_over(index.reclaimer()));
  EXPECT_TRUE(index.places.empty());
  EXPECT_TRUE(files().list()->empty());
  EXPECT_EQ((*log)->bytes_on_disk(), kLarge);  // what the reader holds
  std::vector<std::byte> body(400_KiB);
  EXPECT_OK((*held)->read_body(0, body, ReadMode::Blocking));
  EXPECT_EQ(body, large.body);

  append_some(**log, index, 100, 20);
  for (const auto& [key, at] : index.places) EXPECT_GT(at.segment, old.segment);  // never again
  EXPECT_OK((*log)->close());
  log->reset();
  TestIndex after;
  ASSERT_TRUE(test::open_log(files(), kLarge, 8, after.recorder()));
  EXPECT_EQ(after.places, index.places);
}

TEST_P(ObjectLogReopen, StartingOverRemovesWhatItNeverKnew) {
  TestIndex ignored;
  {
    auto other = test::open_log(files(), kSegmentBytes, 8, ignore_recovered);
    ASSERT_TRUE(other);
    append_some(**other, ignored, 0, 10);
  }
  EXPECT_OK(files().create("seed"));
  auto log = ObjectLog::closed(files(), options_of(8));
  ASSERT_TRUE(log);
  EXPECT_OK((*log)->start_over(ignore_reclaimed));
  EXPECT_EQ(*files().list(), std::vector<std::string>{"seed"});
  append_some(**log, ignored, 0, 1);
}

/// Each operation of opening fails once; the next try comes to what one without trouble does.
TEST(ObjectLogReopenFaults, OpeningAgainAfterAnyFailureIsAsGoodAsTheFirstTime) {
  for (std::uint64_t n = 0;; ++n) {
    SCOPED_TRACE(n);
    test::SimFileSystem disk(n);
    TestIndex before;
    {
      auto log = test::open_log(disk, kSegmentBytes, 8, ignore_recovered);
      append_some(**log, before, 0, 20);
      remove_key(**log, before, 3);
      EXPECT_OK((*log)->sync());
    }
    auto log = ObjectLog::closed(disk, options_of(8));
    const std::uint64_t first = disk.operations();
    disk.fail_operation(first + n, errc::io_error);
    TestIndex tried;
    const bool failed = !(*log)->open(tried.recorder());
    const bool was_reached = disk.operations() > first + n;
    if (failed) {
      EXPECT_EQ((*log)->bytes_on_disk(), 0U);
      EXPECT_OK((*log)->open(tried.recorder()));
    }
    EXPECT_EQ(tried.places, before.places);
    if (HasFailure() || !was_reached) break;
    append_some(**log, tried, 50, 20);
    for (const auto& [low, at] : tried.places) EXPECT_OK(read_all(**log, at));
  }
}

/// The power fails, or an operation does, at every point of starting over: what was removed before
/// stays removed, and the next try finishes.
TEST(ObjectLogReopenFaults, WhatWasRemovedStaysRemovedHoweverStartingOverEnds) {
  for (const bool is_crash : {true, false}) {
    for (std::uint64_t n = 0;; ++n) {
      SCOPED_TRACE(std::string(is_crash ? "crash at " : "failure at ") + std::to_string(n));
      test::SimFileSystem disk(n);
      auto log = test::open_log(disk, kSegmentBytes, 16, ignore_recovered);
      TestIndex index;
      append_some(**log, index, 0, 12);
      remove_key(**log, index, 1);
      append_some(**log, index, 20, 12);
      remove_key(**log, index, 20);
      EXPECT_OK((*log)->sync());

      const std::uint64_t first = disk.operations();
      if (is_crash)
        disk.crash_at(first + n);
      else
        disk.fail_operation(first + n, errc::io_error);
      const auto done = (*log)->start_over(index.reclaimer());
      const bool was_reached = disk.operations() > first + n;
      if (!done && !is_crash) {
        const TestRecord record(100, 1, 10);
        EXPECT_EQ((*log)->append(record.view, ignore_reclaimed).error(), errc::not_connected);
        for (const auto& [low, at] : index.places) EXPECT_OK(read_all(**log, at));
        EXPECT_OK((*log)->start_over(index.reclaimer()));
        EXPECT_TRUE(index.places.empty());
      }
      log->reset();
      disk.power_cycle();
      TestIndex after;
      EXPECT_OK(test::open_log(disk, kSegmentBytes, 16, after.recorder()));
      EXPECT_FALSE(after.find(1));
      EXPECT_FALSE(after.find(20));
      EXPECT_TRUE(is_crash || after.places.empty());
      if (HasFailure()) return;
      if (!was_reached) break;
    }
  }
}

TEST(ObjectLogReopenFaults, ANewerVersionIsNotTouched) {
  test::SimFileSystem disk(1);
  auto log = test::open_log(disk, kSegmentBytes, 8, ignore_recovered);
  TestIndex index;
  append_some(**log, index, 0, 10);
  SegmentHeader header;
  header.version = kFormatVersion + 1;
  header.number = 77;
  header.segment_bytes = kSegmentBytes;
  const auto bytes = encode_segment_header(header);
  EXPECT_OK(disk.create("0000004d.segment"));
  disk.set_contents("0000004d.segment", {bytes.begin(), bytes.end()});
  const auto names = *disk.list();
  EXPECT_EQ((*log)->start_over(index.reclaimer()).error(), errc::not_supported);
  EXPECT_EQ(*disk.list(), names);
  for (const auto& [low, at] : index.places) EXPECT_OK(read_all(**log, at));
}

}  // namespace
}  // namespace secondsight::cache::log
