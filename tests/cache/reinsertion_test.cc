#include "cache/reinsertion.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cache/disk_store.h"
#include "cache/log/record_format.h"
#include "tests/cache/cache_fixture.h"

namespace secondsight::cache {
namespace {

constexpr std::uint32_t kSegmentBytes = 32U << 10;
constexpr std::uint32_t kSegments = 8;

/// A store on a small ring, and its index, as the writer's thread would use them.
class ReinsertionTest : public ::testing::Test {
 protected:
  ReinsertionTest() { open(); }

  void open() {
    store_.reset();
    log_.reset();
    index_ = std::make_unique<Index>();
    auto log = log::ObjectLog::open(
        *disk_.files,
        {.capacity_bytes = std::uint64_t{kSegments} * kSegmentBytes,
         .segment_bytes = kSegmentBytes,
         .seed_id = kSeed.id()},
        [this](const admission::Fingerprint& key, log::RecordKind kind, const log::Location& at) {
          if (kind == log::RecordKind::Tombstone) index_->erase(key);
          if (kind == log::RecordKind::Object || kind == log::RecordKind::LargeObject)
            index_->insert(key, {at, kind});
        });
    ASSERT_TRUE(log);
    log_ = std::move(*log);
    store_ = std::make_unique<DiskStore>(*log_, *index_, nullptr, purges_, metrics_);
  }

  ObjectPtr put(const std::string& target, std::uint64_t body_bytes = 1'000) {
    ObjectPtr object = object_of(target, body_bytes);
    const auto entry = store_->write(*object);
    if (entry) index_->insert(object->key.fingerprint(), *entry);
    return object;
  }
  /// Objects nobody asks for again, until the ring has turned by that many segments.
  void turn(std::uint64_t segments = 1) {
    const auto until = log_->counters().segments_created + segments;
    while (log_->counters().segments_created < until) put("/filler" + std::to_string(++fillers_));
  }
  /// Past the store, whose own reinsertion then does nothing.
  void append_alone(const std::string& target, std::size_t body_bytes) {
    const CacheKey key = key_of(target);
    const std::vector<std::byte> body(body_bytes);
    const std::vector<std::span<const std::byte>> pieces{body};
    log::RecordView view;
    view.fingerprint = key.fingerprint();
    view.key = key.text();
    view.head = "OK\r\n";
    view.body = pieces;
    const auto at = log_->append(view, [](const auto&, const auto&) {});
    ASSERT_TRUE(at);
    index_->insert(key.fingerprint(), {*at});
  }
  /// Until the first segment is the next to go, and the open one is half full.
  void bring_to_the_end_alone() {
    while (!log_->next_to_go() || log_->room_bytes() > kSegmentBytes / 2)
      append_alone("/filler" + std::to_string(++fillers_), 1'000);
  }

  void hit(const std::string& target) { index_->note_hit(key_of(target).fingerprint()); }
  std::optional<Index::Entry> entry(const std::string& target) const {
    return index_->find(key_of(target).fingerprint());
  }
  bool is_there(const ObjectPtr& object) const {
    const auto at = index_->find(object->key.fingerprint());
    if (!at) return false;
    const auto reader = log_->open_object(at->location, ReadMode::Blocking);
    if (!reader || (*reader)->head().key != object->key.text()) return false;
    std::vector<std::byte> body((*reader)->head().body_bytes), expected;
    if (!(*reader)->read_body(0, body, ReadMode::Blocking)) return false;
    for (const ChunkPtr& chunk : object->body)
      expected.insert(expected.end(), chunk->begin(), chunk->end());
    EXPECT_TRUE(body == expected) << object->key.text();
    return body == expected;
  }
  double written(const char* cause) {
    const auto& counter = metrics_.counter(
        "secondsight_written_bytes_total",
        "Bytes handed to the disk cache's file system, by cause.", {{"cause", cause}});
    return static_cast<double>(counter.value());
  }

  TestDisk disk_;
  Metrics metrics_;
  PurgeList purges_{kSeed};
  std::unique_ptr<Index> index_;
  std::unique_ptr<log::ObjectLog> log_;
  std::unique_ptr<DiskStore> store_;
  std::uint64_t fillers_ = 0;
};

TEST_F(ReinsertionTest, WhatWasHitOutlivesItsSegmentAndWhatWasNotDoesNot) {
  const ObjectPtr wanted = put("/wanted"), unwanted = put("/unwanted");
  for (int round = 0; round < 5; ++round) {
    hit("/wanted");
    const auto before = entry("/wanted");
    turn(kSegments);
    ASSERT_TRUE(is_there(wanted)) << round;
    EXPECT_NE(entry("/wanted")->location.segment, before->location.segment) << round;
  }
  EXPECT_FALSE(is_there(unwanted));
  EXPECT_GT(written("reappended"), 0);
}

TEST_F(ReinsertionTest, AHitIsGoodForFiveTurnsAndManyForMore) {
  const ObjectPtr once = put("/once"), thrice = put("/thrice");
  hit("/once");
  for (int i = 0; i < 3; ++i) hit("/thrice");
  const auto turns_lived = [this](const ObjectPtr& object, const std::string& target) {
    for (int turns = 0; turns < 50; ++turns) {
      const auto at = entry(target);
      if (!at) return turns - 1;
      while (entry(target) && entry(target)->location == at->location)
        put("/filler" + std::to_string(++fillers_));
      EXPECT_EQ(is_there(object), entry(target).has_value());
    }
    return 50;
  };
  // The first turn costs nothing, as the hits are recent; then a quarter each, down to none.
  EXPECT_EQ(turns_lived(once, "/once"), 1 + 4);
  // It has lived through as many meanwhile.
  EXPECT_EQ(turns_lived(thrice, "/thrice"), 1 + 12 - (1 + 4) - 1);
}

TEST_F(ReinsertionTest, WritesAtMostATenthOfWhatWasAdmitted) {
  for (int i = 0; i < 3'000; ++i) {
    put("/" + std::to_string(i), 200 + static_cast<std::uint64_t>(i % 7) * 300);
    for (int back = 0; back < 200; ++back) hit("/" + std::to_string(i - back));
  }
  EXPECT_GT(written("reappended"), 0.05 * written("admitted"));
  EXPECT_LE(written("reappended"), 0.10 * written("admitted"));
}

TEST_F(ReinsertionTest, MovesFirstWhatWasHitMostPerByteAndNothingBeyondItsBudget) {
  const struct {
    const char* target;
    std::size_t body_bytes;
    int hits;
  } kObjects[] = {{"/large-once", 4'000, 1}, {"/never", 500, 0},         {"/once", 1'200, 1},
                  {"/often", 1'210, 3},      {"/large-often", 4'000, 3}, {"/twice", 1'220, 2}};
  for (const auto& object : kObjects) {
    append_alone(object.target, object.body_bytes);
    for (int i = 0; i < object.hits; ++i) hit(object.target);
  }
  bring_to_the_end_alone();
  Reinsertion reinsertion(*log_, *index_, purges_, 10);
  reinsertion.note_admitted(41'000);
  std::vector<std::string> moved;
  const auto write = [&](const log::RecordView& view) {
    moved.emplace_back(view.key);
    return log_->append(view, [](const auto&, const auto&) {});
  };
  reinsertion.before_append(log_->room_bytes() - 5'000, write);
  EXPECT_EQ(moved, std::vector<std::string>()) << "there is room for more than that";
  reinsertion.before_append(log_->room_bytes() - 4'000, write);
  EXPECT_EQ(moved, (std::vector<std::string>{key_of("/often").text(), key_of("/twice").text(),
                                             key_of("/once").text()}));
  moved.clear();
  reinsertion.note_admitted(1'000'000);
  reinsertion.before_append(1'000, write);
  EXPECT_EQ(moved, std::vector<std::string>()) << "once for each turn";
}

TEST_F(ReinsertionTest, NeitherBringsBackWhatWasRemovedNorHidesWhatIsNewer) {
  put("/removed");
  put("/replaced", 500);
  hit("/removed");
  hit("/replaced");
  turn(3);
  index_->erase(key_of("/removed").fingerprint());
  ASSERT_TRUE(store_->write_tombstone(key_of("/removed").fingerprint()));
  const ObjectPtr newer = put("/replaced", 900);
  turn(kSegments - 1);
  for (const bool reopened : {false, true}) {
    if (reopened) {
      store_->close();
      open();
    }
    EXPECT_FALSE(entry("/removed")) << reopened;
    EXPECT_TRUE(is_there(newer)) << reopened;
  }
}

/// What removes an object while it is being moved has the last word.
TEST_F(ReinsertionTest, AnObjectRemovedMeanwhileStaysRemoved) {
  append_alone("/removed", 1'000);
  hit("/removed");
  bring_to_the_end_alone();
  Reinsertion reinsertion(*log_, *index_, purges_, 100);
  reinsertion.note_admitted(kSegmentBytes);
  int writes = 0;
  reinsertion.before_append(1'000, [&](const log::RecordView& view) {
    ++writes;
    EXPECT_EQ(view.fingerprint, key_of("/removed").fingerprint());
    index_->erase(view.fingerprint);
    return log_->append(view, [](const auto&, const auto&) {});
  });
  EXPECT_EQ(writes, 1);
  EXPECT_FALSE(entry("/removed"));
}

TEST_F(ReinsertionTest, AFreshenedHeadTakesItsBodyAlong) {
  const ObjectPtr object = put("/freshened");
  turn(3);
  auto head = std::make_shared<ObjectHead>(*object->head);
  head->fields.add("Freshened", "yes");
  const auto old = entry("/freshened");
  const auto refreshed = store_->write_refreshed(
      object->key, *head, std::vector<log::PartRef>{{old->location, object->body_bytes}},
      old->location);
  ASSERT_TRUE(refreshed);
  index_->insert(object->key.fingerprint(), *refreshed);
  hit("/freshened");
  turn(kSegments - 2);
  ASSERT_TRUE(is_there(object));
  EXPECT_EQ(entry("/freshened")->kind, log::RecordKind::Object);
  const auto reader = log_->open_object(entry("/freshened")->location, ReadMode::Blocking);
  ASSERT_TRUE(reader);
  EXPECT_NE((*reader)->head().head.find("Freshened: yes"), std::string::npos);
}

/// Else the log's last word would be a head over a body that is about to go.
TEST_F(ReinsertionTest, AHeadIsNotFreshenedOverABodyThatHasJustMoved) {
  const ObjectPtr object = put("/object");
  hit("/object");
  turn(kSegments - 2);
  const auto old = entry("/object");
  const std::vector<log::PartRef> parts{{old->location, object->body_bytes}};
  bool is_refused = false;
  for (int i = 0; i < 1'000 && !is_refused; ++i)
    is_refused = !store_->write_refreshed(object->key, *object->head, parts, old->location);
  EXPECT_TRUE(is_refused);
  EXPECT_NE(entry("/object")->location, old->location) << "to make room for the head moved it";
  EXPECT_TRUE(is_there(object));
  store_->close();
  open();
  EXPECT_TRUE(is_there(object));
}

/// What is known of it beforehand is the head's record only.
TEST_F(ReinsertionTest, AFreshenedHeadsBodyIsPaidFor) {
  append_alone("/freshened", 6'000);
  const CacheKey key = key_of("/freshened");
  const std::vector<log::PartRef> parts{{entry("/freshened")->location, 6'000}};
  log::RecordView view;
  view.kind = log::RecordKind::LargeObject;
  view.fingerprint = key.fingerprint();
  view.key = key.text();
  view.head = "OK\r\n";
  view.parts = parts;
  const auto at = log_->append(view, [](const auto&, const auto&) {});
  ASSERT_TRUE(at);
  index_->insert(key.fingerprint(), {*at, view.kind});
  hit("/freshened");
  bring_to_the_end_alone();
  // With 20,000 bytes there would be money for it twice: as the body's record and as the head's.
  for (const std::uint64_t budget : {5'000U, 20'000U}) {
    SCOPED_TRACE(budget);
    Reinsertion reinsertion(*log_, *index_, purges_, 100);
    reinsertion.note_admitted(budget);
    int writes = 0;
    reinsertion.before_append(log_->room_bytes(), [&](const log::RecordView& again) {
      ++writes;
      EXPECT_LE(log::encoded_bytes(again), budget);
      return log_->append(again, [](const auto&, const auto&) {});
    });
    EXPECT_EQ(writes, budget > 6'000 ? 1 : 0);
  }
}

/// Whatever fails while an object is moved, it is whole where the index says, or it is a miss.
TEST_F(ReinsertionTest, AFailureAtAnyPointGivesNoWrongByte) {
  for (std::uint64_t failing = 0; failing < 60; ++failing) {
    SCOPED_TRACE(failing);
    std::vector<ObjectPtr> objects;
    for (int i = 0; i < 5; ++i) {
      objects.push_back(put("/hit" + std::to_string(i)));
      hit("/hit" + std::to_string(i));
    }
    turn(kSegments - 1);
    disk_.sim->fail_operation(disk_.sim->operations() + failing, boost::system::errc::io_error);
    for (int i = 0; i < 60; ++i) put("/filler" + std::to_string(++fillers_));
    for (const ObjectPtr& object : objects) is_there(object);
    static_cast<void>(store_->try_again());
    EXPECT_TRUE(is_there(put("/after")));
  }
}

}  // namespace
}  // namespace secondsight::cache
