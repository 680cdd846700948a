#include "proxy/cache_directory.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "tests/cache/log/log_fixture.h"

namespace secondsight::proxy {
namespace {

namespace errc = boost::system::errc;
using Attached = FileSystem::Attached;

class CacheDirectoryTest : public ::testing::Test {
 protected:
  std::uint64_t seed_there() const { return admission::FingerprintSeed::load(path_)->id(); }

  const test::TemporaryDirectory parent_;
  const std::string path_ = parent_.path() + "/cache";
};

TEST_F(CacheDirectoryTest, TheSeedStaysWithTheDirectory) {
  std::uint64_t first = 0;
  {
    CacheDirectory directory(path_);
    first = directory.seed().id();
    EXPECT_EQ(*directory.attach(), Attached::Anew);
    EXPECT_EQ(*directory.attach(), Attached::Same);
    EXPECT_EQ(seed_there(), first);
  }
  CacheDirectory again(path_);
  EXPECT_EQ(again.seed().id(), first);
  EXPECT_EQ(*again.attach(), Attached::Anew);
  EXPECT_OK(again.create("a"));
  EXPECT_OK(again.open("a"));
}

TEST_F(CacheDirectoryTest, ADirectoryOfAnotherProcessIsTakenOverWithItsSeed) {
  auto first = std::make_unique<CacheDirectory>(path_);
  EXPECT_OK(first->attach());
  CacheDirectory second(path_);
  EXPECT_EQ(second.seed().id(), first->seed().id());
  EXPECT_EQ(second.attach().error(), errc::device_or_resource_busy);
  first.reset();
  EXPECT_EQ(*second.attach(), Attached::Anew);
}

TEST_F(CacheDirectoryTest, ADirectoryMadeAgainGetsTheSeedInUse) {
  CacheDirectory directory(path_);
  EXPECT_OK(directory.attach());
  std::filesystem::remove_all(path_);
  EXPECT_EQ(*directory.attach(), Attached::Anew);
  EXPECT_EQ(seed_there(), directory.seed().id());
}

TEST_F(CacheDirectoryTest, AnotherSeedIsRefusedAndKeptUntilItIsGone) {
  CacheDirectory directory(path_);
  EXPECT_OK(directory.attach());
  std::filesystem::rename(path_, parent_.path() + "/away");
  std::uint64_t other = 0;
  {
    CacheDirectory in_its_place(path_);
    EXPECT_OK(in_its_place.attach());
    other = in_its_place.seed().id();
  }
  for (int i = 0; i < 2; ++i) EXPECT_EQ(directory.attach().error(), errc::file_exists);
  EXPECT_EQ(seed_there(), other);
  std::ofstream(path_ + "/seed") << "no seed";
  EXPECT_EQ(directory.attach().error(), errc::bad_message);
  std::filesystem::remove(path_ + "/seed");
  EXPECT_EQ(*directory.attach(), Attached::Anew);
  EXPECT_EQ(seed_there(), directory.seed().id());
}

TEST_F(CacheDirectoryTest, OneThatCannotBeReadAtFirstIsUsedOnceItCan) {
  std::ofstream(path_) << "a file in its place";
  CacheDirectory directory(path_);
  EXPECT_EQ(directory.attach().error(), errc::not_a_directory);
  EXPECT_EQ(directory.create("a").error(), errc::not_connected);
  std::filesystem::remove(path_);
  EXPECT_EQ(*directory.attach(), Attached::Anew);
  EXPECT_EQ(seed_there(), directory.seed().id());
}

}  // namespace
}  // namespace secondsight::proxy
