// Many threads, a small filter, rotations by age and by fill in turn: the guarantee as the filter
// states it, for pairs of sightings at any distance. Quick by default; ctest --preset long runs it
// for minutes. Under ThreadSanitizer too (label race).
#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <random>
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
constexpr auto kWindow = 1000s;
constexpr FilterSize kSize{8192, 200'000};
constexpr std::uint64_t kWorkers = 6;  // more than cores: they are interrupted anywhere
constexpr std::size_t kBatch = 24;

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// What the filter was told and given at one moment. `latest` is stored before each call of
// maintain(), `begun` grows before a batch is sighted: both are upper bounds of what the filter
// knows.
struct Moment {
  SteadyTime::rep latest;
  std::uint64_t begun;
};

struct Shared {
  TwoGenerationFilter filter{kSize, kWindow, kStart};
  std::atomic<SteadyTime::rep> latest{0};
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> batches{0};
  std::atomic<std::uint64_t> batches_per_call{1};
  std::atomic<bool> stop{false};

  Moment now() const { return {latest.load(), begun.load()}; }
};

// Whether a key that was sighted after `then` must be known to a look that ended before `now`. By
// age a line is cleared a window after the sighting at the earliest; by fill after 31/32 of a
// generation's marks. What was begun before `then` may have marked after it.
bool must_know(const Moment& then, const Moment& now) {
  constexpr std::uint64_t kInFlight = 2 * kWorkers * kBatch;
  constexpr std::uint64_t kMarks = kSize.keys_per_generation / 32 * 31;
  return now.latest - then.latest < SteadyTime::duration(kWindow).count() &&
         now.begun - then.begun + kInFlight < kMarks;
}

struct alignas(64) Tally {
  std::uint64_t checked_at_once = 0;
  std::uint64_t checked_later = 0;
  std::uint64_t lost_at_once = 0;
  std::uint64_t lost_later = 0;
  std::uint64_t strangers = 0;
  std::uint64_t strangers_first = 0;
};

class Worker {
 public:
  Worker(Shared& shared, Tally& tally, std::uint64_t number)
      : shared_(shared), tally_(tally), keys_(800 + number), random_(test::test_seed() + number) {}

  void run() {
    std::uint64_t call = 0;
    std::uint64_t batches_in_call = 0;
    while (!shared_.stop.load()) {
      if (const std::uint64_t now = shared_.calls.load(); now != call) {
        call = now;
        batches_in_call = 0;
      }
      if (++batches_in_call > shared_.batches_per_call.load()) {
        std::this_thread::yield();
        continue;
      }
      mark_and_look();
      look_back();
      ++shared_.batches;
    }
  }

 private:
  struct Marked {
    std::uint64_t first_key;
    Moment when;
  };

  void mark_and_look() {
    const Marked batch{keys_.taken(), shared_.now()};
    shared_.begun += 2 * kBatch;
    for (std::size_t i = 0; i < kBatch; ++i) {
      tally_.strangers_first += shared_.filter.sight(keys_.next()) == Sighting::First ? 1U : 0U;
    }
    tally_.strangers += kBatch;
    std::uint64_t lost = 0;
    for (std::size_t i = 0; i < kBatch; ++i) {
      lost += shared_.filter.sight(keys_.at(batch.first_key + i)) == Sighting::First ? 1U : 0U;
    }
    remembered_.push_back(batch);
    if (!must_know(batch.when, shared_.now())) return;
    tally_.checked_at_once += kBatch;
    tally_.lost_at_once += lost;
  }

  // At a batch of some time ago, every other time at the oldest that must be known still; without
  // marking it once more.
  void look_back() {
    const Moment now = shared_.now();
    while (!remembered_.empty() && !must_know(remembered_.front().when, now)) {
      remembered_.pop_front();
    }
    if (remembered_.empty()) return;
    const std::uint64_t drawn = random_();
    const Marked batch = remembered_[drawn % 2 == 0 ? 0 : drawn / 2 % remembered_.size()];
    std::uint64_t lost = 0;
    for (std::size_t i = 0; i < kBatch; ++i) {
      lost += shared_.filter.peek(keys_.at(batch.first_key + i)) == Sighting::First ? 1U : 0U;
    }
    if (!must_know(batch.when, shared_.now())) return;
    tally_.checked_later += kBatch;
    tally_.lost_later += lost;
  }

  Shared& shared_;
  Tally& tally_;
  Keys keys_;
  std::mt19937_64 random_;
  std::deque<Marked> remembered_;
};

// Calls maintain() until `wanted` more rotations began. Waits for the workers' batches between two
// calls, as they wait for it, so that a sweep never has the machine to itself.
class Maintainer {
 public:
  explicit Maintainer(Shared& shared) : shared_(shared) {}

  void rotate(std::uint64_t wanted, SteadyTime::duration tick, std::uint64_t batches_per_call) {
    shared_.batches_per_call.store(batches_per_call);
    for (std::uint64_t rotations = 0; rotations < wanted;) {
      while (shared_.batches.load() == seen_batches_) std::this_thread::yield();
      seen_batches_ = shared_.batches.load();
      const bool was_sweeping = shared_.filter.sweeping();
      now_ += tick;
      shared_.latest.store(now_.count());
      shared_.filter.maintain(kStart + now_);
      ++shared_.calls;
      rotations += !was_sweeping && shared_.filter.sweeping() ? 1U : 0U;
    }
  }
  FilterStatus status() const { return shared_.filter.status(kStart + now_); }

 private:
  Shared& shared_;
  SteadyTime::duration now_{};
  std::uint64_t seen_batches_ = 0;
};

TEST(FilterStress, NoMarkIsLostWithinItsWindow) {
  const std::uint64_t rounds = number_from_environment("SECONDSIGHT_TEST_ROUNDS", 2);
  constexpr std::uint64_t kRotationsByAge = 24;
  constexpr std::uint64_t kRotationsByFill = 6;
  Shared shared;
  std::array<Tally, kWorkers> tallies;
  std::vector<std::thread> threads;
  for (std::uint64_t w = 0; w < kWorkers; ++w) {
    threads.emplace_back([&shared, &tallies, w] { Worker(shared, tallies[w], w).run(); });
  }
  Maintainer maintainer(shared);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    // A sweep of a few long stretches; a sweep of many short ones; none of the time's doing.
    maintainer.rotate(kRotationsByAge / 2, kWindow / 250, 4);
    maintainer.rotate(kRotationsByAge / 2, kWindow / 1000, 1);
    maintainer.rotate(kRotationsByFill, 0s, 32);
  }
  shared.stop.store(true);
  for (std::thread& thread : threads) thread.join();

  Tally all;
  for (const Tally& tally : tallies) {
    all.checked_at_once += tally.checked_at_once;
    all.checked_later += tally.checked_later;
    all.lost_at_once += tally.lost_at_once;
    all.lost_later += tally.lost_later;
    all.strangers += tally.strangers;
    all.strangers_first += tally.strangers_first;
  }
  EXPECT_EQ(all.lost_at_once, 0U) << "of " << all.checked_at_once << ", seed " << test::test_seed();
  EXPECT_EQ(all.lost_later, 0U) << "of " << all.checked_later << ", seed " << test::test_seed();
  // A filter that is full of ones would lose nothing either.
  EXPECT_GT(all.strangers_first, all.strangers / 10 * 9);
  EXPECT_GT(all.checked_at_once, all.strangers / 2);
  EXPECT_GT(all.checked_later, all.strangers / 4);
  const FilterStatus status = maintainer.status();
  EXPECT_GE(status.rotations_by_age, rounds * kRotationsByAge / 2);
  EXPECT_GE(status.rotations_by_fill, rounds * kRotationsByFill / 2);
  std::cout << "checked at once " << all.checked_at_once << ", later " << all.checked_later
            << ", rotations by age " << status.rotations_by_age << ", by fill "
            << status.rotations_by_fill << "\n";
}

}  // namespace
}  // namespace secondsight::admission
