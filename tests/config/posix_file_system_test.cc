#include "config/posix_file_system.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
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

using Attached = FileSystem::Attached;

TEST(PosixFileSystem, NothingWorksBeforeItIsAttached) {
  const test::TemporaryDirectory parent;
  PosixFileSystem files(parent.path() + "/cache");
  EXPECT_EQ(files.create("a").error(), errc::not_connected);
  EXPECT_EQ(files.open("a").error(), errc::not_connected);
  EXPECT_EQ(files.list().error(), errc::not_connected);
  EXPECT_EQ(files.remove("a").error(), errc::not_connected);
  EXPECT_EQ(files.sync_directory().error(), errc::not_connected);
  EXPECT_FALSE(std::filesystem::exists(parent.path() + "/cache"));
  EXPECT_EQ(*files.attach(), Attached::Anew);
  EXPECT_OK(files.create("a"));
  EXPECT_EQ(*files.attach(), Attached::Same);
}

/// What may become of a directory under a running process, and that it is noticed.
TEST(PosixFileSystem, AnotherDirectoryInItsPlaceIsMadeAndLocked) {
  const test::TemporaryDirectory parent;
  const std::string path = parent.path() + "/cache";
  struct Case {
    const char* what;
    std::function<void()> change;
  };
  const Case cases[] = {
      {"removed", [&] { std::filesystem::remove_all(path); }},
      {"moved away", [&] { std::filesystem::rename(path, parent.path() + "/away"); }},
      {"replaced",
       [&] {
         std::filesystem::remove_all(path);
         std::filesystem::create_directory(path);
       }},
      {"emptied", [&] { std::filesystem::remove(path + "/lock"); }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    PosixFileSystem files(path);
    ASSERT_EQ(*files.attach(), Attached::Anew);
    auto old = files.create("a");
    ASSERT_TRUE(old);
    ASSERT_EQ(*files.attach(), Attached::Same);
    c.change();
    ASSERT_EQ(*files.attach(), Attached::Anew);
    EXPECT_EQ(PosixFileSystem::open_directory(path).error(), errc::device_or_resource_busy);
    EXPECT_OK(files.create("b"));
    EXPECT_TRUE(std::filesystem::exists(path + "/b"));
    EXPECT_OK((*old)->write_at(0, {}));  // open files stay usable
    EXPECT_EQ(*files.attach(), Attached::Same);
    std::filesystem::remove_all(path);
    std::filesystem::remove_all(parent.path() + "/away");
  }
}

TEST(PosixFileSystem, WhatStandsInItsPlaceIsAnErrorUntilItIsGone) {
  const test::TemporaryDirectory parent;
  const std::string path = parent.path() + "/cache";
  PosixFileSystem files(path);
  ASSERT_TRUE(files.attach());
  std::filesystem::rename(path, parent.path() + "/away");
  std::ofstream(path) << "a file";
  EXPECT_EQ(files.attach().error(), errc::not_a_directory);
  EXPECT_EQ(files.create("a").error(), errc::not_connected);
  std::filesystem::remove(path);
  {
    auto other = PosixFileSystem::open_directory(path);
    ASSERT_TRUE(other);
    EXPECT_EQ(files.attach().error(), errc::device_or_resource_busy);
  }
  EXPECT_EQ(*files.attach(), Attached::Anew);
  EXPECT_OK(files.create("a"));
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
