// Threads against the sweep. Run under ThreadSanitizer too (label race).
#include <array>
#include <atomic>
#include <iostream>
#include <thread>
#include <vector>

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
TEST(FilterRace, NoMarkIsLostWithinItsWindowDuringSweeps) {
  constexpr auto kWindow = 1000s;
  constexpr auto kTick = kWindow / 512;  // a sweep takes eight calls, a generation 520
  constexpr std::size_t kBatch = 24;
  constexpr std::uint64_t kBatchesToCheck = 15'000;  // per worker
  constexpr std::uint64_t kRotationsToSee = 300;
  constexpr std::uint64_t kMarksPerGeneration =
      100'000;  // of one worker; more would blind the test
  // Few lines: a generation of this test is short, and every sweep meets many sightings.
  TwoGenerationFilter filter({16384, 1'000'000'000}, kWindow, kStart);
  std::atomic<SteadyTime::rep> latest{0};
  std::atomic<std::uint64_t> rotations{0};
  std::atomic<unsigned> working{2};
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
    std::uint64_t batches = 0;
    std::uint64_t generation = 0;
    std::uint64_t marked = 0;  // in this generation
    while (batches < kBatchesToCheck || rotations.load() < kRotationsToSee) {
      if (const std::uint64_t now = rotations.load(); now != generation) {
        generation = now;
        marked = 0;
      }
      if (marked >= kMarksPerGeneration) {
        std::this_thread::yield();
        continue;
      }
      marked += kBatch;
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
      if (latest.load() - before >= SteadyTime::duration(kWindow).count()) continue;
      ++batches;
      tally.checked += kBatch;
      tally.lost += lost;
    }
    --working;
  };
  std::vector<std::thread> workers;
  for (std::uint64_t w = 0; w < tallies.size(); ++w) workers.emplace_back(work, w);

  for (SteadyTime::duration now{}; working.load() > 0; now += kTick) {
    latest.store(now.count());
    const bool was_sweeping = filter.sweeping();
    filter.maintain(kStart + now);
    if (!was_sweeping && filter.sweeping()) ++rotations;
  }
  for (std::thread& worker : workers) worker.join();

  for (const Tally& tally : tallies) {
    EXPECT_EQ(tally.lost, 0U) << "of " << tally.checked << ", seed " << test::test_seed();
    EXPECT_GE(tally.checked, kBatch * kBatchesToCheck);
    // A filter that is full of ones would lose nothing either.
    EXPECT_GT(tally.strangers_first, tally.strangers / 2);
  }
  EXPECT_GE(rotations.load(), kRotationsToSee);
  std::cout << "pairs checked " << tallies[0].checked + tallies[1].checked << ", rotations "
            << rotations.load() << "\n";
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
  while (filter.status(kStart).rotations_by_fill < 20) {
    for (int i = 0; i < 500; ++i) filter.sight(keys.next());
    filter.maintain(kStart);
  }
  stop.store(true);
  reader.join();
}

}  // namespace
}  // namespace secondsight::admission
