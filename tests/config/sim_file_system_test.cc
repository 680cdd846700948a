#include "tests/support/sim_file_system.h"

#include <array>

#include <gtest/gtest.h>

#include "tests/cache/log/log_fixture.h"

namespace secondsight::test {
namespace {

namespace errc = boost::system::errc;
using Pieces = std::vector<std::span<const std::byte>>;
constexpr std::size_t kBytes = 4'096;

std::vector<std::byte> filled(std::byte b) {
  return std::vector<std::byte>(kBytes, b);
}

/// A file of synced `a`s that was then overwritten with `b`s.
std::unique_ptr<File> overwritten(SimFileSystem& disk) {
  auto file = disk.create("f");
  EXPECT_OK((*file)->write_at(0, Pieces{filled(std::byte{'a'})}));
  EXPECT_OK((*file)->sync());
  EXPECT_OK(disk.sync_directory());
  EXPECT_OK((*file)->write_at(0, Pieces{filled(std::byte{'b'})}));
  return std::move(*file);
}

TEST(SimFileSystem, UnsyncedSectorsAreKeptLostOrTorn) {
  bool has_kept = false;
  bool has_lost = false;
  bool has_torn = false;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SimFileSystem disk(seed);
    overwritten(disk);
    disk.power_cycle();
    const auto bytes = disk.contents("f");
    for (std::size_t at = 0; at < kBytes; at += 512) {
      const bool first = bytes[at] == std::byte{'b'};
      const bool second = bytes[at + 511] == std::byte{'b'};
      has_kept |= first && second;
      has_lost |= !first && !second;
      has_torn |= first != second;
    }
  }
  EXPECT_TRUE(has_kept && has_lost && has_torn);
}

TEST(SimFileSystem, SyncedBytesStay) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SimFileSystem disk(seed);
    auto file = overwritten(disk);
    EXPECT_OK(file->sync());
    disk.power_cycle();
    EXPECT_EQ(disk.contents("f"), filled(std::byte{'b'}));
    std::array<std::byte, 1> byte{};
    EXPECT_EQ(file->read_at(0, byte, ReadMode::Blocking).error(), errc::bad_file_descriptor);
  }
}

TEST(SimFileSystem, AFailedSyncLosesForGood) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SimFileSystem disk(seed);
    auto file = overwritten(disk);
    disk.fail_operation(disk.operations(), errc::io_error);
    EXPECT_EQ(file->sync().error(), errc::io_error);
    EXPECT_OK(file->sync());
    disk.power_cycle();
    EXPECT_EQ(disk.contents("f"), filled(std::byte{'a'}));
  }
}

TEST(SimFileSystem, AWriteThatGoesAstrayIsElsewhereOrNowhere) {
  const std::vector<std::byte> bytes(700, std::byte{7});
  const std::array<std::span<const std::byte>, 1> pieces{bytes};
  std::size_t lost = 0, elsewhere = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SimFileSystem disk(seed);
    auto file = *disk.create("a");
    ASSERT_TRUE(file->reserve(16'384));
    disk.send_astray(disk.operations());
    ASSERT_TRUE(file->write_at(256, pieces));
    const auto contents = disk.contents("a");
    const auto there = std::count(contents.begin(), contents.end(), std::byte{7});
    ASSERT_TRUE(there == 0 || there == 700) << there;
    EXPECT_FALSE(std::equal(bytes.begin(), bytes.end(), contents.begin() + 256)) << seed;
    ++(there == 0 ? lost : elsewhere);
  }
  EXPECT_GT(lost, 10U);
  EXPECT_GT(elsewhere, 10U);
}

TEST(SimFileSystem, DirectoryEntriesNeedTheirSync) {
  bool has_lost = false;
  bool has_kept = false;
  bool has_returned = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimFileSystem disk(seed);
    EXPECT_OK(disk.create("old"));
    EXPECT_OK(disk.sync_directory());
    EXPECT_OK(disk.create("new"));
    EXPECT_OK(disk.remove("old"));
    disk.power_cycle();
    const auto names = *disk.list();
    const bool has_new = std::find(names.begin(), names.end(), "new") != names.end();
    has_kept |= has_new;
    has_lost |= !has_new;
    has_returned |= std::find(names.begin(), names.end(), "old") != names.end();
  }
  EXPECT_TRUE(has_kept && has_lost && has_returned);
}

TEST(SimFileSystem, SpaceComesBackWhenRemovedAndClosed) {
  SimFileSystem disk(1);
  disk.set_capacity_bytes(kBytes);
  auto file = disk.create("f");
  EXPECT_OK((*file)->reserve(kBytes));
  auto other = disk.create("g");
  EXPECT_EQ((*other)->reserve(1).error(), errc::no_space_on_device);
  EXPECT_OK(disk.remove("f"));
  EXPECT_EQ((*other)->reserve(1).error(), errc::no_space_on_device);
  file->reset();
  EXPECT_OK((*other)->reserve(kBytes));
  EXPECT_EQ(disk.bytes_used_peak(), kBytes);
}

TEST(SimFileSystem, NothingWorksBetweenCrashAndPowerCycle) {
  SimFileSystem disk(1);
  auto file = overwritten(disk);
  disk.crash_at(disk.operations());
  EXPECT_EQ(disk.list().error(), errc::io_error);
  EXPECT_TRUE(disk.has_crashed());
  EXPECT_EQ(file->write_at(0, Pieces{filled(std::byte{'c'})}).error(), errc::io_error);
  EXPECT_EQ(disk.remove("f").error(), errc::io_error);
  disk.power_cycle();
  EXPECT_OK(disk.list());
  for (const std::byte b : disk.contents("f")) EXPECT_NE(b, std::byte{'c'});
}

TEST(SimFileSystem, TheSameSeedGivesTheSameDisk) {
  SimFileSystem one(7);
  SimFileSystem two(7);
  for (auto* disk : {&one, &two}) {
    overwritten(*disk);
    disk->power_cycle();
  }
  EXPECT_EQ(one.contents("f"), two.contents("f"));
}

}  // namespace
}  // namespace secondsight::test
