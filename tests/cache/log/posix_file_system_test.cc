#include "cache/log/posix_file_system.h"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "tests/cache/log/log_fixture.h"

namespace secondsight::cache::log {
namespace {

namespace errc = boost::system::errc;

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

TEST(PosixFileSystem, MakesTheDirectoryForItsOwnerOnly) {
  const test::TemporaryDirectory parent;
  const std::string directory = parent.path() + "/deep/cache";
  auto files = PosixFileSystem::open_directory(directory);
  ASSERT_TRUE(files) << files.error().message();
  EXPECT_OK((*files)->create("a"));
  EXPECT_EQ(mode_of(directory), 0700U);
  EXPECT_EQ(mode_of(directory + "/a"), 0600U);
  EXPECT_EQ(mode_of(directory + "/lock"), 0600U);
}

TEST(PosixFileSystem, ATrailingSlashIsNoOtherDirectory) {
  const test::TemporaryDirectory parent;
  EXPECT_OK(PosixFileSystem::open_directory(parent.path() + "/cache/"));
  EXPECT_EQ(mode_of(parent.path() + "/cache"), 0700U);
  EXPECT_OK(PosixFileSystem::open_directory(parent.path() + "/cache"));
}

TEST(PosixFileSystem, TwoCannotUseOneDirectory) {
  const test::TemporaryDirectory directory;
  auto first = PosixFileSystem::open_directory(directory.path());
  ASSERT_TRUE(first);
  EXPECT_EQ(PosixFileSystem::open_directory(directory.path()).error(),
            errc::device_or_resource_busy);
  first->reset();
  EXPECT_OK(PosixFileSystem::open_directory(directory.path()));
}

TEST(PosixFileSystem, AFileInTheDirectorysPlaceIsAnError) {
  const test::TemporaryDirectory directory;
  {
    auto files = PosixFileSystem::open_directory(directory.path());
    ASSERT_TRUE(files);
    EXPECT_OK((*files)->create("a"));
  }
  EXPECT_EQ(PosixFileSystem::open_directory(directory.path() + "/a").error(),
            errc::not_a_directory);
  EXPECT_EQ(PosixFileSystem::open_directory(directory.path() + "/a/b").error(),
            errc::not_a_directory);
}

TEST(PosixFileSystem, ReservingTakesTheSpaceAtOnce) {
  const test::TemporaryDirectory directory;
  auto files = PosixFileSystem::open_directory(directory.path());
  ASSERT_TRUE(files);
  auto file = (*files)->create("a");
  ASSERT_TRUE(file);
  EXPECT_OK((*file)->reserve(1 << 20));
  struct stat status {};
  ASSERT_EQ(::stat((directory.path() + "/a").c_str(), &status), 0);
  // Where the file system cannot reserve, nothing happens.
  EXPECT_TRUE(status.st_size == 0 || status.st_blocks * 512 >= 1 << 20);
  EXPECT_EQ((*file)->reserve(std::uint64_t{1} << 62).error().failed(), status.st_size != 0);
}

}  // namespace
}  // namespace secondsight::cache::log
