#include "config/file_system.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "tests/cache/log/file_system_fixture.h"

namespace secondsight::cache::log {
namespace {

namespace errc = boost::system::errc;
using Pieces = std::vector<std::span<const std::byte>>;

std::vector<std::byte> counting(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + i / 256);
  return data;
}

class FileSystemTest : public test::OnEveryFileSystem {};
INSTANTIATE_ON_EVERY_FILE_SYSTEM(FileSystemTest);
INSTANTIATE_ON_SPARSE_FILES(FileSystemTest);

TEST_P(FileSystemTest, ListsWhatWasCreatedAndNotRemoved) {
  EXPECT_TRUE(files().list()->empty());
  EXPECT_OK(files().create("a"));
  EXPECT_OK(files().create("b"));
  EXPECT_OK(files().remove("a"));
  EXPECT_OK(files().sync_directory());
  EXPECT_EQ(*files().list(), std::vector<std::string>{"b"});
}

TEST_P(FileSystemTest, ErrorsOfNames) {
  EXPECT_OK(files().create("a"));
  EXPECT_EQ(files().create("a").error(), errc::file_exists);
  EXPECT_EQ(files().open("b").error(), errc::no_such_file_or_directory);
  EXPECT_EQ(files().remove("b").error(), errc::no_such_file_or_directory);
}

TEST_P(FileSystemTest, GathersManyPiecesInOrder) {
  // More pieces than one vectored call takes, empty ones among them.
  const auto data = counting(5'000);
  Pieces pieces;
  for (std::size_t at = 0; at < data.size(); at += 5) {
    pieces.push_back(std::span(data).subspan(at, 5));
    if (at % 3 == 0) pieces.emplace_back();
  }
  auto file = files().create("a");
  ASSERT_TRUE(file);
  EXPECT_OK((*file)->write_at(100, pieces));
  EXPECT_EQ(*(*file)->size(), 5'100U);
  std::vector<std::byte> read(5'000);
  EXPECT_EQ(*(*file)->read_at(100, read, ReadMode::Blocking), 5'000U);
  EXPECT_EQ(read, data);
  EXPECT_OK((*file)->write_at(0, {}));
  EXPECT_OK((*file)->sync());
}

TEST_P(FileSystemTest, WhatWasNeverWrittenReadsAsZeros) {
  auto file = files().create("a");
  ASSERT_TRUE(file);
  EXPECT_OK((*file)->reserve(8'192));
  const auto data = counting(10);
  EXPECT_OK((*file)->write_at(4'000, Pieces{data}));
  std::vector<std::byte> read(4'000, std::byte{1});
  EXPECT_EQ(*(*file)->read_at(0, read, ReadMode::Blocking), 4'000U);
  EXPECT_EQ(read, std::vector<std::byte>(4'000));
}

TEST_P(FileSystemTest, ReadsPastTheEndAreShort) {
  auto file = files().create("a");
  ASSERT_TRUE(file);
  const auto data = counting(10);
  EXPECT_OK((*file)->write_at(0, Pieces{data}));
  std::vector<std::byte> read(20);
  EXPECT_EQ(*(*file)->read_at(4, read, ReadMode::Blocking), 6U);
  EXPECT_EQ(*(*file)->read_at(10, read, ReadMode::Blocking), 0U);
  EXPECT_EQ(*(*file)->read_at(1'000, read, ReadMode::Blocking), 0U);
}

TEST_P(FileSystemTest, PageCacheOnlyGivesTheBytesOrAsksToTryAgain) {
  auto file = files().create("a");
  ASSERT_TRUE(file);
  const auto data = counting(20'000);
  EXPECT_OK((*file)->write_at(0, Pieces{data}));
  std::vector<std::byte> read(20'000);
  const auto n = (*file)->read_at(0, read, ReadMode::PageCacheOnly);
  if (n) {
    EXPECT_EQ(*n, 20'000U);
    EXPECT_EQ(read, data);
  } else {
    EXPECT_EQ(n.error(), errc::resource_unavailable_try_again);
  }
}

TEST_P(FileSystemTest, ARemovedFileStaysReadableWhileOpen) {
  auto file = files().create("a");
  ASSERT_TRUE(file);
  const auto data = counting(10);
  EXPECT_OK((*file)->write_at(0, Pieces{data}));
  EXPECT_OK(files().remove("a"));
  std::vector<std::byte> read(10);
  EXPECT_EQ(*(*file)->read_at(0, read, ReadMode::Blocking), 10U);
  EXPECT_EQ(read, data);
  EXPECT_OK(files().create("a"));
}

TEST_P(FileSystemTest, AnotherHandleSeesTheSameFile) {
  auto writer = files().create("a");
  ASSERT_TRUE(writer);
  auto reader = files().open("a");
  ASSERT_TRUE(reader);
  const auto data = counting(10);
  EXPECT_OK((*writer)->write_at(0, Pieces{data}));
  std::vector<std::byte> read(10);
  EXPECT_EQ(*(*reader)->read_at(0, read, ReadMode::Blocking), 10U);
  EXPECT_EQ(read, data);
}

}  // namespace
}  // namespace secondsight::cache::log
