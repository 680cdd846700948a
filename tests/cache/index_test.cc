#include "cache/index.h"

#include <algorithm>
#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace secondsight::cache {
namespace {

using log::Location;
using log::RecordKind;

admission::Fingerprint fingerprint(std::uint64_t n) {
  std::mt19937_64 random(n);
  return {random(), random()};
}

TEST(Index, FindsWhatWasInserted) {
  Index index;
  EXPECT_FALSE(index.find(fingerprint(1)));
  index.insert(fingerprint(1), {{7, 40, 104}, RecordKind::VaryMarker});
  const auto entry = index.find(fingerprint(1));
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->location, (Location{7, 40, 104}));
  EXPECT_EQ(entry->kind, RecordKind::VaryMarker);
  EXPECT_FALSE(index.find(fingerprint(2)));
  EXPECT_EQ(index.objects(), 1U);
}

TEST(Index, HalfAFingerprintIsNoMatch) {
  Index index;
  index.insert({1, 2}, {});
  EXPECT_FALSE(index.find({1, 3}));
  EXPECT_FALSE(index.find({65, 2})) << "same shard, same hash";
}

TEST(Index, NewerWins) {
  Index index;
  index.insert(fingerprint(1), {{7, 40, 104}, RecordKind::Object});
  index.insert(fingerprint(1), {{8, 48, 200}, RecordKind::LargeObject});
  EXPECT_EQ(index.find(fingerprint(1))->location, (Location{8, 48, 200}));
  EXPECT_EQ(index.find(fingerprint(1))->kind, RecordKind::LargeObject);
  EXPECT_EQ(index.objects(), 1U);
}

TEST(Index, ErasesOnce) {
  Index index;
  index.insert(fingerprint(1), {});
  EXPECT_TRUE(index.erase(fingerprint(1)));
  EXPECT_FALSE(index.erase(fingerprint(1)));
  EXPECT_FALSE(index.find(fingerprint(1)));
}

TEST(Index, ErasesAtAPlaceOnlyWhatPointsThere) {
  Index index;
  index.insert(fingerprint(1), {{7, 40, 104}, RecordKind::Object});
  EXPECT_FALSE(index.erase_at(fingerprint(2), {7, 40, 104}));
  EXPECT_FALSE(index.erase_at(fingerprint(1), {8, 40, 104}));
  EXPECT_FALSE(index.erase_at(fingerprint(1), {7, 48, 104}));
  EXPECT_FALSE(index.erase_at(fingerprint(1), {7, 40, 112}));
  EXPECT_TRUE(index.find(fingerprint(1)));
  EXPECT_TRUE(index.erase_at(fingerprint(1), {7, 40, 104}));
  EXPECT_FALSE(index.find(fingerprint(1)));
}

TEST(Index, TakesAtMost30BytesAnObjectWhileItGrows) {
  Index index;
  std::mt19937_64 random(1);
  double worst = 0;
  for (std::uint64_t i = 1; i <= 1'000'000; ++i) {
    index.insert({random(), random()}, {});
    if (i < 100'000 || i % 1'000 != 0) continue;
    ASSERT_EQ(index.objects(), i);
    worst = std::max(worst, static_cast<double>(index.memory_bytes()) / static_cast<double>(i));
  }
  RecordProperty("worst_bytes_per_object", std::to_string(worst));
  EXPECT_GE(worst, 20);
  EXPECT_LE(worst, 30);
}

TEST(Index, GivesBackWhatAReservationTookTooMuch) {
  Index index;
  index.reserve(1'000'000);
  const auto reserved_bytes = index.memory_bytes();
  EXPECT_GE(reserved_bytes, 20'000'000U);
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) index.insert({random(), random()}, {});
  EXPECT_EQ(index.memory_bytes(), reserved_bytes);
  index.fit();
  EXPECT_EQ(index.objects(), 100'000U);
  EXPECT_LE(index.memory_bytes(), 3'000'000U);
  random.seed(1);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t high = random();
    EXPECT_TRUE(index.find({high, random()}));
  }
}

TEST(Index, KeepsPlacesOfEverySize) {
  Index index;
  const std::uint32_t offset_max = 0xFFFF'FFF8, length_max = (1U << 29) - 8;
  std::uint64_t key = 0;
  for (const std::uint32_t segment : {0U, 1U, 0xFFFF'FFFFU})
    for (const std::uint32_t offset : {0U, 8U, 1U << 28, offset_max})
      for (const std::uint32_t length : {0U, 72U, 1U << 22, length_max})
        for (const auto kind : {RecordKind::Object, RecordKind::Tombstone}) {
          const auto id = fingerprint(++key);
          index.insert(id, {{segment, offset, length}, kind});
          for (int i = 0; i < 20; ++i) index.note_hit(id);
          const auto entry = index.find(id);
          ASSERT_TRUE(entry);
          EXPECT_EQ(entry->location, (Location{segment, offset, length}));
          EXPECT_EQ(entry->kind, kind);
          EXPECT_EQ(index.hits(id), (Index::Hits{Index::kQuartersMax, true}));
        }
}

TEST(Index, CountsHitsAndKnowsWhetherTheLastIsRecent) {
  Index index;
  const Location first{7, 40, 104}, second{8, 40, 104};
  index.note_hit(fingerprint(1));
  EXPECT_EQ(index.hits(fingerprint(1)), Index::Hits{}) << "not there";
  index.insert(fingerprint(1), {first});
  EXPECT_EQ(index.hits(fingerprint(1)), Index::Hits{});
  index.note_hit(fingerprint(1));
  index.note_hit(fingerprint(1));
  EXPECT_EQ(index.hits(fingerprint(1)), (Index::Hits{8, true}));
  EXPECT_TRUE(index.move(fingerprint(1), first, {second}, 1));
  EXPECT_EQ(index.hits(fingerprint(1)), (Index::Hits{1, false}));
  index.insert(fingerprint(1), {first});
  EXPECT_EQ(index.hits(fingerprint(1)), Index::Hits{}) << "another object";
}

TEST(Index, MovesOnlyWhatIsStillWhereItWas) {
  Index index;
  const Location first{7, 40, 104}, second{8, 40, 104}, third{9, 40, 104};
  EXPECT_FALSE(index.move(fingerprint(1), first, {second}, 1)) << "removed meanwhile";
  EXPECT_FALSE(index.find(fingerprint(1)));
  index.insert(fingerprint(1), {second});
  EXPECT_FALSE(index.move(fingerprint(1), first, {third}, 1)) << "replaced meanwhile";
  EXPECT_EQ(index.find(fingerprint(1))->location, second);
}

TEST(IndexRace, FindInsertAndEraseFromManyThreads) {
  Index index;
  constexpr std::uint64_t kKeys = 500;
  std::vector<std::thread> threads;
  for (std::uint32_t t = 1; t <= 4; ++t)
    threads.emplace_back([&index, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 5'000; ++i) {
        const std::uint64_t key = random() % kKeys;
        // An entry's parts belong together: both say who wrote it and for which key.
        const auto own = static_cast<std::uint32_t>(8 * key);
        switch (random() % 4) {
          case 0:
            index.insert(fingerprint(key), {{t, own, 8 * t + own}, RecordKind::Object});
            break;
          case 1:
            index.erase_at(fingerprint(key), {t, own, 8 * t + own});
            break;
          default:
            if (const auto entry = index.find(fingerprint(key))) {
              EXPECT_EQ(entry->location.offset_bytes, own);
              EXPECT_EQ(entry->location.length_bytes, 8 * entry->location.segment + own);
            }
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_LE(index.objects(), kKeys);
}

}  // namespace
}  // namespace secondsight::cache
