#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "admission/sighting_journal.h"
#include "admission/two_generation_filter.h"
#include "tests/admission/keys.h"
#include "tests/support/sim_file_system.h"

namespace secondsight::admission::test {

using secondsight::test::SimFileSystem;

inline constexpr std::chrono::hours kWindow{24};
inline constexpr std::uint64_t kSeedId = 0x5EED;
inline constexpr FilterSize kSize{32768, 10'000};

/// Journals of the simulated process's later lives share the clocks of their test.
struct Clocks {
  WallTime wall{std::chrono::hours{500'000}};
  SteadyTime steady{std::chrono::hours{1}};
  void pass(std::chrono::milliseconds time) {
    wall += time;
    steady += time;
  }
};

/// One process, as far as sightings go: what SightingKeeper does, without its thread.
class Life {
 public:
  Life(FileSystem& files, Clocks& clocks, const FilterSize& size = kSize,
       std::uint64_t bytes_max = std::uint64_t{1} << 30U, std::uint64_t seed_id = kSeedId)
      : clocks_(clocks),
        filter(size, kWindow, clocks.steady),
        journal(files, {.seed_id = seed_id,
                        .size = size,
                        .window = kWindow,
                        .previous_rate_max = previous_rate_max(0.01),
                        .bytes_max = bytes_max}) {}

  Result<SightingJournal::Restored> restore() {
    auto restored = journal.restore(filter, clocks_.wall, clocks_.steady);
    start();
    return restored;
  }
  void start() {
    filter.keep_marks();
    epoch_ = filter.epoch();
  }
  /// Sights the next `count` keys.
  void sight(Keys& keys, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) filter.sight(keys.next());
  }
  /// Rotates when due; whole sweeps.
  void maintain() {
    do filter.maintain(clocks_.steady);
    while (filter.sweeping());
    filter.maintain(clocks_.steady);  // takes note that the sweep is over
  }
  /// Hands over what was marked. Errors: the last one.
  Result<> write() {
    std::vector<std::uint64_t> fresh;
    filter.take_marks(fresh);
    Result<> done;
    if (filter.epoch() != epoch_) {
      epoch_ = filter.epoch();
      done = journal.rotate(clocks_.wall);
    }
    waiting_.insert(waiting_.end(), fresh.begin(), fresh.end());
    if (auto appended = journal.append(waiting_, clocks_.wall); !appended) return appended;
    waiting_.clear();
    return done;
  }
  std::uint64_t known(const Keys& keys, std::uint64_t first, std::uint64_t end) const {
    std::uint64_t repeats = 0;
    for (std::uint64_t i = first; i < end; ++i)
      repeats += filter.peek(keys.at(i)) == Sighting::Repeat ? 1U : 0U;
    return repeats;
  }
  std::vector<std::uint64_t> bits(Generation which) const {
    std::vector<std::uint64_t> words(filter.words_per_generation());
    filter.copy_generation(which, words);
    return words;
  }

 private:
  Clocks& clocks_;
  std::uint64_t epoch_ = 0;
  std::vector<std::uint64_t> waiting_;

 public:
  TwoGenerationFilter filter;
  SightingJournal journal;
};

/// The names of the files there are, sorted.
inline std::vector<std::string> names_in(const FileSystem& files) {
  auto names = files.list();
  EXPECT_TRUE(names);
  return names ? *names : std::vector<std::string>{};
}

}  // namespace secondsight::admission::test
