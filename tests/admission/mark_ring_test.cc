#include "admission/mark_ring.h"

#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace secondsight::admission {
namespace {

std::vector<std::uint64_t> from_to(std::uint64_t first, std::uint64_t last) {
  std::vector<std::uint64_t> marks(last - first + 1);
  std::iota(marks.begin(), marks.end(), first);
  return marks;
}

TEST(MarkRing, CountsWithoutKeeping) {
  MarkRing ring;
  for (std::uint64_t i = 0; i < 100; ++i) ring.add(i);
  EXPECT_EQ(ring.value(), 100U);
  EXPECT_FALSE(ring.keeps_marks());
}

TEST(MarkRing, HandsOutEachMarkOnceInOrder) {
  MarkRing ring;
  ring.add(7);  // before marks are kept
  ring.keep_marks();
  std::vector<std::uint64_t> taken;
  EXPECT_EQ(ring.drain(taken), 0U);
  EXPECT_TRUE(taken.empty());
  for (std::uint64_t i = 1; i <= 10; ++i) ring.add(i);
  EXPECT_EQ(ring.drain(taken), 0U);
  for (std::uint64_t i = 11; i <= 20; ++i) ring.add(i);
  EXPECT_EQ(ring.drain(taken), 0U);
  EXPECT_EQ(ring.drain(taken), 0U);
  EXPECT_EQ(taken, from_to(1, 20));
  EXPECT_EQ(ring.value(), 21U);
}

TEST(MarkRing, KeepsTheLatestAndCountsWhatItLost) {
  MarkRing ring;
  ring.keep_marks();
  constexpr std::uint64_t kAdded = MarkRing::kKept * 3 + 5;
  for (std::uint64_t i = 1; i <= kAdded; ++i) ring.add(i);
  std::vector<std::uint64_t> taken;
  EXPECT_EQ(ring.drain(taken), kAdded - MarkRing::kKept);
  EXPECT_EQ(taken, from_to(kAdded - MarkRing::kKept + 1, kAdded));
  ring.add(kAdded + 1);
  taken.clear();
  EXPECT_EQ(ring.drain(taken), 0U);
  EXPECT_EQ(taken, from_to(kAdded + 1, kAdded + 1));
}

// A mark of zero looks like an empty slot: it is waited for once, and does not hold up the others.
TEST(MarkRing, AnEmptySlotHoldsUpTheOthersOnce) {
  MarkRing ring;
  ring.keep_marks();
  ring.add(1);
  for (int i = 0; i < 100; ++i) ring.add(0);
  ring.add(2);
  std::vector<std::uint64_t> taken;
  EXPECT_EQ(ring.drain(taken), 0U);
  EXPECT_EQ(taken, from_to(1, 1));
  EXPECT_EQ(ring.drain(taken), 100U);
  EXPECT_EQ(taken, from_to(1, 2));
  ring.add(3);
  EXPECT_EQ(ring.drain(taken), 0U);
  EXPECT_EQ(taken, from_to(1, 3));
}

// Threads that add while one drains: each mark arrives exactly once or is counted as lost.
TEST(MarkRingRace, NoMarkIsInventedAndNoLossIsSilent) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 200'000;
  MarkRing ring;
  ring.keep_marks();
  std::vector<std::thread> adders;
  std::atomic<std::uint64_t> running{kThreads};
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    adders.emplace_back([&ring, &running, t] {
      for (std::uint64_t i = 0; i < kEach; ++i) ring.add(t * kEach + i + 1);
      running.fetch_sub(1, std::memory_order_release);
    });
  }
  std::vector<std::uint64_t> taken;
  std::uint64_t lost = 0;
  while (running.load(std::memory_order_acquire) > 0) lost += ring.drain(taken);
  for (std::thread& adder : adders) adder.join();
  for (int i = 0; i < 3; ++i) lost += ring.drain(taken);
  EXPECT_EQ(ring.value(), kThreads * kEach);
  EXPECT_GE(taken.size() + lost, kThreads * kEach);
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(std::adjacent_find(taken.begin(), taken.end()), taken.end()) << "a mark came twice";
  ASSERT_FALSE(taken.empty());
  EXPECT_GE(taken.front(), 1U);
  EXPECT_LE(taken.back(), kThreads * kEach);
}

}  // namespace
}  // namespace secondsight::admission
