// The journal on a disk that fails at every operation, each time in its own way.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/admission/journal_fixture.h"

namespace secondsight::admission {
namespace {

using test::Clocks;
using test::Keys;
using test::kWindow;
using test::Life;
using test::SimFileSystem;

namespace errc = boost::system::errc;

std::uint64_t seeds() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment
  const char* const set = std::getenv("SECONDSIGHT_JOURNAL_SEEDS");
  return set != nullptr ? std::strtoull(set, nullptr, 10) : 3;
}

/// How far a process came: keys with smaller numbers were handed over, or synced.
struct Progress {
  std::uint64_t sighted = 0;
  std::uint64_t written = 0;
  std::uint64_t synced = 0;
  std::uint64_t lost_from = 0;  // a sync failed, and with it what it covered
  std::uint64_t lost_to = 0;
  std::uint64_t generation_began = 0;  // the first key of the current generation
  std::uint64_t previous_began = 0;
};

/// Three generations, with a snapshot of others' sightings in the second; each step may fail.
void live(Life& life, Clocks& clocks, Keys& keys, Progress& progress) {
  for (int step = 0; step < 12; ++step) {
    life.sight(keys, 20);
    progress.sighted = keys.taken();
    if (life.write()) progress.written = keys.taken();
    if (step % 2 == 1 && progress.written == keys.taken()) {
      if (life.journal.sync()) {
        progress.synced = keys.taken();
      } else {
        progress.lost_from = progress.synced;
        progress.lost_to = keys.taken();
      }
    }
    if (step == 5) {
      const auto kept = life.journal.keep_previous(life.filter, clocks.wall);
      static_cast<void>(kept);
    }
    if (step % 4 == 3) {
      clocks.pass(kWindow);
      life.maintain();
      progress.previous_began = progress.generation_began;
      progress.generation_began = keys.taken();
      const auto told = life.write();
      static_cast<void>(told);
    }
  }
}

/// Another process finds what must be there, and nothing that was never sighted.
void check_next_life(SimFileSystem& files, Clocks& clocks, const Keys& keys,
                     const Progress& progress, std::uint64_t durable, const std::string& what) {
  Life next(files, clocks);
  const auto restored = next.restore();
  ASSERT_TRUE(restored) << what << ": " << restored.error().message();
  const std::uint64_t first = progress.previous_began;
  std::uint64_t missing = 0;
  for (std::uint64_t i = first; i < durable; ++i) {
    const bool may_be_lost = i >= progress.lost_from && i < progress.lost_to;
    missing += may_be_lost || next.known(keys, i, i + 1) == 1 ? 0U : 1U;
  }
  ASSERT_EQ(missing, 0U) << what << ", files " << ::testing::PrintToString(test::names_in(files))
                         << ", skipped " << ::testing::PrintToString(restored->skipped);
  const Keys strangers(99);
  ASSERT_LE(next.known(strangers, 0, 1000), 1U) << what;
  // And it can go on.
  Keys more(7);
  next.sight(more, 30);
  ASSERT_TRUE(next.write()) << what;
  Life third(files, clocks);
  ASSERT_TRUE(third.restore()) << what;
  ASSERT_EQ(third.known(more, 0, 30), 30U) << what;
}

std::uint64_t operations_of_a_life() {
  SimFileSystem files(1);
  Clocks clocks;
  Keys keys(1);
  Progress progress;
  Life life(files, clocks);
  EXPECT_TRUE(life.restore());
  live(life, clocks, keys, progress);
  return files.operations();
}

// kill -9: the page cache stays, so that whatever was handed over is there.
TEST(SightingJournalCrash, AKillAtAnyOperationForgetsOnlyWhatWasNotHandedOver) {
  const std::uint64_t operations = operations_of_a_life();
  for (std::uint64_t at = 0; at < operations; ++at) {
    SimFileSystem files(at);
    Clocks clocks;
    Keys keys(1);
    Progress progress;
    {
      Life life(files, clocks);
      files.kill_at(at);
      const auto restored = life.restore();
      static_cast<void>(restored);
      live(life, clocks, keys, progress);
    }
    files.start_process();
    check_next_life(files, clocks, keys, progress, progress.written,
                    "killed at " + std::to_string(at));
    if (HasFatalFailure()) return;
  }
}

TEST(SightingJournalCrash, APowerCutAtAnyOperationForgetsOnlyWhatWasNotSynced) {
  const std::uint64_t operations = operations_of_a_life();
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    for (std::uint64_t at = 0; at < operations; ++at) {
      SimFileSystem files(seed * 1000 + at);
      Clocks clocks;
      Keys keys(1);
      Progress progress;
      {
        Life life(files, clocks);
        files.crash_at(at);
        const auto restored = life.restore();
        static_cast<void>(restored);
        live(life, clocks, keys, progress);
      }
      files.power_cycle();
      check_next_life(files, clocks, keys, progress, progress.synced,
                      "seed " + std::to_string(seed) + ", power cut at " + std::to_string(at));
      if (HasFatalFailure()) return;
    }
  }
}

// One call fails, and all is well afterwards: whatever was handed over later is there, and what
// failed was handed over again.
TEST(SightingJournalCrash, OneFailureAtAnyOperationCostsNothing) {
  const std::uint64_t operations = operations_of_a_life();
  for (const auto error : {errc::io_error, errc::no_space_on_device, errc::permission_denied}) {
    for (std::uint64_t at = 1; at < operations; ++at) {
      SimFileSystem files(at);
      Clocks clocks;
      Keys keys(1);
      Progress progress;
      {
        Life life(files, clocks);
        files.fail_operation(at, error);
        const auto restored = life.restore();
        static_cast<void>(restored);
        live(life, clocks, keys, progress);
      }
      files.start_process();
      check_next_life(files, clocks, keys, progress, progress.written,
                      "failed at " + std::to_string(at) + ": " + make_error_code(error).message());
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace secondsight::admission
