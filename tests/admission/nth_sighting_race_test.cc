// Threads against the sweeps of a cascade. Run under ThreadSanitizer too (label race).
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "admission/nth_sighting.h"
#include "tests/admission/keys.h"

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;
using test::Keys;

constexpr SteadyTime kStart{1h};

// As FilterRace: `latest` is stored before each call of maintain(). If a key's first and third
// sighting lie within one window of that time, the third is admitted, whatever was swept between.
TEST(NthSightingRace, TheThirdSightingIsAdmittedDuringSweeps) {
  constexpr auto kWindow = 1000s;
  constexpr auto kTick = kWindow / 256;
  constexpr std::size_t kBatch = 24;
  constexpr std::uint64_t kBatchesPerCall = 4;
  constexpr std::uint64_t kCalls = 10'000;  // some thirty rotations of each filter
  NthSighting policy({.line_count = 16384, .keys_per_generation = 1'000'000'000}, kWindow, kStart,
                     3);
  std::atomic<SteadyTime::rep> latest{0};
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> batches{0};
  std::atomic<bool> stop{false};
  struct alignas(64) Tally {
    std::uint64_t checked = 0;
    std::uint64_t refused = 0;
    std::uint64_t strangers = 0;
    std::uint64_t strangers_first = 0;
  };
  std::array<Tally, 2> tallies;

  const auto work = [&](std::uint64_t worker) {
    Keys keys(700 + worker);
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
        const Verdict verdict = policy.sight(key, std::nullopt);
        tally.strangers_first += verdict == Verdict::FirstSighting ? 1U : 0U;
        ++tally.strangers;
      }
      for (const Fingerprint& key : batch) policy.sight(key, std::nullopt);
      std::uint64_t refused = 0;
      for (const Fingerprint& key : batch)
        refused += policy.sight(key, std::nullopt) == Verdict::Repeat ? 0U : 1U;
      ++batches;
      if (latest.load() - before >= SteadyTime::duration(kWindow).count()) continue;
      tally.checked += kBatch;
      tally.refused += refused;
    }
  };
  std::vector<std::thread> workers;
  for (std::uint64_t w = 0; w < tallies.size(); ++w) workers.emplace_back(work, w);

  std::uint64_t seen_batches = 0;
  SteadyTime::duration now{};
  for (std::uint64_t call = 0; call < kCalls; ++call) {
    while (batches.load() == seen_batches) std::this_thread::yield();
    seen_batches = batches.load();
    now += kTick;
    latest.store(now.count());
    policy.maintain(kStart + now);
    ++calls;
  }
  stop.store(true);
  for (std::thread& worker : workers) worker.join();

  EXPECT_GT(policy.status(kStart + now).rotations_by_age, 40U);
  std::uint64_t checked = 0;
  for (const Tally& tally : tallies) {
    EXPECT_EQ(tally.refused, 0U) << "of " << tally.checked << ", seed " << test::test_seed();
    // Filters that are full of ones would refuse nothing either.
    EXPECT_GT(tally.strangers_first, tally.strangers / 2);
    checked += tally.checked;
  }
  // Only a batch that slept for 256 calls goes unchecked.
  EXPECT_GE(checked, kCalls / 2 * kBatch);
}

}  // namespace
}  // namespace secondsight::admission
