#include "admission/sighting_journal.h"

#include <algorithm>
#include <chrono>

#include "tests/admission/journal_fixture.h"

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;
using test::Clocks;
using test::Keys;
using test::kSeedId;
using test::kSize;
using test::kWindow;
using test::Life;
using test::names_in;
using test::SimFileSystem;

class SightingJournalTest : public ::testing::Test {
 protected:
  /// A process that sights `count` keys in its first generation and as many in its second.
  void live_two_generations(std::uint64_t count) {
    Life life(files_, clocks_);
    ASSERT_TRUE(life.restore());
    life.sight(keys_, count);
    ASSERT_TRUE(life.write());
    clocks_.pass(kWindow);
    life.maintain();
    life.sight(keys_, count);
    ASSERT_TRUE(life.write());
  }

  SimFileSystem files_{1};
  Clocks clocks_;
  Keys keys_{1};
};

TEST_F(SightingJournalTest, NothingIsThereAtFirst) {
  Life life(files_, clocks_);
  const auto restored = life.restore();
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->marks, 0U);
  EXPECT_TRUE(restored->skipped.empty());
  EXPECT_TRUE(names_in(files_).empty()) << "looking writes nothing";
}

TEST_F(SightingJournalTest, BothGenerationsComeBackBitForBit) {
  Life first(files_, clocks_);
  ASSERT_TRUE(first.restore());
  for (int generation = 0; generation < 3; ++generation) {
    for (int batch = 0; batch < 10; ++batch) {
      first.sight(keys_, 100);
      ASSERT_TRUE(first.write());
    }
    if (generation == 2) break;
    clocks_.pass(kWindow);
    first.maintain();
  }
  clocks_.pass(3h);
  Life second(files_, clocks_);
  const auto restored = second.restore();
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->marks, 2000U);
  EXPECT_EQ(restored->damaged_bytes, 0U);
  EXPECT_EQ(restored->last_mark_age, 3h);
  EXPECT_EQ(second.bits(Generation::Current), first.bits(Generation::Current));
  EXPECT_EQ(second.bits(Generation::Previous), first.bits(Generation::Previous));
  EXPECT_EQ(second.filter.status(clocks_.steady).marked_keys, 1000U);
  EXPECT_EQ(names_in(files_).size(), 2U);
}

TEST_F(SightingJournalTest, TheGenerationGoesOnWithItsAge) {
  live_two_generations(100);
  clocks_.pass(20h);
  Life life(files_, clocks_);
  ASSERT_TRUE(life.restore());
  EXPECT_EQ(life.filter.status(clocks_.steady).window_age, 20h);
  clocks_.pass(3h);
  life.maintain();
  EXPECT_EQ(life.filter.status(clocks_.steady).rotations_by_age, 0U);
  clocks_.pass(1h);
  life.maintain();
  EXPECT_EQ(life.filter.status(clocks_.steady).rotations_by_age, 1U);
  EXPECT_EQ(life.known(keys_, 100, 200), 100U) << "the second generation is `previous` now";
  EXPECT_EQ(life.known(keys_, 0, 100), 0U);
}

struct Downtime {
  std::chrono::hours slept;
  std::uint64_t older, newer;  // known afterwards, of 100 each
};

// A key is never answered First within a window after it was sighted, asleep or not.
TEST_F(SightingJournalTest, TimeGoesOnWhileNoProcessRuns) {
  for (const Downtime& row : {Downtime{1h, 100, 100}, Downtime{23h, 100, 100},
                              Downtime{24h, 0, 100}, Downtime{47h, 0, 100}, Downtime{60h, 0, 0}}) {
    SimFileSystem files(2);
    Clocks clocks;
    Keys keys(1);
    Life first(files, clocks);
    ASSERT_TRUE(first.restore());
    first.sight(keys, 100);
    ASSERT_TRUE(first.write());
    clocks.pass(kWindow);
    first.maintain();
    first.sight(keys, 100);
    ASSERT_TRUE(first.write());
    clocks.pass(row.slept);
    Life second(files, clocks);
    ASSERT_TRUE(second.restore());
    EXPECT_EQ(second.known(keys, 0, 100), row.older) << row.slept.count() << " h";
    EXPECT_EQ(second.known(keys, 100, 200), row.newer) << row.slept.count() << " h";
    // A generation that was over at the start stays for a window more, and the next one is new.
    second.sight(keys, 100);
    ASSERT_TRUE(second.write());
    clocks.pass(kWindow / 2);
    second.maintain();
    Life third(files, clocks);
    ASSERT_TRUE(third.restore());
    EXPECT_EQ(third.known(keys, 200, 300), 100U) << row.slept.count() << " h";
  }
}

TEST_F(SightingJournalTest, AClockThatWentBackMakesNothingYounger) {
  live_two_generations(100);
  clocks_.wall -= 1000h;
  Life life(files_, clocks_);
  ASSERT_TRUE(life.restore());
  EXPECT_EQ(life.known(keys_, 0, 200), 200U);
  EXPECT_EQ(life.filter.status(clocks_.steady).window_age, 0h);
}

TEST_F(SightingJournalTest, ManyLivesWithinOneGenerationShareItsFile) {
  for (int life_number = 0; life_number < 20; ++life_number) {
    Life life(files_, clocks_);
    ASSERT_TRUE(life.restore());
    EXPECT_EQ(life.known(keys_, 0, keys_.taken()), keys_.taken());
    life.sight(keys_, 50);
    ASSERT_TRUE(life.write());
    clocks_.pass(1min);
  }
  EXPECT_EQ(names_in(files_).size(), 1U);
}

TEST_F(SightingJournalTest, AKeyThatIsKnownIsNotWrittenAgain) {
  Life life(files_, clocks_);
  ASSERT_TRUE(life.restore());
  life.sight(keys_, 100);
  ASSERT_TRUE(life.write());
  const std::uint64_t written = life.journal.written_bytes();
  EXPECT_EQ(written, MarksHeader::kBytes + frame_bytes(100));
  for (std::uint64_t i = 0; i < 100; ++i) life.filter.sight(keys_.at(i));
  ASSERT_TRUE(life.write());
  EXPECT_EQ(life.journal.written_bytes(), written);
}

TEST_F(SightingJournalTest, ARotationRemovesTheOldestFile) {
  Life life(files_, clocks_);
  ASSERT_TRUE(life.restore());
  for (int generation = 0; generation < 5; ++generation) {
    life.sight(keys_, 10);
    ASSERT_TRUE(life.write());
    EXPECT_LE(names_in(files_).size(), 2U);
    clocks_.pass(kWindow);
    life.maintain();
    ASSERT_TRUE(life.write());
  }
  EXPECT_EQ(names_in(files_),
            (std::vector<std::string>{"sightings-0000000005.marks", "sightings-0000000006.marks"}));
}

// A generation that ended by fill holds a few more marks than planned: they are one generation.
TEST_F(SightingJournalTest, RotationsByFillComeBackAsTheyWere) {
  Life first(files_, clocks_);
  ASSERT_TRUE(first.restore());
  while (keys_.taken() < 35'000) {
    first.sight(keys_, 500);
    ASSERT_TRUE(first.write());  // what is handed over after a rotation is of the new generation
    first.maintain();
    ASSERT_TRUE(first.write());
  }
  Life second(files_, clocks_);
  ASSERT_TRUE(second.restore());
  EXPECT_EQ(second.bits(Generation::Current), first.bits(Generation::Current));
  EXPECT_EQ(second.known(keys_, 25'000, 35'000), 10'000U);
}

struct Resized {
  std::uint64_t keys_per_generation, line_count;
};

// Marks mean the same to a filter of any size: an operator may change it.
TEST_F(SightingJournalTest, SightingsOutliveAChangeOfTheFiltersSize) {
  live_two_generations(5000);
  for (const Resized& row : {Resized{100'000, 65536}, Resized{10'000, 32767}, Resized{6000, 1000},
                             Resized{2000, 32768}, Resized{100, 32768}}) {
    Life life(files_, clocks_, FilterSize{row.line_count, row.keys_per_generation});
    ASSERT_TRUE(life.restore());
    const std::uint64_t kept = std::min<std::uint64_t>(row.keys_per_generation, 10'000);
    EXPECT_EQ(life.known(keys_, 10'000 - kept, 10'000), kept) << row.keys_per_generation;
    EXPECT_LE(life.filter.marks_in_generation(), row.keys_per_generation * 9 / 8 + 256);
  }
}

TEST_F(SightingJournalTest, ASmallerFilterBeginsAFileOfItsOwn) {
  live_two_generations(5000);
  Life small(files_, clocks_, FilterSize{32768, 2000});
  ASSERT_TRUE(small.restore());
  small.sight(keys_, 10);
  ASSERT_TRUE(small.write());
  EXPECT_EQ(names_in(files_),
            (std::vector<std::string>{"sightings-0000000002.marks", "sightings-0000000003.marks"}));
}

// A failed sync may have lost what it covered: what follows goes to another file of the generation.
TEST_F(SightingJournalTest, AFailedSyncCostsNeitherGeneration) {
  live_two_generations(100);
  {
    Life life(files_, clocks_);
    ASSERT_TRUE(life.restore());
    ASSERT_TRUE(life.journal.sync());
    for (int i = 0; i < 30; ++i) {
      life.sight(keys_, 10);
      ASSERT_TRUE(life.write());
      files_.fail_operation(files_.operations() + 1, boost::system::errc::io_error);
      ASSERT_FALSE(life.journal.sync());
      if (i < 8) {
        ASSERT_LE(names_in(files_).size(), 10U);
      }
    }
    life.sight(keys_, 10);
    ASSERT_TRUE(life.write());
    EXPECT_LE(names_in(files_).size(), 20U) << "however often it fails";
  }
  Life next(files_, clocks_);
  ASSERT_TRUE(next.restore());
  EXPECT_EQ(next.known(keys_, keys_.taken() - 10, keys_.taken()), 10U);
}

TEST_F(SightingJournalTest, OtherSeedsFilesAreToldSkippedAndGiveWay) {
  live_two_generations(100);
  Life other(files_, clocks_, kSize, 1U << 20U, kSeedId + 1);
  const auto restored = other.restore();
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->marks, 0U);
  ASSERT_EQ(restored->skipped.size(), 2U);
  EXPECT_NE(restored->skipped[0].find("sightings-0000000001.marks: damaged, or of another seed"),
            std::string::npos)
      << restored->skipped[0];
  other.sight(keys_, 10);
  ASSERT_TRUE(other.write());
  EXPECT_EQ(names_in(files_), std::vector<std::string>{"sightings-0000000003.marks"});
}

TEST_F(SightingJournalTest, ANewerVersionIsToldAndSkipped) {
  live_two_generations(100);
  auto bytes = files_.contents("sightings-0000000002.marks");
  bytes[8] = std::byte{2};
  files_.set_contents("sightings-0000000002.marks", bytes);
  Life life(files_, clocks_);
  const auto restored = life.restore();
  ASSERT_TRUE(restored);
  ASSERT_EQ(restored->skipped.size(), 1U);
  EXPECT_NE(restored->skipped[0].find("written by a newer version"), std::string::npos);
  EXPECT_EQ(life.known(keys_, 0, 100), 100U) << "the generation that can be read is used";
}

// One bit anywhere costs at most the batch that it is in (or the file, in its header), is told, and
// brings nothing that was never sighted.
TEST_F(SightingJournalTest, AFlippedBitCostsItsBatch) {
  {
    Life life(files_, clocks_);
    ASSERT_TRUE(life.restore());
    for (int batch = 0; batch < 10; ++batch) {
      life.sight(keys_, 10);
      ASSERT_TRUE(life.write());
    }
  }
  const std::string name = "sightings-0000000001.marks";
  const auto whole = files_.contents(name);
  for (std::uint64_t bit = 0; bit < whole.size() * 8; bit += 37) {
    files_.set_contents(name, whole);
    files_.flip_bit(name, bit);
    Life life(files_, clocks_);
    const auto restored = life.restore();
    ASSERT_TRUE(restored);
    const bool in_header = bit / 8 < MarksHeader::kBytes;
    const bool in_last = bit / 8 >= whole.size() - frame_bytes(10);
    const std::uint64_t known = life.known(keys_, 0, 100);
    if (in_header) {
      ASSERT_EQ(restored->skipped.size(), 1U) << bit;
      ASSERT_EQ(known, 0U) << bit;
      continue;
    }
    ASSERT_EQ(known, 90U) << bit;
    // What is broken at the end looks like a write that was cut off.
    ASSERT_EQ(restored->damaged_bytes, in_last ? 0U : frame_bytes(10)) << bit;
    // The next marks go behind the last whole batch.
    life.sight(keys_, 1);
    ASSERT_TRUE(life.write());
    Life next(files_, clocks_);
    ASSERT_TRUE(next.restore());
    ASSERT_EQ(next.known(keys_, keys_.taken() - 1, keys_.taken()), 1U) << bit;
    ASSERT_EQ(next.known(keys_, 0, 100), 90U) << bit;
  }
}

TEST_F(SightingJournalTest, AFileCutAnywhereGivesItsWholeBatches) {
  {
    Life life(files_, clocks_);
    ASSERT_TRUE(life.restore());
    for (int batch = 0; batch < 5; ++batch) {
      life.sight(keys_, 10);
      ASSERT_TRUE(life.write());
    }
  }
  const std::string name = "sightings-0000000001.marks";
  const auto whole = files_.contents(name);
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    files_.set_contents(name, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    Life life(files_, clocks_);
    const auto restored = life.restore();
    ASSERT_TRUE(restored);
    const std::uint64_t batches =
        size < MarksHeader::kBytes ? 0 : (size - MarksHeader::kBytes) / frame_bytes(10);
    ASSERT_EQ(life.known(keys_, 0, 50), batches * 10) << size;
    ASSERT_EQ(restored->skipped.size(), size < MarksHeader::kBytes ? 1U : 0U) << size;
  }
}

TEST_F(SightingJournalTest, GarbageUnderOurNamesIsSkipped) {
  files_.set_contents("sightings-0000000007.marks", std::vector<std::byte>(5000, std::byte{0x5A}));
  files_.set_contents("sightings-0000000008.bits", std::vector<std::byte>(5000, std::byte{0x5A}));
  files_.set_contents("sightings-12.marks", {});
  files_.set_contents("sightings-notanumber.marks", {});
  Life life(files_, clocks_);
  const auto restored = life.restore();
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->skipped.size(), 1U);
  life.sight(keys_, 10);
  ASSERT_TRUE(life.write());
  const auto names = names_in(files_);
  EXPECT_TRUE(std::find(names.begin(), names.end(), "sightings-0000000009.marks") != names.end());
  EXPECT_TRUE(std::find(names.begin(), names.end(), "sightings-notanumber.marks") != names.end())
      << "what is not ours stays";
}

// Where the disk is small the latest marks are kept, and the bound holds.
TEST_F(SightingJournalTest, TheBoundHoldsAndTheLatestAreKept) {
  for (const std::uint64_t bytes_max : {4096U, 20'000U, 100'000U}) {
    SimFileSystem files(3);
    Keys keys(5);
    Life life(files, clocks_, FilterSize{32768, 1'000'000}, bytes_max);
    ASSERT_TRUE(life.restore());
    for (int batch = 0; batch < 300; ++batch) {
      life.sight(keys, static_cast<std::uint64_t>(batch));
      ASSERT_TRUE(life.write());
      ASSERT_LE(files.bytes_used(), bytes_max) << batch;
    }
    Life next(files, clocks_, FilterSize{32768, 1'000'000}, bytes_max);
    const auto restored = next.restore();
    ASSERT_TRUE(restored);
    EXPECT_GE(restored->marks * (sizeof(std::uint64_t) + 1), bytes_max / 2 - 1500) << bytes_max;
    EXPECT_EQ(next.known(keys, keys.taken() - 200, keys.taken()), 200U) << bytes_max;
    EXPECT_EQ(restored->marks + life.journal.given_up_marks(), keys.taken())
        << "what is given up is counted";
  }
}

TEST_F(SightingJournalTest, WhatARotationRetiresIsNotGivenUp) {
  Life life(files_, clocks_);
  ASSERT_TRUE(life.restore());
  for (int generation = 0; generation < 4; ++generation) {
    life.sight(keys_, 100);
    ASSERT_TRUE(life.write());
    clocks_.pass(kWindow);
    life.maintain();
    ASSERT_TRUE(life.write());
  }
  EXPECT_EQ(life.journal.given_up_marks(), 0U);
}

TEST_F(SightingJournalTest, WhatIsOfNoUseUnderOurNamesGoesWithTheFirstMarks) {
  files_.set_contents("sightings-0000000000.marks", std::vector<std::byte>(50'000));
  files_.set_contents("sightings-0000000777.marks", std::vector<std::byte>(50'000));
  Life life(files_, clocks_);
  ASSERT_TRUE(life.restore());
  EXPECT_EQ(names_in(files_).size(), 2U) << "looking removes nothing";
  life.sight(keys_, 10);
  ASSERT_TRUE(life.write());
  EXPECT_EQ(names_in(files_), std::vector<std::string>{"sightings-0000000778.marks"});
}

TEST_F(SightingJournalTest, WhatIsCutOffAtTheEndIsTold) {
  {
    Life life(files_, clocks_);
    ASSERT_TRUE(life.restore());
    life.sight(keys_, 10);
    ASSERT_TRUE(life.write());
  }
  files_.flip_bit("sightings-0000000001.marks", (MarksHeader::kBytes + 50) * 8);
  Life life(files_, clocks_);
  const auto restored = life.restore();
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->marks, 0U);
  EXPECT_EQ(restored->cut_off_bytes, frame_bytes(10));
}

TEST_F(SightingJournalTest, WhatItMayTakeIsEnoughForTwoFullGenerations) {
  const std::uint64_t bytes_max = SightingJournal::bytes_for(kSize, kWindow);
  Life life(files_, clocks_, kSize, bytes_max);
  ASSERT_TRUE(life.restore());
  for (int i = 0; i < 60; ++i) {
    life.sight(keys_, 1000);
    ASSERT_TRUE(life.write());
    life.maintain();
    ASSERT_TRUE(life.write());
    if (life.filter.epoch() == 3) break;
  }
  ASSERT_TRUE(life.journal.keep_previous(life.filter, clocks_.wall));
  EXPECT_LE(files_.bytes_used(), bytes_max);
  Life next(files_, clocks_, kSize, bytes_max);
  ASSERT_TRUE(next.restore());
  EXPECT_EQ(next.bits(Generation::Previous), life.bits(Generation::Previous));
}

TEST_F(SightingJournalTest, ADirectoryThatWasEmptiedIsBegunAnew) {
  Life life(files_, clocks_);
  ASSERT_TRUE(life.restore());
  life.sight(keys_, 10);
  ASSERT_TRUE(life.write());
  for (const auto& name : names_in(files_)) ASSERT_TRUE(files_.remove(name));
  life.sight(keys_, 10);
  ASSERT_TRUE(life.write());
  Life next(files_, clocks_);
  ASSERT_TRUE(next.restore());
  EXPECT_EQ(next.known(keys_, 0, 20), 10U);
}

TEST_F(SightingJournalTest, WhatOthersSightedIsKeptBesideTheMarks) {
  Life other(files_, clocks_);
  Keys theirs(9);
  other.sight(theirs, 1000);
  live_two_generations(100);
  {
    Life life(files_, clocks_);
    ASSERT_TRUE(life.restore());
    const auto merged = life.filter.merge_into_previous(other.bits(Generation::Current), 0.01);
    ASSERT_TRUE(merged && merged->is_merged);
    ASSERT_TRUE(life.journal.keep_previous(life.filter, clocks_.wall));
  }
  EXPECT_EQ(names_in(files_).size(), 3U);
  {
    Life life(files_, clocks_);
    const auto restored = life.restore();
    ASSERT_TRUE(restored);
    EXPECT_TRUE(restored->has_bits);
    EXPECT_EQ(life.known(theirs, 0, 1000), 1000U);
    EXPECT_EQ(life.known(keys_, 0, 200), 200U);
    clocks_.pass(kWindow);
    life.maintain();
    ASSERT_TRUE(life.write());
    EXPECT_EQ(life.known(theirs, 0, 1000), 0U) << "they were in `previous`, and are over";
  }
  EXPECT_EQ(names_in(files_).size(), 2U) << "and so are the bits";
}

// A kill while bits are written leaves a file without a header: the one before it counts.
TEST_F(SightingJournalTest, BitsThatWereCutOffHideNoOlderOnes) {
  Life other(files_, clocks_);
  Keys theirs(9);
  other.sight(theirs, 1000);
  {
    Life life(files_, clocks_);
    ASSERT_TRUE(life.restore());
    ASSERT_TRUE(life.filter.merge_into_previous(other.bits(Generation::Current), 0.01));
    ASSERT_TRUE(life.journal.keep_previous(life.filter, clocks_.wall));
    ASSERT_TRUE(life.journal.begin_bits(clocks_.wall));
  }
  files_.set_contents("sightings-0000000099.bits", std::vector<std::byte>(5000));
  Life life(files_, clocks_);
  const auto restored = life.restore();
  ASSERT_TRUE(restored);
  EXPECT_TRUE(restored->has_bits);
  EXPECT_EQ(restored->skipped.size(), 2U);
  EXPECT_EQ(life.known(theirs, 0, 1000), 1000U);
}

// Appending and rotating go on while bits are written; what retired meanwhile is not kept.
TEST_F(SightingJournalTest, BitsThatRetireWhileTheyAreWrittenAreNotKept) {
  Life life(files_, clocks_);
  ASSERT_TRUE(life.restore());
  life.sight(keys_, 10);
  ASSERT_TRUE(life.write());
  auto bits = life.journal.begin_bits(clocks_.wall);
  ASSERT_TRUE(bits);
  const auto written =
      write_snapshot(*bits->file, life.filter, SnapshotOf::Previous, kSeedId, clocks_.wall);
  ASSERT_TRUE(written);
  clocks_.pass(kWindow);
  life.maintain();
  ASSERT_TRUE(life.write());
  EXPECT_TRUE(life.journal.end_bits(std::move(*bits), written));
  for (const std::string& name : names_in(files_))
    EXPECT_FALSE(number_of(SightingFile::Bits, name)) << name;
}

// A rotation that the directory did not hear of, or that fell into the time without a process,
// retires the bits, too.
TEST_F(SightingJournalTest, BitsRetireWithAGenerationThatEndedUnnoticed) {
  for (const bool is_noted : {true, false}) {
    SimFileSystem files(4);
    Clocks clocks;
    Keys keys(4);
    {
      Life life(files, clocks);
      ASSERT_TRUE(life.restore());
      life.sight(keys, 10);
      ASSERT_TRUE(life.write());
      ASSERT_TRUE(life.journal.keep_previous(life.filter, clocks.wall));
      if (is_noted) {
        life.journal.note_rotation();
        life.sight(keys, 10);
        ASSERT_TRUE(life.write());
      }
    }
    if (!is_noted) {
      clocks.pass(kWindow);
      Life life(files, clocks);
      ASSERT_TRUE(life.restore());
      life.sight(keys, 10);
      ASSERT_TRUE(life.write());
    }
    EXPECT_EQ(names_in(files), (std::vector<std::string>{"sightings-0000000001.marks",
                                                         "sightings-0000000003.marks"}));
    Life next(files, clocks);
    ASSERT_TRUE(next.restore());
    EXPECT_EQ(next.known(keys, 0, 20), 20U);
  }
}

TEST_F(SightingJournalTest, BitsOfAFilterOfAnotherSizeAreSkipped) {
  {
    Life life(files_, clocks_);
    ASSERT_TRUE(life.restore());
    life.sight(keys_, 10);
    ASSERT_TRUE(life.write());
    ASSERT_TRUE(life.journal.keep_previous(life.filter, clocks_.wall));
  }
  Life life(files_, clocks_, FilterSize{65536, 10'000});
  const auto restored = life.restore();
  ASSERT_TRUE(restored);
  EXPECT_FALSE(restored->has_bits);
  ASSERT_EQ(restored->skipped.size(), 1U);
  EXPECT_NE(restored->skipped[0].find("another size"), std::string::npos);
  EXPECT_EQ(life.known(keys_, 0, 10), 10U);
}

// The directory came when the filter was in use already.
TEST_F(SightingJournalTest, ALateDirectorysMarksGoIntoPrevious) {
  live_two_generations(100);
  Life life(files_, clocks_);
  life.start();
  life.sight(keys_, 50);
  const auto restored = life.journal.restore_late(life.filter, clocks_.wall);
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->marks, 100U);
  EXPECT_EQ(life.known(keys_, 100, 250), 150U);
  ASSERT_TRUE(life.write());
  Life next(files_, clocks_);
  ASSERT_TRUE(next.restore());
  EXPECT_EQ(next.known(keys_, 100, 250), 150U);
}

TEST_F(SightingJournalTest, ALateDirectoryWaitsForTheSweep) {
  live_two_generations(100);
  Life life(files_, clocks_);
  life.start();
  clocks_.pass(kWindow);
  life.filter.maintain(clocks_.steady);
  ASSERT_TRUE(life.filter.sweeping());
  const auto restored = life.journal.restore_late(life.filter, clocks_.wall);
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error(), boost::system::errc::device_or_resource_busy);
}

}  // namespace
}  // namespace secondsight::admission
