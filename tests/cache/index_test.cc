#include "cache/index.h"

#include <random>
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
  index.insert(fingerprint(1), {{7, 40, 100}, RecordKind::VaryMarker});
  const auto entry = index.find(fingerprint(1));
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->location, (Location{7, 40, 100}));
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
  index.insert(fingerprint(1), {{7, 40, 100}, RecordKind::Object});
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
  index.insert(fingerprint(1), {{7, 40, 100}, RecordKind::Object});
  EXPECT_FALSE(index.erase_at(fingerprint(2), {7, 40, 100}));
  EXPECT_FALSE(index.erase_at(fingerprint(1), {8, 40, 100}));
  EXPECT_FALSE(index.erase_at(fingerprint(1), {7, 48, 100}));
  EXPECT_FALSE(index.erase_at(fingerprint(1), {7, 40, 101}));
  EXPECT_TRUE(index.find(fingerprint(1)));
  EXPECT_TRUE(index.erase_at(fingerprint(1), {7, 40, 100}));
  EXPECT_FALSE(index.find(fingerprint(1)));
}

TEST(Index, CountsObjectsAndBytes) {
  Index index;
  const auto empty_bytes = index.memory_bytes();
  constexpr std::uint64_t kObjects = 100'000;
  std::mt19937_64 random(1);
  for (std::uint64_t i = 0; i < kObjects; ++i) index.insert({random(), random()}, {});
  EXPECT_EQ(index.objects(), kObjects);
  const double bytes_per_object =
      static_cast<double>(index.memory_bytes() - empty_bytes) / static_cast<double>(kObjects);
  RecordProperty("bytes_per_object", std::to_string(bytes_per_object));
  EXPECT_GE(bytes_per_object, 32);
  EXPECT_LE(bytes_per_object, 80) << "just after the tables have doubled";
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
        const auto own = static_cast<std::uint32_t>(key);
        switch (random() % 4) {
          case 0:
            index.insert(fingerprint(key), {{t, own, t + own}, RecordKind::Object});
            break;
          case 1:
            index.erase_at(fingerprint(key), {t, own, t + own});
            break;
          default:
            if (const auto entry = index.find(fingerprint(key))) {
              EXPECT_EQ(entry->location.offset_bytes, own);
              EXPECT_EQ(entry->location.length_bytes, entry->location.segment + own);
            }
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_LE(index.objects(), kKeys);
}

}  // namespace
}  // namespace secondsight::cache
