#include "config/read_only_directory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>

#include "config/posix_file_system.h"
#include "tests/cache/log/log_fixture.h"
#include "tests/support/faulty_system_calls.h"

namespace secondsight::cache::log {
namespace {

namespace errc = boost::system::errc;
namespace fs = std::filesystem;
using test::TemporaryDirectory;

void write_file(const fs::path& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  for (const std::byte b : bytes) out.put(static_cast<char>(b));
}

TEST(ReadOnlyDirectory, ReadsWhatIsThere) {
  const TemporaryDirectory directory;
  const auto bytes = test::body_of(1, 1, 10'000);
  write_file(fs::path(directory.path()) / "a", bytes);
  fs::create_directory(fs::path(directory.path()) / "folder");
  auto files = ReadOnlyDirectory::open_directory(directory.path());
  ASSERT_TRUE(files) << files.error().message();
  EXPECT_EQ(*(*files)->list(), std::vector<std::string>{"a"});
  auto file = (*files)->open("a");
  ASSERT_TRUE(file);
  EXPECT_EQ(*(*file)->size(), bytes.size());
  std::vector<std::byte> out(bytes.size() + 5);
  EXPECT_EQ(*(*file)->read_at(0, out, ReadMode::Blocking), bytes.size());
  out.resize(bytes.size());
  EXPECT_TRUE(out == bytes);
  EXPECT_EQ((*files)->open("b").error(), errc::no_such_file_or_directory);
}

TEST(ReadOnlyDirectory, ChangesNothing) {
  const TemporaryDirectory directory;
  write_file(fs::path(directory.path()) / "a", test::body_of(1, 1, 100));
  auto files = ReadOnlyDirectory::open_directory(directory.path());
  ASSERT_TRUE(files);
  EXPECT_EQ((*files)->create("b").error(), errc::read_only_file_system);
  EXPECT_EQ((*files)->remove("a").error(), errc::read_only_file_system);
  EXPECT_EQ((*files)->sync_directory().error(), errc::read_only_file_system);
  auto file = *(*files)->open("a");
  EXPECT_EQ(file->reserve(1'000).error(), errc::read_only_file_system);
  EXPECT_EQ(file->write_at(0, {}).error(), errc::read_only_file_system);
  EXPECT_EQ(file->sync().error(), errc::read_only_file_system);
  file.reset();
  files->reset();
  EXPECT_EQ(*(*ReadOnlyDirectory::open_directory(directory.path()))->list(),
            std::vector<std::string>{"a"});
  EXPECT_FALSE(fs::exists(fs::path(directory.path()) / "lock"));
}

TEST(ReadOnlyDirectory, ExcludesARunningProcessAndIsExcludedByIt) {
  const TemporaryDirectory directory;
  auto running = PosixFileSystem::open_directory(directory.path());
  ASSERT_TRUE(running);
  EXPECT_EQ(ReadOnlyDirectory::open_directory(directory.path()).error(),
            errc::device_or_resource_busy);
  running->reset();
  auto looking = ReadOnlyDirectory::open_directory(directory.path());
  ASSERT_TRUE(looking) << looking.error().message();
  EXPECT_EQ(PosixFileSystem::open_directory(directory.path()).error(),
            errc::device_or_resource_busy);
}

TEST(ReadOnlyDirectory, WithoutTheLockARunningProcessIsWatched) {
  const TemporaryDirectory directory;
  auto running = PosixFileSystem::open_directory(directory.path());
  ASSERT_TRUE(running);
  auto looking =
      ReadOnlyDirectory::open_directory(directory.path(), ReadOnlyDirectory::Locking::None);
  ASSERT_TRUE(looking) << looking.error().message();
  EXPECT_TRUE((*looking)->list()->empty());
  ASSERT_TRUE((*running)->create("a"));
  EXPECT_EQ(*(*looking)->list(), std::vector<std::string>{"a"});
  EXPECT_EQ((*looking)->remove("a").error(), errc::read_only_file_system);
  running->reset();
  EXPECT_TRUE(PosixFileSystem::open_directory(directory.path())) << "nobody is kept out";
}

TEST(SingleFile, IsMadeOnceForItsOwnerAndReadBack) {
  const TemporaryDirectory directory;
  const fs::path path = fs::path(directory.path()) / "one";
  EXPECT_EQ(open_file(path).error(), errc::no_such_file_or_directory);
  {
    auto file = create_file(path);
    ASSERT_TRUE(file);
    const auto bytes = test::body_of(1, 1, 1'000);
    const std::array<std::span<const std::byte>, 1> pieces{bytes};
    EXPECT_TRUE((*file)->write_at(0, pieces));
  }
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(create_file(path).error(), errc::file_exists);
  auto file = open_file(path);
  ASSERT_TRUE(file);
  EXPECT_EQ(*(*file)->size(), 1'000U);
  std::array<std::byte, 1> byte{};
  const std::array<std::span<const std::byte>, 1> pieces{byte};
  EXPECT_TRUE((*file)->write_at(0, pieces).has_error()) << "it is to be read";
  EXPECT_EQ(open_file(directory.path()).error(), errc::is_a_directory);
}

TEST(ReadOnlyDirectory, AMissingDirectoryIsNotMade) {
  const TemporaryDirectory directory;
  const fs::path missing = fs::path(directory.path()) / "missing";
  EXPECT_EQ(ReadOnlyDirectory::open_directory(missing).error(), errc::no_such_file_or_directory);
  EXPECT_FALSE(fs::exists(missing));
  write_file(missing, {});
  EXPECT_EQ(ReadOnlyDirectory::open_directory(missing).error(), errc::not_a_directory);
}

/// Unaligned offsets and lengths around the borders of pages, of pieces and of the file; whole
/// reads, and ones that are cut short and interrupted.
TEST(ReadUncached, GivesTheSameBytesAsAPlainRead) {
  const TemporaryDirectory directory;
  const auto bytes = test::body_of(1, 1, (2U << 20) + 12'345);
  std::vector<std::pair<std::uint64_t, std::size_t>> ranges = {
      {0, 0},       {0, 1},        {4'095, 2},         {4'096, 4'096},         {1, 4'095},
      {0, 2 << 20}, {1, 1U << 20}, {bytes.size(), 10}, {bytes.size() - 1, 10},
  };
  std::mt19937_64 random(5);
  for (int i = 0; i < 60; ++i) ranges.emplace_back(random() % (3U << 20), random() % (3U << 20));
  for (const auto pace :
       {test::FaultySystemCalls::Pace::Normal, test::FaultySystemCalls::Pace::Troubled}) {
    test::FaultySystemCalls calls(pace);
    PosixFileSystem files(directory.path(), calls);
    ASSERT_TRUE(files.attach());
    if (pace == test::FaultySystemCalls::Pace::Normal) {
      const std::array<std::span<const std::byte>, 1> pieces{bytes};
      ASSERT_TRUE((*files.create("a"))->write_at(0, pieces));
    }
    const auto file = *files.open("a");
    for (const auto& [offset, length] : ranges) {
      std::vector<std::byte> uncached(length);
      const auto read = file->read_at(offset, uncached, ReadMode::Uncached);
      ASSERT_TRUE(read) << read.error().message();
      const std::uint64_t first = std::min<std::uint64_t>(offset, bytes.size());
      const std::uint64_t there = std::min<std::uint64_t>(length, bytes.size() - first);
      ASSERT_EQ(*read, there) << offset << " + " << length;
      ASSERT_TRUE(std::equal(uncached.begin(),
                             uncached.begin() + static_cast<std::ptrdiff_t>(there),
                             bytes.begin() + static_cast<std::ptrdiff_t>(first)))
          << offset << " + " << length;
    }
  }
}

TEST(ReadUncached, AnErrorOfTheDeviceIsReported) {
  const TemporaryDirectory directory;
  test::FaultySystemCalls calls(test::FaultySystemCalls::Pace::Normal);
  PosixFileSystem files(directory.path(), calls);
  ASSERT_TRUE(files.attach());
  const auto bytes = test::body_of(1, 1, 10'000);
  const std::array<std::span<const std::byte>, 1> pieces{bytes};
  const auto file = *files.create("a");
  ASSERT_TRUE(file->write_at(0, pieces));
  std::vector<std::byte> out(10'000);
  calls.fail(test::FaultySystemCalls::Kind::Read, 0, EIO);
  EXPECT_EQ(file->read_at(0, out, ReadMode::Uncached).error(), errc::io_error);
  // One that knows no direct reads, when it is opened so or only when it is read.
  for (const auto kind :
       {test::FaultySystemCalls::Kind::Open, test::FaultySystemCalls::Kind::Read}) {
    calls.fail(kind, 0, EINVAL);
    EXPECT_EQ(*file->read_at(0, out, ReadMode::Uncached), out.size());
    EXPECT_TRUE(calls.has_failed());
    EXPECT_TRUE(out == bytes);
  }
}

}  // namespace
}  // namespace secondsight::cache::log
