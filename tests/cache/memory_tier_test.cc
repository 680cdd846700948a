#include "cache/memory_tier.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <random>
#include <unordered_map>
#include <unordered_set>

#include <gtest/gtest.h>

#include "config/units.h"

namespace secondsight::cache {
namespace {

const admission::FingerprintSeed kSeed{admission::FingerprintSeed::Bytes{}};

CacheKey key_of(std::uint64_t number) {
  return CacheKey::primary("http", "test", "/" + std::to_string(number), kSeed);
}

std::shared_ptr<Object> object_of(CacheKey key, std::size_t body_bytes) {
  auto stored_head = std::make_shared<ObjectHead>();
  stored_head->status = 200;
  stored_head->reason = "OK";
  stored_head->fields.add("Content-Type", "text/plain; charset=utf-8");
  std::vector<ChunkPtr> body;
  for (std::size_t left = body_bytes; left > 0;) {
    const std::size_t size = std::min<std::size_t>(left, 64_KiB);
    body.push_back(std::make_shared<Chunk>(size));
    left -= size;
  }
  return make_object(std::move(key), std::move(stored_head), std::move(body));
}

TEST(Object, MemoryBytesCountsEverything) {
  const auto small = object_of(key_of(1), 0);
  EXPECT_GE(small->memory_bytes(), sizeof(Object) + sizeof(ObjectHead));
  const auto large = object_of(key_of(1), 200'000);
  EXPECT_EQ(large->body_bytes, 200'000u);
  EXPECT_EQ(large->body.size(), 4u);
  EXPECT_GE(large->memory_bytes(), small->memory_bytes() + 200'000);
  EXPECT_LE(large->memory_bytes(), small->memory_bytes() + 201'000);
  const CacheKey long_key =
      CacheKey::primary("http", "test", "/" + std::string(10'000, 'x'), kSeed);
  EXPECT_GE(object_of(long_key, 0)->memory_bytes(), small->memory_bytes() + 10'000);
}

TEST(MemoryTier, KeepsFindsAndErases) {
  MemoryTier tier(8_MiB);
  EXPECT_EQ(tier.find(key_of(1)), nullptr);
  EXPECT_EQ(tier.bytes(), 0u);
  const ObjectPtr one = object_of(key_of(1), 100);
  tier.insert(one, Newcomer::First);
  tier.insert(object_of(key_of(2), 100), Newcomer::SeenBefore);
  EXPECT_EQ(tier.find(key_of(1)), one);
  EXPECT_EQ(tier.peek(key_of(1)), one);
  EXPECT_EQ(tier.objects(), 2u);
  EXPECT_GE(tier.bytes(), one->memory_bytes() * 2);
  tier.erase(key_of(1));
  tier.erase(key_of(3));
  EXPECT_EQ(tier.find(key_of(1)), nullptr);
  EXPECT_NE(tier.find(key_of(2)), nullptr);
  EXPECT_EQ(tier.objects(), 1u);
  EXPECT_EQ(tier.evictions(), 0u);
}

TEST(MemoryTier, ReplacesWhatHasTheKey) {
  MemoryTier tier(8_MiB);
  tier.insert(object_of(key_of(1), 100), Newcomer::First);
  const std::uint64_t before = tier.bytes();
  const ObjectPtr newer = object_of(key_of(1), 5000);
  tier.insert(newer, Newcomer::First);
  EXPECT_EQ(tier.find(key_of(1)), newer);
  EXPECT_EQ(tier.objects(), 1u);
  EXPECT_EQ(tier.bytes(),
            before + newer->memory_bytes() - object_of(key_of(1), 100)->memory_bytes());
  EXPECT_EQ(tier.evictions(), 0u);
}

TEST(MemoryTier, ANewVersionThatIsTooLargeRemovesTheOldOne) {
  MemoryTier tier(2_MiB);
  tier.insert(object_of(key_of(1), 100), Newcomer::First);
  tier.insert(object_of(key_of(1), 256_KiB), Newcomer::First);
  EXPECT_EQ(tier.find(key_of(1)), nullptr);
  tier.insert(object_of(key_of(2), 256_KiB), Newcomer::First);
  EXPECT_EQ(tier.objects(), 0u);
}

TEST(MemoryTier, LargestObject) {
  EXPECT_EQ(MemoryTier(0).object_bytes_max(), 0u);
  EXPECT_EQ(MemoryTier(2'900'000).object_bytes_max(), 2'900'000u / 8);
  EXPECT_EQ(MemoryTier(31_MiB).object_bytes_max(), 31_MiB / 8);
  EXPECT_EQ(MemoryTier(32_MiB).object_bytes_max(), 2_MiB);  // two shards
  EXPECT_EQ(MemoryTier(64_GiB).object_bytes_max(), 4_MiB);
}

TEST(MemoryTier, ZeroTurnsItOff) {
  MemoryTier tier(0);
  tier.insert(object_of(key_of(1), 0), Newcomer::SeenBefore);
  EXPECT_EQ(tier.find(key_of(1)), nullptr);
  EXPECT_EQ(tier.bytes(), 0u);
}

TEST(MemoryTier, AFingerprintAloneFindsNothing) {
  MemoryTier tier(8_MiB);
  const admission::Fingerprint same{.high = 7, .low = 9};
  const CacheKey a = CacheKey::from_stored("http://test/a", same);
  const CacheKey b = CacheKey::from_stored("http://test/b", same);
  tier.insert(object_of(a, 10), Newcomer::First);
  EXPECT_EQ(tier.find(b), nullptr);
  tier.erase(b);
  ASSERT_NE(tier.find(a), nullptr);
  tier.insert(object_of(b, 10), Newcomer::First);
  EXPECT_EQ(tier.find(a), nullptr);
  ASSERT_NE(tier.find(b), nullptr);
  EXPECT_EQ(tier.find(b)->key.text(), "http://test/b");
  EXPECT_EQ(tier.objects(), 1u);
}

TEST(MemoryTier, NewcomersDoNotSweepOutWhatIsUsed) {
  MemoryTier tier(2_MiB);
  // A tenth of the tier in each queue: one kind seen before, one used while it was new.
  for (std::uint64_t i = 0; i < 10; ++i) {
    tier.insert(object_of(key_of(i), 10_KiB), Newcomer::SeenBefore);
    tier.insert(object_of(key_of(100 + i), 10_KiB), Newcomer::First);
    EXPECT_NE(tier.find(key_of(100 + i)), nullptr);
  }
  for (std::uint64_t i = 1000; i < 3000; ++i)
    tier.insert(object_of(key_of(i), 10_KiB), Newcomer::First);
  for (std::uint64_t i = 0; i < 10; ++i) {
    EXPECT_NE(tier.peek(key_of(i)), nullptr) << i;
    EXPECT_NE(tier.peek(key_of(100 + i)), nullptr) << i;
  }
  EXPECT_EQ(tier.evictions() + tier.objects(), 2020u);
  EXPECT_EQ(tier.peek(key_of(1000)), nullptr);
  EXPECT_NE(tier.peek(key_of(2999)), nullptr);
}

TEST(MemoryTier, PeekDoesNotMarkUsed) {
  const auto survives = [](bool is_marked) {
    MemoryTier tier(2_MiB);
    tier.insert(object_of(key_of(1), 10_KiB), Newcomer::First);
    if (is_marked) {
      tier.find(key_of(1));
    } else {
      tier.peek(key_of(1));
    }
    for (std::uint64_t i = 100; i < 500; ++i)
      tier.insert(object_of(key_of(i), 10_KiB), Newcomer::First);
    return tier.peek(key_of(1)) != nullptr;
  };
  EXPECT_TRUE(survives(true));
  EXPECT_FALSE(survives(false));
}

TEST(MemoryTier, EachUseBuysOnePassThroughTheMainQueue) {
  std::vector<std::uint64_t> insertions_survived;
  for (int uses = 0; uses <= 4; ++uses) {
    MemoryTier tier(2_MiB);
    tier.insert(object_of(key_of(1), 10_KiB), Newcomer::SeenBefore);
    for (int i = 0; i < uses; ++i) EXPECT_NE(tier.find(key_of(1)), nullptr);
    std::uint64_t insertions = 0;
    for (; tier.peek(key_of(1)) != nullptr && insertions < 5000; ++insertions)
      tier.insert(object_of(key_of(100 + insertions), 10_KiB), Newcomer::SeenBefore);
    insertions_survived.push_back(insertions);
  }
  const std::uint64_t pass = insertions_survived[0];
  EXPECT_NEAR(static_cast<double>(pass), 200, 20);
  for (std::uint64_t uses = 1; uses <= 3; ++uses)
    EXPECT_NEAR(static_cast<double>(insertions_survived[uses]),
                static_cast<double>((uses + 1) * pass), 10);
  EXPECT_EQ(insertions_survived[4], insertions_survived[3]);  // two bits
}

TEST(MemoryTier, TheLargestNewcomerIsStagedBesideAFullMainQueue) {
  MemoryTier tier(2_MiB);
  for (std::uint64_t i = 0; i < 400; ++i)
    tier.insert(object_of(key_of(i), 10_KiB), Newcomer::SeenBefore);
  const auto largest = object_of(key_of(1000), 250_KiB);
  ASSERT_LE(largest->memory_bytes(), tier.object_bytes_max());
  tier.insert(largest, Newcomer::First);
  EXPECT_NE(tier.peek(key_of(1000)), nullptr);
}

TEST(MemoryTier, WhatIsEvictedIsReleasedWithoutTheLock) {
  MemoryTier tier(1_MiB);
  int released = 0;
  // A destructor that asks the tier: it would wait for ever under the lock.
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto inner = object_of(key_of(i), 50'000);
    tier.insert(ObjectPtr(inner.get(),
                          [&tier, &released, inner](const Object*) {
                            EXPECT_LE(tier.bytes(), tier.capacity_bytes());
                            ++released;
                          }),
                Newcomer::First);
  }
  tier.erase(key_of(99));
  EXPECT_EQ(released, 100 - static_cast<int>(tier.objects()));
  EXPECT_GT(released, 70);
}

/// Random operations against a map that forgets nothing: what the tier finds is what was put there
/// last, it is never above its capacity, and counts agree.
TEST(MemoryTier, AgreesWithAMapAndStaysWithinItsCapacity) {
  struct Row {
    std::uint64_t capacity_bytes;
    std::uint64_t keys;
    std::size_t body_bytes_max;
  };
  const Row rows[] = {{4_KiB, 10, 100},          {64_KiB, 50, 4'000},      {300'000, 2000, 200},
                      {2'936'012, 3000, 10'000}, {2'936'012, 40, 400'000}, {40_MiB, 3000, 60'000}};
  unsigned seed = 0;
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::Message() << "capacity " << row.capacity_bytes << " seed " << ++seed);
    std::mt19937_64 random(seed);
    MemoryTier tier(row.capacity_bytes);
    std::map<std::uint64_t, ObjectPtr> model;
    std::uint64_t found = 0;
    for (int step = 0; step < 20'000; ++step) {
      const std::uint64_t number = random() % row.keys;
      const CacheKey key = key_of(number);
      switch (random() % 8) {
        case 0:
          tier.erase(key);
          model.erase(number);
          break;
        case 1:
        case 2:
        case 3: {
          const ObjectPtr object = object_of(key, random() % row.body_bytes_max);
          tier.insert(object, random() % 2 == 0 ? Newcomer::First : Newcomer::SeenBefore);
          model[number] = object;
          break;
        }
        default:
          if (const ObjectPtr object = tier.find(key)) {
            ++found;
            ASSERT_EQ(object, model[number]);
          }
      }
      ASSERT_LE(tier.bytes(), row.capacity_bytes) << "step " << step;
      ASSERT_LE(tier.objects(), model.size());
    }
    std::uint64_t present = 0;
    std::uint64_t object_bytes = 0;
    for (const auto& [number, object] : model) {
      const ObjectPtr kept = tier.peek(key_of(number));
      if (kept == nullptr) continue;
      EXPECT_EQ(kept, object);
      ++present;
      object_bytes += kept->memory_bytes();
    }
    EXPECT_EQ(tier.objects(), present);
    // A node and a table entry for each at least.
    EXPECT_GE(tier.bytes(), object_bytes + present * 64);
    if (row.capacity_bytes >= 64_KiB) {
      EXPECT_GT(found, 0u);
    }
  }
}

TEST(MemoryTier, NothingIsEvictedWhileItFits) {
  MemoryTier tier(8_MiB);
  for (std::uint64_t i = 0; i < 500; ++i)
    tier.insert(object_of(key_of(i), 10_KiB), Newcomer::First);
  for (std::uint64_t i = 0; i < 500; ++i) EXPECT_NE(tier.find(key_of(i)), nullptr) << i;
  EXPECT_EQ(tier.evictions(), 0u);
}

TEST(MemoryTier, FreedPlacesAreUsedAgain) {
  MemoryTier tier(64_MiB);
  std::uint64_t after_first_round = 0;
  for (int round = 0; round < 10; ++round) {
    for (std::uint64_t i = 0; i < 1000; ++i)
      tier.insert(object_of(key_of(i), 100), Newcomer::First);
    if (round == 0) after_first_round = tier.bytes();
    EXPECT_LE(tier.bytes(), after_first_round + after_first_round / 10) << round;
    for (std::uint64_t i = 0; i < 1000; ++i) tier.erase(key_of(i));
    EXPECT_EQ(tier.objects(), 0u);
  }
}

/// The yardstick: least recently used, in as many object bytes, with no overhead of its own.
class Lru {
 public:
  explicit Lru(std::uint64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}
  bool find(std::uint64_t key) {
    const auto place = places_.find(key);
    if (place == places_.end()) return false;
    order_.splice(order_.begin(), order_, place->second);
    return true;
  }
  void insert(std::uint64_t key, std::uint64_t bytes) {
    order_.emplace_front(key, bytes);
    places_[key] = order_.begin();
    bytes_ += bytes;
    while (bytes_ > capacity_bytes_) {
      bytes_ -= order_.back().second;
      places_.erase(order_.back().first);
      order_.pop_back();
    }
  }

 private:
  std::uint64_t capacity_bytes_;
  std::uint64_t bytes_ = 0;
  std::list<std::pair<std::uint64_t, std::uint64_t>> order_;
  std::unordered_map<std::uint64_t, decltype(order_)::iterator> places_;
};

/// What the admission filter says: seen within the last one to two generations.
class Sightings {
 public:
  Newcomer sight(std::uint64_t key) {
    const bool seen = current_.contains(key) || previous_.contains(key);
    if (current_.insert(key).second && current_.size() == kGenerationKeys) {
      previous_ = std::move(current_);
      current_.clear();
    }
    return seen ? Newcomer::SeenBefore : Newcomer::First;
  }

 private:
  static constexpr std::size_t kGenerationKeys = 2000;
  std::unordered_set<std::uint64_t> current_, previous_;
};

TEST(MemoryTier, HitsAtLeastAsOftenAsLruOnZipfWithOneHitNoise) {
  constexpr std::uint64_t kKeys = 8000;
  constexpr int kRequests = 30'000;
  std::vector<ObjectPtr> objects;
  for (std::uint64_t number = 0; number < kKeys + kRequests; ++number)
    objects.push_back(object_of(key_of(number), 100 + number * 7919 % 3000));

  unsigned seed = 0;
  for (const double skew : {0.7, 0.9, 1.1}) {
    std::vector<double> cumulative;
    double sum = 0;
    for (std::uint64_t rank = 1; rank <= kKeys; ++rank)
      cumulative.push_back(sum += 1 / std::pow(static_cast<double>(rank), skew));
    for (const double noise : {0.0, 0.3, 0.6}) {
      const std::uint64_t capacity_bytes = ++seed % 2 == 0 ? 500'000 : 1'500'000;
      std::mt19937_64 random(seed);
      std::uniform_real_distribution<double> uniform(0, 1);
      MemoryTier tier(capacity_bytes);
      Lru lru(capacity_bytes);
      Sightings sightings;
      int tier_hits = 0;
      int lru_hits = 0;
      std::uint64_t next_one_hit = kKeys;
      for (int i = 0; i < kRequests; ++i) {
        const bool is_noise = uniform(random) < noise;
        const auto rank =
            std::lower_bound(cumulative.begin(), cumulative.end(), uniform(random) * sum);
        const auto number =
            is_noise ? next_one_hit++ : static_cast<std::uint64_t>(rank - cumulative.begin());
        const ObjectPtr& object = objects[number];
        const Newcomer newcomer = sightings.sight(number);
        if (tier.find(object->key) != nullptr) {
          ++tier_hits;
        } else {
          tier.insert(object, newcomer);
        }
        if (lru.find(number)) {
          ++lru_hits;
        } else {
          lru.insert(number, object->memory_bytes());
        }
      }
      EXPECT_GE(tier_hits, lru_hits) << "skew " << skew << " noise " << noise << " capacity "
                                     << capacity_bytes << " seed " << seed;
      RecordProperty("tier_and_lru_hits_" + std::to_string(seed),
                     std::to_string(tier_hits) + " " + std::to_string(lru_hits));
    }
  }
}

}  // namespace
}  // namespace secondsight::cache
