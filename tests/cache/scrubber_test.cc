#include "cache/scrubber.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "cache/disk_store.h"
#include "cache/log/segment_format.h"
#include "cache/replay.h"
#include "tests/cache/cache_fixture.h"

namespace secondsight::cache {
namespace {

constexpr std::uint32_t kSegmentBytes = 64U << 10;
constexpr std::uint64_t kSegments = 6;
constexpr std::uint64_t kAll = UINT64_MAX;  // bytes: to the end of the round

/// A store on a small ring, with its scrubber's rounds made by hand.
class ScrubberTest : public ::testing::Test {
 protected:
  ScrubberTest() { open(); }

  void open() {
    scrubber_.reset();
    store_.reset();
    log_.reset();
    index_ = std::make_unique<Index>();
    Replay replay(*index_);
    auto log =
        log::ObjectLog::open(*disk_.files,
                             {.capacity_bytes = kSegments * kSegmentBytes,
                              .segment_bytes = kSegmentBytes,
                              .seed_id = kSeed.id(),
                              .seal_bytes = 0},
                             [&replay](const admission::Fingerprint& key, log::RecordKind kind,
                                       const log::Location& at) { replay.add(key, kind, at); });
    replay.finish();
    ASSERT_TRUE(log);
    log_ = std::move(*log);
    store_ = std::make_unique<DiskStore>(*log_, *index_, &memory_, purges_, metrics_);
    scrubber_ = std::make_unique<Scrubber>(*log_, *index_, &memory_, metrics_);
  }

  ObjectPtr put(const std::string& target, std::uint64_t body_bytes = 1'000) {
    ObjectPtr object = object_of(target, body_bytes);
    const auto entry = store_->write(*object);
    EXPECT_TRUE(entry);
    if (entry) index_->insert(object->key.fingerprint(), *entry);
    return object;
  }
  /// Fills the open segment, so that what came before is sealed.
  void seal() {
    const auto until = log_->counters().segments_created + 1;
    while (log_->counters().segments_created < until)
      put("/filler" + std::to_string(++fillers_), 10'000);
  }
  std::optional<Index::Entry> entry(const std::string& target) const {
    return index_->find(key_of(target).fingerprint());
  }
  void flip(const log::Location& at, std::uint64_t offset_in_record) {
    disk_.sim->flip_bit(log::segment_file_name(at.segment),
                        (at.offset_bytes + offset_in_record) * 8 + 1);
  }
  void damage(const std::string& target) {
    const auto at = entry(target)->location;
    flip(at, at.length_bytes - 100);  // in the body
  }
  Scrubber::Turn round() { return scrubber_->check_for(kAll); }
  std::uint64_t count(const char* what) {
    const std::string line = "\nsecondsight_scrub_" + std::string(what) + "_total ";
    const std::string all = metrics_.expose();
    const auto at = all.find(line);
    EXPECT_NE(at, std::string::npos) << what;
    return at == std::string::npos ? 0 : std::stoull(all.substr(at + line.size(), 20));
  }

  TestDisk disk_;
  Metrics metrics_;
  MemoryTier memory_{4_MiB};
  std::unique_ptr<Index> index_;
  std::unique_ptr<log::ObjectLog> log_;
  PurgeList purges_{kSeed};
  std::unique_ptr<DiskStore> store_;
  std::unique_ptr<Scrubber> scrubber_;
  int fillers_ = 0;
};

TEST_F(ScrubberTest, WhatIsWholeStays) {
  put("/a");
  put("/b", 15'000);
  seal();
  const auto objects = index_->objects();
  const auto turn = round();
  EXPECT_TRUE(turn.ends_round);
  EXPECT_GT(turn.bytes, 16'000U);
  EXPECT_EQ(count("bytes"), turn.bytes);
  EXPECT_EQ(count("damaged"), 0U);
  EXPECT_EQ(count("rounds"), 1U);
  EXPECT_EQ(index_->objects(), objects);
}

TEST_F(ScrubberTest, EachRecordOnceARound) {
  put("/a");
  seal();
  round();
  const auto records = count("records");
  ASSERT_GT(records, 1U);
  round();
  EXPECT_EQ(count("records"), 2 * records);
  // The same, a little at a time.
  Scrubber::Turn turn;
  std::uint64_t turns = 0;
  for (; !turn.ends_round; ++turns) turn = scrubber_->check_for(1);
  EXPECT_EQ(count("records"), 3 * records);
  EXPECT_EQ(turns, records + 1);
}

TEST_F(ScrubberTest, ADamagedRecordLeavesTheIndexAndCountsOnce) {
  put("/a");
  put("/b");
  seal();
  damage("/a");
  for (int i = 0; i < 3; ++i) round();
  EXPECT_FALSE(entry("/a"));
  EXPECT_TRUE(entry("/b"));
  EXPECT_EQ(count("damaged"), 1U);
}

TEST_F(ScrubberTest, EveryByteOfARecordCounts) {
  put("/a", 3'000);
  seal();
  const auto at = entry("/a")->location;
  const std::string key = key_of("/a").text();
  for (const std::uint64_t offset :
       {std::uint64_t{0}, std::uint64_t{9}, std::uint64_t{20}, std::uint64_t{66},
        68 + key.size() / 2, 68 + key.size() + 3, std::uint64_t{at.length_bytes} - 1'000}) {
    SCOPED_TRACE(offset);
    index_->insert(key_of("/a").fingerprint(), {at});
    flip(at, offset);
    round();
    EXPECT_FALSE(entry("/a"));
    flip(at, offset);
  }
}

TEST_F(ScrubberTest, WhatIsStillInMemoryIsWrittenAgain) {
  const ObjectPtr object = put("/a");
  memory_.insert(object, Newcomer::SeenBefore);
  object->on_disk.store(true);
  seal();
  damage("/a");
  round();
  EXPECT_FALSE(object->on_disk.load());
}

TEST_F(ScrubberTest, AReplacedRecordThatIsDamagedCostsNothing) {
  put("/a");
  damage("/a");
  put("/a");
  seal();
  round();
  EXPECT_TRUE(entry("/a"));
  EXPECT_EQ(count("damaged"), 1U);
}

TEST_F(ScrubberTest, ADamagedPartCostsItsObject) {
  const CacheKey key = key_of("/large");
  const auto chunks = std::vector<ChunkPtr>{chunk_of(20'000)};
  const auto unused = store_->write_part(key, chunks, 0, 5'000);
  const std::vector<log::PartRef> parts = {*store_->write_part(key, chunks, 0, 10'000),
                                           *store_->write_part(key, chunks, 10'000, 10'000)};
  const auto head = store_->write_head(key, *head_of(), parts);
  index_->insert(key.fingerprint(), *head);
  seal();
  flip(unused->record, 200);
  round();
  EXPECT_TRUE(entry("/large")) << "that part belongs to no object";
  flip(parts[1].record, 200);
  round();
  EXPECT_FALSE(entry("/large"));
  EXPECT_EQ(count("damaged"), 2U);
}

TEST_F(ScrubberTest, ARefreshedHeadGoesWithTheBodyItUses) {
  put("/a", 2'000);
  const auto old = *entry("/a");
  const log::PartRef body{old.location, 2'000};
  const auto head = store_->write_refreshed(key_of("/a"), *head_of("2"), {&body, 1}, old.location);
  index_->insert(key_of("/a").fingerprint(), *head);
  seal();
  flip(old.location, old.location.length_bytes - 50);
  round();
  EXPECT_FALSE(entry("/a"));
}

TEST_F(ScrubberTest, ASegmentThatIsReclaimedMeanwhileIsLeft) {
  put("/a");
  seal();
  scrubber_->check_for(1);  // in the first segment
  while (log_->has({1, 0, 0})) seal();
  EXPECT_LE(log_->bytes_on_disk(), kSegments * kSegmentBytes);
  EXPECT_EQ(disk_.sim->bytes_used(), log_->bytes_on_disk()) << "the scrub holds no segment";
  round();
  EXPECT_EQ(count("damaged"), 0U);
  EXPECT_EQ(count("rounds"), 1U);
}

TEST_F(ScrubberTest, TheOpenSegmentIsNotRead) {
  put("/a");
  damage("/a");
  EXPECT_EQ(round().bytes, 0U);
  EXPECT_EQ(count("rounds"), 1U);
  EXPECT_TRUE(entry("/a"));
  seal();
  round();
  EXPECT_FALSE(entry("/a"));
}

TEST_F(ScrubberTest, AReadErrorIsDamageAndOthersAreNot) {
  put("/a");
  seal();
  const auto before = disk_.sim->operations();
  round();
  const auto operations = disk_.sim->operations() - before;
  ASSERT_GT(operations, 4U);
  for (const auto error : {boost::system::errc::not_enough_memory, boost::system::errc::io_error}) {
    for (std::uint64_t n = 0; n < operations; ++n) {
      disk_.sim->fail_operation(disk_.sim->operations() + n, error);
      round();
    }
    EXPECT_EQ(count("damaged"), 0U) << "an error that does not come again";
    for (std::uint64_t n = 0; n < operations; ++n) {
      const auto next = disk_.sim->operations() + n;
      for (const auto operation : {next, next + 1}) disk_.sim->fail_operation(operation, error);
      round();
    }
    const bool is_damage = error == boost::system::errc::io_error;
    EXPECT_EQ(count("damaged") > 0, is_damage);
    EXPECT_EQ(entry("/a").has_value(), !is_damage);
  }
}

TEST_F(ScrubberTest, WhatAStartTookOutIsNotReportedAgain) {
  put("/a");
  put("/b");
  damage("/a");
  open();  // scans, and seals with /a as a removal
  seal();
  round();
  EXPECT_EQ(count("damaged"), 0U);
  EXPECT_TRUE(entry("/b"));
}

TEST_F(ScrubberTest, ReadsOnItsOwnThreadUntilItIsStopped) {
  put("/a");
  put("/b");
  seal();
  damage("/a");
  scrubber_->start(1_GiB);
  while (count("rounds") == 0) std::this_thread::yield();
  scrubber_->stop();
  EXPECT_FALSE(entry("/a"));
  EXPECT_TRUE(entry("/b"));
  EXPECT_EQ(count("damaged"), 1U);
}

TEST(ScrubPause, KeepsThePace) {
  using std::chrono::milliseconds;
  EXPECT_EQ(scrub_pause(0, 1), milliseconds{0});
  EXPECT_EQ(scrub_pause(1_MiB, 20_MiB), milliseconds{50});
  EXPECT_EQ(scrub_pause(4_MiB, 1_MiB), milliseconds{4'000});
  EXPECT_EQ(scrub_pause(64_KiB, 64_KiB), milliseconds{1'000});
}

}  // namespace
}  // namespace secondsight::cache
