// Threads against the sweep. Run under ThreadSanitizer too (label race).
#include <array>
#include <atomic>
#include <iostream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "admission/two_generation_filter.h"
#include "tests/admission/keys.h"

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;
using test::Keys;

constexpr SteadyTime kStart{1h};

// The contract in terms of the time that maintain() is given: `latest` is stored before each call.
// A sighting that begins when `latest` is t is not forgotten by any call before t + window. So if a
// second sighting of the key ends while `latest` is below t + window, it is a Repeat, whatever the
// sweep did in between.
//
// Both sides wait for each other's steps, so that on a busy machine too they run beside each other
// and not one after the other. A sweep is five long stretches, so that a mark is likely to meet
// one.
TEST(FilterRace, NoMarkIsLostWithinItsWindowDuringSweeps) {
  constexpr auto kWindow = 1000s;
  constexpr auto kSweepTick = kWindow / 256;
  constexpr auto kIdleTick = kWindow / 8;
  constexpr std::size_t kBatch = 24;
  constexpr std::uint64_t kBatchesPerCall = 32;
  constexpr std::uint64_t kRotationsToSee = 500;
  TwoGenerationFilter filter({16384, 1'000'000'000}, kWindow, kStart);
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
    Keys keys(500 + worker);
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

  std::uint64_t rotations = 0;
  std::uint64_t seen_batches = 0;
  for (SteadyTime::duration now{}; rotations < kRotationsToSee;) {
    while (batches.load() == seen_batches) std::this_thread::yield();
    seen_batches = batches.load();
    const bool was_sweeping = filter.sweeping();
    now += was_sweeping ? kSweepTick : kIdleTick;
    latest.store(now.count());
    filter.maintain(kStart + now);
    ++calls;
    if (!was_sweeping && filter.sweeping()) ++rotations;
  }
  stop.store(true);
  for (std::thread& worker : workers) worker.join();

  std::uint64_t checked = 0;
  for (const Tally& tally : tallies) {
    EXPECT_EQ(tally.lost, 0U) << "of " << tally.checked << ", seed " << test::test_seed();
    // A filter that is full of ones would lose nothing either.
    EXPECT_GT(tally.strangers_first, tally.strangers / 2);
    checked += tally.checked;
  }
  EXPECT_GE(checked, kRotationsToSee * kBatch);
  std::cout << "pairs checked " << checked << ", rotations " << rotations << "\n";
}

// Two threads that set bits of the same words take nothing from each other.
TEST(FilterRace, ConcurrentMarksOfTheSameLinesAllStay) {
  constexpr std::uint64_t kKeys = 100'000;
  TwoGenerationFilter filter({16384, 1'000'000'000}, 1000s, kStart);
  std::vector<std::thread> workers;
  for (std::uint64_t w = 0; w < 4; ++w) {
    workers.emplace_back([&filter, w] {
      const Keys shared(600);
      const Keys own(601 + w);
      for (std::uint64_t i = 0; i < kKeys / 4; ++i) {
        filter.prefetch(own.at(i));
        filter.sight(shared.at(i));
        filter.sight(own.at(i));
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  std::uint64_t lost = 0;
  for (std::uint64_t i = 0; i < kKeys / 4; ++i) {
    lost += filter.peek(Keys(600).at(i)) == Sighting::First ? 1U : 0U;
    for (std::uint64_t w = 0; w < 4; ++w) {
      lost += filter.peek(Keys(601 + w).at(i)) == Sighting::First ? 1U : 0U;
    }
  }
  EXPECT_EQ(lost, 0U);
  // A key that two threads mark in the same instant may count twice, never less than once.
  EXPECT_GE(filter.status(kStart).marked_keys, kKeys * 5 / 4 - kKeys / 50);
}

TEST(FilterRace, StatusMayBeReadDuringEverything) {
  TwoGenerationFilter filter({8192, 2'000}, 1000s, kStart);
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop.load()) {
      const FilterStatus status = filter.status(kStart);
      EXPECT_LE(status.fill, 1);
      EXPECT_LE(status.false_positive_rate, 1);
      EXPECT_LE(status.marked_keys, 50'000U);
    }
  });
  Keys keys(700);
  for (int call = 0; call < 300; ++call) {
    for (int i = 0; i < 500; ++i) filter.sight(keys.next());
    filter.maintain(kStart);
  }
  stop.store(true);
  reader.join();
  EXPECT_GE(filter.status(kStart).rotations_by_fill, 20U);
}

}  // namespace
}  // namespace secondsight::admission
