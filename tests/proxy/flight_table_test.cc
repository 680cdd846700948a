#include "proxy/flight_table.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace secondsight::proxy {
namespace {

using std::chrono::seconds;

const SteadyTime kNow{std::chrono::hours{1}};

TEST(FlightTable, RemembersUncacheableKeysForAWhile) {
  FlightTable table;
  const admission::Fingerprint key{1, 2};
  EXPECT_FALSE(table.is_uncacheable(key, kNow));
  table.note_uncacheable(key, kNow);
  EXPECT_TRUE(table.is_uncacheable(key, kNow));
  EXPECT_TRUE(table.is_uncacheable(key, kNow + seconds{9}));
  EXPECT_FALSE(table.is_uncacheable(key, kNow + seconds{10}));
  EXPECT_FALSE(table.is_uncacheable({1, 3}, kNow)) << "another key in the same slot";
  EXPECT_FALSE(table.is_uncacheable({2, 2}, kNow));
  table.note_cacheable({1, 3});
  EXPECT_TRUE(table.is_uncacheable(key, kNow)) << "another key's news";
  table.note_cacheable(key);
  EXPECT_FALSE(table.is_uncacheable(key, kNow));
}

/// A cache in memory only.
struct MemoryCache {
  MemoryCache() {
    AdmissionSettings admission;
    admission.policy = PolicyName::Never;
    policy = admission::make_policy(admission, kNow);
    CacheSettings settings;
    settings.memory_bytes = 1U << 20;
    cache = std::move(*cache::Cache::open(settings, nullptr, *policy, seed, metrics));
  }
  cache::CacheKey key(std::string_view target) const {
    return cache::CacheKey::primary("http", "test", target, seed);
  }
  const admission::FingerprintSeed seed{admission::FingerprintSeed::Bytes{}};
  Metrics metrics;
  std::unique_ptr<admission::AdmissionPolicy> policy;
  std::unique_ptr<cache::Cache> cache;
};

TEST(FlightTable, NothingIsPublishedOfAKeyThatWasForgottenSince) {
  FlightTable table;
  MemoryCache memory;
  const cache::CacheKey key = memory.key("/a");
  const auto& primary = key.fingerprint();
  const auto seen = table.invalidations(primary);
  int published = 0;
  const auto put = [&published] { ++published; };
  EXPECT_TRUE(table.publish(primary, seen, put));
  table.forget(*memory.cache, {primary.high, primary.low + 1}, memory.key("/b"), nullptr,
               WallTime{});
  EXPECT_TRUE(table.publish(primary, seen, put)) << "another key's news";
  table.forget(*memory.cache, primary, key, nullptr, WallTime{});
  EXPECT_FALSE(table.publish(primary, seen, put));
  EXPECT_EQ(published, 2);
  EXPECT_TRUE(table.publish(primary, table.invalidations(primary), put)) << "who asked after it";
}

TEST(FlightTable, WhatWasFoundBeforeItWasForgottenNeverComesBack) {
  FlightTable table;
  MemoryCache memory;
  const cache::CacheKey key = memory.key("/a");
  const auto& primary = key.fingerprint();
  const auto object_of = [&](int version) {
    auto head = std::make_shared<cache::ObjectHead>();
    head->status = version;
    return cache::make_object(key, std::move(head), {});
  };
  std::atomic<int> current{1};    // what an origin would send
  std::atomic<int> forgotten{0};  // up to this version
  std::atomic<bool> came_back{false};
  std::atomic<bool> over{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!over) {
        const int before = forgotten;
        const auto seen = table.invalidations(primary);
        const auto found = memory.cache->find_in_memory(key);
        if (found && found->head->status <= before) came_back = true;
        // What it found, or got from the origin, goes into the cache a moment later.
        const auto object = found ? found : object_of(current);
        table.publish(primary, seen, [&] { memory.cache->keep(object, cache::Newcomer::First); });
      }
    });
  }
  for (int version = 1; version < 20'000; ++version) {
    current = version + 1;  // the unsafe request takes effect, then its answer passes by
    table.forget(*memory.cache, primary, key, nullptr, WallTime{});
    forgotten = version;
  }
  over = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_FALSE(came_back);
}

TEST(FlightTable, WholeBodiesStayWithinTheirBudget) {
  FlightTable table;
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> held{0};
  std::atomic<bool> exceeded{false};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10'000; ++round) {
        const std::uint64_t bytes = FlightTable::kWholeBytesMax / 3;
        if (!table.reserve_whole(bytes)) continue;
        if ((held += bytes) > FlightTable::kWholeBytesMax) exceeded = true;
        held -= bytes;
        table.release_whole(bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(exceeded);
  EXPECT_TRUE(table.reserve_whole(FlightTable::kWholeBytesMax)) << "all was given back";
  EXPECT_FALSE(table.reserve_whole(1));
}

}  // namespace
}  // namespace secondsight::proxy
