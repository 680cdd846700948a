// Threads against rotations, for every alternative structure. Run under ThreadSanitizer too (label
// race).
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/admission/alternatives.h"

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;
using test::Keys;
using test::kStart;
using test::kWindow;

template <typename T>
class AlternativeRace : public testing::Test {};
TYPED_TEST_SUITE(AlternativeRace, test::Alternatives, test::AlternativeNames);

constexpr std::uint64_t kRoomy = 400'000;
constexpr double kRate = 0.0005;

// The contract in terms of the time that maintain() is given: `latest` is stored before each call.
// A sighting that begins when `latest` is t is not forgotten by any call before t + window. So if a
// second sighting of the key ends while `latest` is below t + window, it is a Repeat. Both sides
// wait for each other's steps, so that on a busy machine too they run beside each other.
TYPED_TEST(AlternativeRace, NoMarkIsLostWithinItsWindowDuringRotations) {
  constexpr auto kTick = kWindow / 4;
  constexpr std::size_t kBatch = 24;
  constexpr std::uint64_t kBatchesPerCall = 8;
  constexpr std::uint64_t kRotationsToSee = 100;
  TypeParam filter(kRoomy, kRate, kWindow, kStart);
  std::atomic<SteadyTime::rep> latest{0};
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> batches{0};
  std::atomic<bool> stop{false};
  struct alignas(64) Tally {
    std::uint64_t checked = 0;
    std::uint64_t lost = 0;
    std::uint64_t strangers = 0;
    std::uint64_t strangers_first = 0;
  };
  std::array<Tally, 2> tallies;

  const auto work = [&](std::uint64_t worker) {
    Keys keys(10 + worker);
    Tally& tally = tallies[worker];
    std::array<Fingerprint, kBatch> batch;
    std::uint64_t call = 0;
    std::uint64_t batches_in_call = 0;
    while (!stop.load()) {
      if (const std::uint64_t now = calls.load(); now != call) {
        call = now;
        batches_in_call = 0;
      }
      if (++batches_in_call > kBatchesPerCall) {
        std::this_thread::yield();
        continue;
      }
      const SteadyTime::rep before = latest.load();
      for (Fingerprint& key : batch) {
        key = keys.next();
        filter.prefetch(key);
        tally.strangers_first += filter.sight(key) == Sighting::First ? 1U : 0U;
        ++tally.strangers;
      }
      std::uint64_t lost = 0;
      for (const Fingerprint& key : batch) {
        lost += filter.sight(key) == Sighting::First ? 1U : 0U;
      }
      ++batches;
      if (latest.load() - before >= SteadyTime::duration(kWindow).count()) continue;
      tally.checked += kBatch;
      tally.lost += lost;
    }
  };
  std::vector<std::thread> workers;
  for (std::uint64_t w = 0; w < tallies.size(); ++w) workers.emplace_back(work, w);

  std::uint64_t seen_batches = 0;
  SteadyTime::duration now{};
  while (filter.status(kStart + now).rotations_by_age < kRotationsToSee) {
    while (batches.load() == seen_batches) std::this_thread::yield();
    seen_batches = batches.load();
    now += kTick;
    latest.store(now.count());
    filter.maintain(kStart + now);
    ++calls;
  }
  stop.store(true);
  for (std::thread& worker : workers) worker.join();

  std::uint64_t checked = 0;
  for (const Tally& tally : tallies) {
    EXPECT_EQ(tally.lost, 0U) << "of " << tally.checked << ", seed " << test::test_seed();
    // A structure that says Repeat to everything would lose nothing either.
    EXPECT_GT(tally.strangers_first, tally.strangers / 2);
    checked += tally.checked;
  }
  EXPECT_GE(checked, kRotationsToSee * kBatch);
  EXPECT_EQ(filter.status(kStart + now).rotations_by_fill, 0U);
}

// Threads that mark the same lines, buckets or shards take nothing from each other.
TYPED_TEST(AlternativeRace, ConcurrentMarksAllStay) {
  constexpr std::uint64_t kKeys = 20'000;
  TypeParam filter(kRoomy, kRate, kWindow, kStart);
  std::vector<std::thread> workers;
  for (std::uint64_t w = 0; w < 4; ++w) {
    workers.emplace_back([&filter, w] {
      const Keys shared(20);
      const Keys own(21 + w);
      for (std::uint64_t i = 0; i < kKeys; ++i) {
        filter.sight(shared.at(i));
        filter.sight(own.at(i));
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  std::uint64_t lost = 0;
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    for (std::uint64_t stream = 20; stream < 25; ++stream) {
      lost += filter.peek(Keys(stream).at(i)) == Sighting::First ? 1U : 0U;
    }
  }
  EXPECT_EQ(lost, 0U);
  // Two threads that mark a key in the same instant may both count it; a false positive is none.
  const std::uint64_t marked = filter.status(kStart).marked_keys;
  EXPECT_GE(marked, 5 * kKeys - kKeys / 20);
  EXPECT_LE(marked, 8 * kKeys);
}

TYPED_TEST(AlternativeRace, StatusMayBeReadDuringEverything) {
  TypeParam filter(2000, kRate, kWindow, kStart);
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop.load()) {
      const FilterStatus status = filter.status(kStart);
      EXPECT_LE(status.fill, 1);
      EXPECT_LE(status.false_positive_rate, 1);
      EXPECT_LE(status.marked_keys, 80'000U);
      EXPECT_GT(status.memory_bytes, 0U);
    }
  });
  Keys keys(30);
  while (filter.status(kStart).rotations_by_fill < 3) {
    for (int i = 0; i < 500; ++i) filter.sight(keys.next());
    filter.maintain(kStart);
  }
  stop.store(true);
  reader.join();
}

// Slices are added while others mark: 15 times the planned keys, and every one is there.
TEST(ScalableRace, GrowthLosesNothing) {
  constexpr std::uint64_t kExpected = 8'000;
  constexpr std::uint64_t kEach = kExpected * 15 / 2;
  ScalableFilter filter(kExpected, kRate, kWindow, kStart);
  std::atomic<unsigned> done{0};
  std::vector<std::thread> workers;
  for (std::uint64_t w = 0; w < 2; ++w) {
    workers.emplace_back([&, w] {
      Keys keys(40 + w);
      while (keys.taken() < kEach) filter.sight(keys.next());
      ++done;
    });
  }
  while (done.load() < 2) filter.maintain(kStart);
  for (std::thread& worker : workers) worker.join();
  for (unsigned i = 0; i < kScalableSlices; ++i) filter.maintain(kStart);
  EXPECT_EQ(filter.slice_count(), kScalableSlices);
  std::uint64_t lost = 0;
  for (std::uint64_t w = 0; w < 2; ++w) {
    const Keys keys(40 + w);
    for (std::uint64_t i = 0; i < kEach; ++i) {
      lost += filter.peek(keys.at(i)) == Sighting::First ? 1U : 0U;
    }
  }
  EXPECT_EQ(lost, 0U);
  EXPECT_EQ(filter.status(kStart).rotations_by_fill, 0U);
}

// One thread forgets its own keys beside another one's marks.
template <typename T>
class ForgetRace : public testing::Test {};
using Forgetful = testing::Types<CuckooFilter, ExactSet>;
TYPED_TEST_SUITE(ForgetRace, Forgetful, test::AlternativeNames);

TYPED_TEST(ForgetRace, ForgettingTakesNothingFromOtherKeys) {
  constexpr std::uint64_t kKeys = 20'000;
  TypeParam filter(kRoomy, kRate, kWindow, kStart);
  std::thread forgetful([&filter] {
    const Keys keys(50);
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      filter.sight(keys.at(i));
      EXPECT_TRUE(filter.forget(keys.at(i)));
    }
  });
  Keys kept(51);
  while (kept.taken() < kKeys) filter.sight(kept.next());
  forgetful.join();
  std::uint64_t lost = 0;
  std::uint64_t remembered = 0;
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    lost += filter.peek(kept.at(i)) == Sighting::First ? 1U : 0U;
    remembered += filter.peek(Keys(50).at(i)) == Sighting::Repeat ? 1U : 0U;
  }
  // A cuckoo filter shares a tag between two of these 40,000 keys with a chance of a few percent.
  EXPECT_LE(lost, 1U);
  EXPECT_LE(remembered, 1U);
}

}  // namespace
}  // namespace secondsight::admission
