#include "proxy/flight_table.h"

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

TEST(FlightTable, CountsInvalidationsByKey) {
  FlightTable table;
  const admission::Fingerprint key{1, 2};
  const auto before = table.invalidations(key);
  table.note_invalidated({1, 3});
  EXPECT_EQ(table.invalidations(key), before);
  table.note_invalidated(key);
  EXPECT_NE(table.invalidations(key), before);
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
