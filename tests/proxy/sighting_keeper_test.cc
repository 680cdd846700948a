#include "proxy/sighting_keeper.h"

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/admission/keys.h"
#include "tests/support/manual_clock.h"
#include "tests/support/sim_file_system.h"

namespace secondsight::proxy {
namespace {

using admission::FilterSize;
using admission::SightingJournal;
using admission::TwoGenerationFilter;
using admission::test::Keys;
using test::ManualClock;
using test::SimFileSystem;

constexpr std::chrono::hours kWindow{24};
constexpr FilterSize kRoomy{32768, 1'000'000};

/// A process's filter and its keeper, on a disk that tests share.
class Process {
 public:
  Process(SimFileSystem& files, const ManualClock& clock, const FilterSize& size = kRoomy)
      : filter(size, kWindow, clock.steady()),
        keeper(files,
               {.seed_id = 1,
                .size = size,
                .window = kWindow,
                .previous_rate_max = admission::previous_rate_max(0.01),
                .bytes_max = std::uint64_t{1} << 30U},
               filter, clock, metrics, [this] { return is_usable.load(); }) {}

  std::uint64_t known(const Keys& keys, std::uint64_t first, std::uint64_t end) const {
    std::uint64_t repeats = 0;
    for (std::uint64_t i = first; i < end; ++i)
      repeats += filter.peek(keys.at(i)) == admission::Sighting::Repeat ? 1U : 0U;
    return repeats;
  }

  Metrics metrics;
  std::atomic<bool> is_usable{true};
  TwoGenerationFilter filter;
  SightingKeeper keeper;
};

// Fewer keys than a ring holds, so that none may be lost however late the keeper's thread wakes.
TEST(SightingKeeper, WhatThreadsSightOutlivesThem) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 4000;
  SimFileSystem files(1);
  ManualClock clock;
  const Keys keys(1);
  {
    Process process(files, clock);
    process.keeper.start();
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&process, &keys, t] {
        for (std::uint64_t i = t * kEach; i < (t + 1) * kEach; ++i)
          process.filter.sight(keys.at(i));
      });
    }
    for (std::thread& thread : threads) thread.join();
    process.keeper.stop();
    EXPECT_EQ(process.keeper.lost(), 0U);
  }
  Process next(files, clock);
  next.keeper.start();
  EXPECT_EQ(next.known(keys, 0, kThreads * kEach), kThreads * kEach);
}

// Rotations by fill, one after the other, while keys are sighted and taken: what the filter knew at
// the end is known to the next process.
TEST(SightingKeeper, ARestartForgetsNothingThatTheFilterKnew) {
  constexpr std::uint64_t kGeneration = 3000;
  constexpr FilterSize kSmall{32768, kGeneration};
  SimFileSystem files(2);
  ManualClock clock;
  Keys keys(2);
  for (int life = 0; life < 6; ++life) {
    Process process(files, clock, kSmall);
    process.keeper.start();
    if (life > 0) {
      const std::uint64_t remembered = kGeneration / 32 * 31;
      EXPECT_EQ(process.known(keys, keys.taken() - remembered, keys.taken()), remembered) << life;
    }
    std::atomic<bool> done{false};
    std::thread upkeep([&] {
      while (!done.load()) process.filter.maintain(clock.steady());
    });
    for (std::uint64_t i = 0; i < 5 * kGeneration; ++i) {
      process.filter.sight(keys.next());
      if (i % 100 == 0) std::this_thread::yield();
    }
    done.store(true);
    upkeep.join();
    process.keeper.stop();
    ASSERT_EQ(process.keeper.lost(), 0U) << "a ring holds all of them";
  }
}

// The directory comes when the proxy has been running for a while.
TEST(SightingKeeper, ADirectoryThatComesLateIsReadAndWritten) {
  SimFileSystem files(3);
  ManualClock clock;
  Keys keys(3);
  {
    Process process(files, clock);
    process.keeper.start();
    for (int i = 0; i < 100; ++i) process.filter.sight(keys.next());
  }
  {
    Process process(files, clock);
    process.is_usable = false;
    process.keeper.start();
    EXPECT_EQ(process.known(keys, 0, 100), 0U);
    for (int i = 0; i < 100; ++i) process.filter.sight(keys.next());
    process.is_usable = true;
    process.keeper.stop();  // takes a last look
    EXPECT_EQ(process.known(keys, 0, 200), 200U);
  }
  Process next(files, clock);
  next.keeper.start();
  EXPECT_EQ(next.known(keys, 0, 200), 200U);
}

// What the disk never took is said to be lost.
TEST(SightingKeeper, WhatTheDiskDidNotTakeIsCounted) {
  SimFileSystem files(6);
  ManualClock clock;
  Keys keys(6);
  Process process(files, clock);
  process.keeper.start();
  process.is_usable = false;
  for (int i = 0; i < 100; ++i) process.filter.sight(keys.next());
  process.keeper.stop();
  EXPECT_EQ(process.keeper.lost(), 100U);
}

// A disk that is full takes no marks, though a sync of what it has goes well: that is no recovery.
TEST(SightingKeeper, ASyncDoesNotSayThatMarksAreKeptAgain) {
  SimFileSystem files(7);
  ManualClock clock;
  Keys keys(7);
  ::testing::internal::CaptureStderr();
  {
    Process process(files, clock);
    process.keeper.start();
    files.set_capacity_bytes(0);
    for (int i = 0; i < 100; ++i) process.filter.sight(keys.next());
    process.keeper.stop();
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("cannot keep sightings"), std::string::npos) << log;
  EXPECT_EQ(log.find("kept for a restart again"), std::string::npos) << log;
}

TEST(SightingKeeper, ImportsWhatIsOfferedOneAfterTheOther) {
  SimFileSystem files(4);
  ManualClock clock;
  Keys theirs(5);
  TwoGenerationFilter other(kRoomy, kWindow, clock.steady());
  for (int i = 0; i < 1000; ++i) other.sight(theirs.next());
  {
    const auto offered = files.create(kOfferedSnapshot);
    ASSERT_TRUE(offered);
    ASSERT_TRUE(write_snapshot(**offered, other, admission::SnapshotOf::Both, 1, clock.wall()));
  }
  {
    Process process(files, clock);
    process.keeper.start();
    std::promise<SnapshotImport> first, second;
    process.keeper.import_offered([&](SnapshotImport import) { first.set_value(import); });
    process.keeper.import_offered([&](SnapshotImport import) { second.set_value(import); });
    const SnapshotImport imported = first.get_future().get();
    EXPECT_GT(imported.new_bits, 0U);
    EXPECT_EQ(imported.refused, 0U);
    EXPECT_TRUE(imported.is_kept);
    EXPECT_EQ(second.get_future().get().new_bits, 0U) << "nothing is new any more";
    EXPECT_EQ(process.known(theirs, 0, 1000), 1000U);
  }
  Process next(files, clock);
  next.keeper.start();
  EXPECT_EQ(next.known(theirs, 0, 1000), 1000U);
}

TEST(SightingKeeper, WhatWaitsIsToldAtMostOnceAndNeverAfterTheEnd) {
  SimFileSystem files(5);
  ManualClock clock;
  std::atomic<int> told{0};
  {
    Process process(files, clock);
    process.keeper.start();
    for (int i = 0; i < 50; ++i)
      process.keeper.import_offered([&](SnapshotImport import) {
        EXPECT_FALSE(import.reason.empty()) << "nothing was offered";
        ++told;
      });
    process.keeper.stop();
  }
  EXPECT_LE(told.load(), 50);
}

}  // namespace
}  // namespace secondsight::proxy
