#include "cache/store_writer.h"

#include <algorithm>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "tests/cache/cache_fixture.h"

namespace secondsight::cache {
namespace {

constexpr std::uint64_t kDiskBytes = 16_MiB;

/// A writer and what it writes to. Everything is closed and opened again by reopen().
class StoreWriterTest : public ::testing::Test {
 protected:
  StoreWriterTest() { open(); }
  ~StoreWriterTest() override {
    disk_.gate->open();
    close();
  }

  void open() {
    auto log = log::ObjectLog::open(
        *disk_.files,
        {.capacity_bytes = kDiskBytes,
         .segment_bytes = log::ObjectLog::segment_bytes_for(kDiskBytes),
         .seed_id = kSeed.id()},
        [this](const admission::Fingerprint& key, log::RecordKind kind, const log::Location& at) {
          if (kind == log::RecordKind::Tombstone) index_->erase(key);
          if (kind == log::RecordKind::Object || kind == log::RecordKind::LargeObject ||
              kind == log::RecordKind::VaryMarker)
            index_->insert(key, {at, kind});
        });
    ASSERT_TRUE(log);
    log_ = std::move(*log);
    writer_ =
        std::make_unique<StoreWriter>(*log_, *index_, &memory_, purges_, kQueueBytes, metrics_);
  }
  void close() {
    if (writer_) {
      EXPECT_EQ(drained_queue_bytes(), 0U);
    }
    writer_.reset();
    log_.reset();
  }
  void reopen() {
    close();
    index_ = std::make_unique<Index>();
    open();
  }
  std::uint64_t drained_queue_bytes() {
    writer_->drain();
    return writer_->queue_bytes();
  }
  bool is_in_index(std::string_view target) const {
    return index_->find(key_of(target).fingerprint()).has_value();
  }
  std::shared_ptr<Fill> begin_fill(std::string_view target) {
    Detail refusal = Detail::None;
    auto fill = writer_->begin_fill(
        key_of(target), purges_.sequence(), [this] { ++progress_; }, refusal);
    refusal_ = refusal;
    return fill;
  }
  /// The body as read back from disk; empty when there is none.
  std::vector<std::byte> read(std::string_view target) const {
    const auto entry = index_->find(key_of(target).fingerprint());
    if (!entry) return {};
    auto reader = log_->open_object(entry->location, ReadMode::Blocking);
    if (!reader) return {};
    std::vector<std::byte> body((*reader)->head().body_bytes);
    if (!(*reader)->read_body(0, body, ReadMode::Blocking)) return {};
    return body;
  }
  /// The next operation of the disk fails.
  void fail_next(boost::system::errc::errc_t error = boost::system::errc::io_error) {
    disk_.sim->fail_operation(disk_.sim->operations(), error);
  }
  void hold_the_writer() {
    disk_.gate->close();
    ASSERT_EQ(writer_->store(object_of("/holds-the-writer")), Detail::None);
    disk_.gate->wait_for_writer();
  }

  static constexpr std::uint64_t kQueueBytes = 8_MiB;
  TestDisk disk_;
  Metrics metrics_;
  MemoryTier memory_{64_MiB};
  PurgeList purges_{kSeed};
  std::unique_ptr<Index> index_ = std::make_unique<Index>();
  std::unique_ptr<log::ObjectLog> log_;
  std::unique_ptr<StoreWriter> writer_;
  std::atomic<int> progress_{0};
  Detail refusal_ = Detail::None;
};

std::vector<std::byte> bytes_of(const Object& object) {
  std::vector<std::byte> bytes;
  for (const ChunkPtr& chunk : object.body) bytes.insert(bytes.end(), chunk->begin(), chunk->end());
  return bytes;
}

TEST_F(StoreWriterTest, ReadsBackWhatItWroteInOneRecordOrInParts) {
  const std::uint64_t part_bytes = log_->part_body_bytes_max();
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, part_bytes - 1, part_bytes,
                                    part_bytes + 1, 2 * part_bytes, 5 * part_bytes + 17}) {
    const std::string target = "/" + std::to_string(bytes);
    const auto object = object_of(target, bytes);
    object->on_disk = true;
    ASSERT_EQ(writer_->store(object), Detail::None);
    EXPECT_EQ(drained_queue_bytes(), 0U);
    EXPECT_TRUE(is_in_index(target)) << bytes;
    EXPECT_TRUE(read(target) == bytes_of(*object)) << bytes;
    EXPECT_TRUE(object->on_disk) << bytes;
  }
}

TEST_F(StoreWriterTest, AKeyThatNoSegmentTakesIsRefusedAlone) {
  const std::string target = "/" + std::string(log_->segment_bytes(), 'x');
  EXPECT_EQ(writer_->store(object_of(target)), Detail::None);
  auto marker = object_of(target + "y");
  marker->is_vary_marker = true;
  writer_->store_for_certain(marker);
  EXPECT_EQ(drained_queue_bytes(), 0U);
  EXPECT_FALSE(is_in_index(target));
  EXPECT_EQ(writer_->find_pending(marker->key), nullptr);
  EXPECT_EQ(writer_->store(object_of("/next")), Detail::None) << "the disk is well";
  EXPECT_EQ(drained_queue_bytes(), 0U);
  EXPECT_TRUE(is_in_index("/next"));
}

TEST_F(StoreWriterTest, FindsWhatIsOnItsWay) {
  hold_the_writer();
  const auto object = object_of("/a");
  ASSERT_EQ(writer_->store(object), Detail::None);
  EXPECT_FALSE(is_in_index("/a"));
  EXPECT_EQ(writer_->find_pending(key_of("/a")), object);
  EXPECT_EQ(writer_->find_pending(key_of("/b")), nullptr);
  EXPECT_TRUE(writer_->is_on_its_way(key_of("/a")));
  disk_.gate->open();
  writer_->drain();
  EXPECT_TRUE(is_in_index("/a"));
  EXPECT_EQ(writer_->find_pending(key_of("/a")), nullptr);
  EXPECT_FALSE(writer_->is_on_its_way(key_of("/a")));
}

TEST_F(StoreWriterTest, RefusesWhatDoesNotFitInItsQueue) {
  hold_the_writer();
  int taken = 0;
  while (writer_->store(object_of("/" + std::to_string(taken), 1_MiB)) == Detail::None) ++taken;
  EXPECT_GE(taken, 6);
  EXPECT_LT(taken, 8);
  EXPECT_EQ(writer_->store(object_of("/more", 1_MiB)), Detail::QueueFull);
  EXPECT_EQ(begin_fill("/fill"), nullptr);
  EXPECT_EQ(refusal_, Detail::QueueFull);
  EXPECT_LE(writer_->queue_bytes(), kQueueBytes);
  disk_.gate->open();
  EXPECT_EQ(drained_queue_bytes(), 0U);
  EXPECT_EQ(writer_->store(object_of("/more", 1_MiB)), Detail::None);
}

TEST_F(StoreWriterTest, ARemovedKeyIsNotFoundWhereverItWas) {
  for (const bool being_written : {true, false}) {
    SCOPED_TRACE(being_written);
    disk_.gate->close();
    if (!being_written) {
      ASSERT_EQ(writer_->store(object_of("/other")), Detail::None);
    }
    ASSERT_EQ(writer_->store(object_of("/a")), Detail::None);
    disk_.gate->wait_for_writer();
    writer_->remove(key_of("/a"));
    EXPECT_EQ(writer_->find_pending(key_of("/a")), nullptr);
    EXPECT_FALSE(writer_->is_on_its_way(key_of("/a")));
    disk_.gate->open();
    EXPECT_EQ(drained_queue_bytes(), 0U);
    EXPECT_FALSE(is_in_index("/a"));
    reopen();
    EXPECT_FALSE(is_in_index("/a")) << "a restart must not revive it";
  }
}

TEST_F(StoreWriterTest, WhatIsStoredAfterARemovalStays) {
  hold_the_writer();
  ASSERT_EQ(writer_->store(object_of("/a", 10)), Detail::None);
  writer_->remove(key_of("/a"));
  const auto second = object_of("/a", 20);
  ASSERT_EQ(writer_->store(second), Detail::None);
  EXPECT_EQ(writer_->find_pending(key_of("/a")), second);
  disk_.gate->open();
  writer_->drain();
  EXPECT_EQ(read("/a").size(), 20U);
  reopen();
  EXPECT_EQ(read("/a").size(), 20U);
}

TEST_F(StoreWriterTest, WhatWasReplacedInTheQueueIsNotWritten) {
  hold_the_writer();
  for (std::size_t i = 1; i <= 5; ++i)
    ASSERT_EQ(writer_->store(object_of("/a", 1'000 * i)), Detail::None);
  disk_.gate->open();
  writer_->drain();
  EXPECT_EQ(read("/a").size(), 5'000U);
  EXPECT_EQ(log_->counters().records, 2U) << "the one that held the writer, and the last";
}

TEST_F(StoreWriterTest, AFillIsVisibleOnceItIsCommitted) {
  const auto fill = begin_fill("/a");
  ASSERT_TRUE(fill);
  EXPECT_EQ(writer_->queue_bytes(), StoreWriter::kFillReserveBytes);
  const std::uint64_t part_bytes = log_->part_body_bytes_max();
  for (std::uint64_t i = 0; i < 3; ++i)
    writer_->append(fill, {chunk_of(part_bytes, i * part_bytes)}, part_bytes);
  writer_->drain();
  EXPECT_EQ(fill->written_bytes(), 3 * part_bytes);
  EXPECT_EQ(fill->waiting_bytes(), 0U);
  EXPECT_EQ(progress_, 3);
  EXPECT_FALSE(is_in_index("/a"));
  std::vector<std::byte> out(100);
  EXPECT_EQ(*fill->read(part_bytes - 50, out, ReadMode::Blocking), 50U) << "one part's";
  EXPECT_TRUE(std::equal(out.begin(), out.begin() + 50, chunk_of(50, part_bytes - 50)->begin()));
  EXPECT_FALSE(fill->read(3 * part_bytes, out, ReadMode::Blocking));

  writer_->commit(fill, head_of());
  EXPECT_EQ(drained_queue_bytes(), 0U);
  EXPECT_TRUE(fill->committed());
  EXPECT_TRUE(read("/a") == *chunk_of(3 * part_bytes));
}

TEST_F(StoreWriterTest, AnAbandonedFillLeavesNothing) {
  const auto fill = begin_fill("/a");
  ASSERT_TRUE(fill);
  writer_->append(fill, {chunk_of(100)}, 100);
  writer_->abandon(fill);
  EXPECT_EQ(drained_queue_bytes(), 0U);
  EXPECT_TRUE(fill->failed());
  EXPECT_FALSE(is_in_index("/a"));
}

TEST_F(StoreWriterTest, AFillThatFailsEndsItsReservationOnce) {
  for (const bool commit : {true, false}) {
    const auto fill = begin_fill("/a");
    ASSERT_TRUE(fill);
    fail_next();
    writer_->append(fill, {chunk_of(100)}, 100);
    writer_->drain();
    EXPECT_TRUE(fill->failed());
    EXPECT_EQ(writer_->queue_bytes(), StoreWriter::kFillReserveBytes);
    writer_->append(fill, {chunk_of(100, 100)}, 100);
    if (commit) {
      writer_->commit(fill, head_of());
    } else {
      writer_->abandon(fill);
    }
    EXPECT_EQ(drained_queue_bytes(), 0U);
    EXPECT_FALSE(fill->committed());
    EXPECT_FALSE(is_in_index("/a"));
    EXPECT_EQ(begin_fill("/b"), nullptr);
    EXPECT_EQ(refusal_, Detail::DiskError);
    writer_->try_disk_again();
  }
}

TEST_F(StoreWriterTest, ARemovalOvertakesAFillThatIsBeingCommitted) {
  const auto fill = begin_fill("/a");
  ASSERT_TRUE(fill);
  hold_the_writer();
  writer_->append(fill, {chunk_of(100)}, 100);
  writer_->commit(fill, head_of());
  EXPECT_TRUE(writer_->is_on_its_way(key_of("/a")));
  writer_->remove(key_of("/a"));
  disk_.gate->open();
  EXPECT_EQ(drained_queue_bytes(), 0U);
  EXPECT_FALSE(fill->committed());
  EXPECT_TRUE(fill->failed());
  EXPECT_FALSE(is_in_index("/a"));
  reopen();
  EXPECT_FALSE(is_in_index("/a"));
}

TEST_F(StoreWriterTest, AfterAFailedWriteItRefusesUntilToldToTryAgain) {
  const auto object = object_of("/a");
  object->on_disk = true;
  fail_next(boost::system::errc::no_space_on_device);
  ASSERT_EQ(writer_->store(object), Detail::None);
  EXPECT_EQ(drained_queue_bytes(), 0U);
  EXPECT_FALSE(object->on_disk) << "its next use writes it again";
  EXPECT_FALSE(is_in_index("/a"));
  EXPECT_EQ(writer_->store(object), Detail::DiskError);
  writer_->try_disk_again();
  EXPECT_EQ(writer_->store(object), Detail::None);
  writer_->drain();
  EXPECT_TRUE(is_in_index("/a"));
}

TEST_F(StoreWriterTest, ATombstoneThatCouldNotBeWrittenIsOwed) {
  enum class Paid { ByNewChance, ByEnd, ByNewerObject };
  for (const Paid paid : {Paid::ByNewChance, Paid::ByEnd, Paid::ByNewerObject}) {
    ASSERT_EQ(writer_->store(object_of("/a", 10)), Detail::None);
    writer_->drain();
    disk_.gate->close();
    writer_->remove(key_of("/a"));
    disk_.gate->wait_for_writer();
    if (paid == Paid::ByNewerObject) {
      ASSERT_EQ(writer_->store(object_of("/a", 20)), Detail::None);
    }
    fail_next();
    disk_.gate->open();
    writer_->drain();
    if (paid != Paid::ByEnd) {
      writer_->try_disk_again();
      ASSERT_EQ(writer_->store(object_of("/b", 10)), Detail::None);
      writer_->drain();
    }
    reopen();
    EXPECT_EQ(read("/a").size(), paid == Paid::ByNewerObject ? 20U : 0U);
  }
}

TEST_F(StoreWriterTest, WhatMustNotBeLostIsTakenWhateverWaitsAndHoweverTheDiskIs) {
  const auto marker = object_of("/m", 0);
  marker->is_vary_marker = true;
  hold_the_writer();
  for (int i = 0; writer_->store(object_of("/" + std::to_string(i), 10'000)) == Detail::None; ++i) {
  }
  writer_->store_for_certain(marker);
  EXPECT_EQ(writer_->find_pending(key_of("/m")), marker);
  disk_.gate->open();
  EXPECT_EQ(drained_queue_bytes(), 0U);
  EXPECT_TRUE(is_in_index("/m"));

  const auto newer = object_of("/m", 0, "2");
  newer->is_vary_marker = true;
  fail_next();
  ASSERT_EQ(writer_->store(object_of("/x", 10)), Detail::None);
  writer_->drain();
  fail_next();
  writer_->store_for_certain(newer);  // though the disk fails
  EXPECT_EQ(drained_queue_bytes(), 0U);
  EXPECT_EQ(writer_->find_pending(key_of("/m")), newer) << "owed, and found meanwhile";
  writer_->try_disk_again();
  while (writer_->find_pending(key_of("/m")) != nullptr) std::this_thread::yield();
  EXPECT_TRUE(is_in_index("/m"));
  reopen();
  const auto entry = index_->find(key_of("/m").fingerprint());
  ASSERT_TRUE(entry);
  const auto reader = log_->open_object(entry->location, ReadMode::Blocking);
  ASSERT_TRUE(reader);
  EXPECT_EQ((*reader)->head().head, "OK\r\nX-Value: 2\r\n");
}

TEST_F(StoreWriterTest, ARefreshGivesTheStoredBodyANewHead) {
  ASSERT_EQ(writer_->store(object_of("/a", 1'000)), Detail::None);
  writer_->drain();
  const auto old = *index_->find(key_of("/a").fingerprint());
  writer_->refresh(key_of("/a"), head_of("2"), old, {{old.location, 1'000}}, 0);
  EXPECT_EQ(drained_queue_bytes(), 0U);
  const auto fresh = *index_->find(key_of("/a").fingerprint());
  EXPECT_NE(fresh.location, old.location);
  const auto reader = log_->open_object(fresh.location, ReadMode::Blocking);
  ASSERT_TRUE(reader);
  EXPECT_EQ((*reader)->head().head, "OK\r\nX-Value: 2\r\n");
  EXPECT_TRUE(read("/a") == *chunk_of(1'000));
}

TEST_F(StoreWriterTest, ARefreshThatWaitsIsFoundAlready) {
  ASSERT_EQ(writer_->store(object_of("/a", 1'000)), Detail::None);
  writer_->drain();
  const auto old = *index_->find(key_of("/a").fingerprint());
  EXPECT_EQ(writer_->find_refreshed(key_of("/a"), old).head, nullptr);
  hold_the_writer();
  const auto second = head_of("2");
  const auto third = head_of("3");
  writer_->refresh(key_of("/a"), second, old, {{old.location, 1'000}}, 0);
  EXPECT_EQ(writer_->find_refreshed(key_of("/a"), old).head, second);
  writer_->refresh(key_of("/a"), third, old, {{old.location, 1'000}}, 0);
  EXPECT_EQ(writer_->find_refreshed(key_of("/a"), old).head, third);
  EXPECT_EQ(writer_->find_refreshed(key_of("/b"), old).head, nullptr);
  disk_.gate->open();
  writer_->drain();
  const auto fresh = *index_->find(key_of("/a").fingerprint());
  EXPECT_NE(fresh.location, old.location);
  EXPECT_EQ(writer_->find_refreshed(key_of("/a"), old).head, nullptr);
  writer_->refresh(key_of("/a"), second, fresh, {{old.location, 1'000}}, 0);
  writer_->remove(key_of("/a"));
  EXPECT_EQ(writer_->find_refreshed(key_of("/a"), fresh).head, nullptr);
}

TEST_F(StoreWriterTest, RefreshesStayWithinTheQueueToo) {
  ASSERT_EQ(writer_->store(object_of("/a", 1'000)), Detail::None);
  writer_->drain();
  const auto old = *index_->find(key_of("/a").fingerprint());
  hold_the_writer();
  const auto large_head = head_of(std::string(100'000, 'x'));
  for (int i = 0; i < 1'000; ++i)
    writer_->refresh(key_of("/a"), large_head, old, {{old.location, 1'000}}, 0);
  EXPECT_LE(writer_->queue_bytes(), kQueueBytes);
  disk_.gate->open();
  EXPECT_EQ(drained_queue_bytes(), 0U);
}

TEST_F(StoreWriterTest, ARefreshOfWhatWasReplacedOrRemovedDoesNothing) {
  ASSERT_EQ(writer_->store(object_of("/a", 1'000)), Detail::None);
  writer_->drain();
  const auto old = *index_->find(key_of("/a").fingerprint());
  ASSERT_EQ(writer_->store(object_of("/a", 2'000)), Detail::None);
  writer_->refresh(key_of("/a"), head_of("2"), old, {{old.location, 1'000}}, 0);
  writer_->drain();
  EXPECT_EQ(read("/a").size(), 2'000U);

  const auto newer = *index_->find(key_of("/a").fingerprint());
  disk_.gate->close();
  writer_->refresh(key_of("/a"), head_of("3"), newer, {{newer.location, 2'000}}, 0);
  disk_.gate->wait_for_writer();
  writer_->remove(key_of("/a"));
  disk_.gate->open();
  EXPECT_EQ(drained_queue_bytes(), 0U);
  EXPECT_FALSE(is_in_index("/a"));
}

TEST_F(StoreWriterTest, WhatIsReclaimedLeavesTheIndexAndMayBeWrittenAgain) {
  const auto object = object_of("/first");
  object->on_disk = true;
  memory_.insert(object, Newcomer::SeenBefore);
  ASSERT_EQ(writer_->store(object), Detail::None);
  writer_->drain();
  ASSERT_TRUE(is_in_index("/first"));
  for (int i = 0; is_in_index("/first") && i < 1'000; ++i) {
    ASSERT_EQ(writer_->store(object_of("/" + std::to_string(i), 50'000)), Detail::None);
    writer_->drain();
  }
  EXPECT_FALSE(is_in_index("/first"));
  EXPECT_FALSE(object->on_disk) << "its next hit in memory writes it again";
}

TEST_F(StoreWriterTest, AfterItsEndNothingIsTakenAndNobodyWaits) {
  writer_->stop();
  EXPECT_EQ(writer_->store(object_of("/a")), Detail::QueueFull);
  EXPECT_EQ(begin_fill("/a"), nullptr);
  writer_->remove(key_of("/a"));
  writer_->drain();
  writer_->stop();
}

}  // namespace
}  // namespace secondsight::cache
