#include "loadtest/sparse_file_system.h"

#include <vector>

#include <gtest/gtest.h>

// What every file system must do is in tests/config/file_system_test.cc.
namespace secondsight::loadtest {
namespace {

using Bytes = std::vector<std::byte>;
constexpr std::uint64_t kBlock = SparseFileSystem::kBlockBytes;

Result<> write(File& file, std::uint64_t offset, const Bytes& bytes) {
  const std::vector<std::span<const std::byte>> pieces{bytes};
  return file.write_at(offset, pieces);
}

TEST(SparseFileSystem, ZerosTakeNoMemory) {
  SparseFileSystem files;
  const auto file = *files.create("a");
  ASSERT_TRUE(file->reserve(std::uint64_t{1} << 40));
  ASSERT_TRUE(write(*file, 100, Bytes(1'000'000)));
  EXPECT_EQ(files.memory_bytes(), 0u);
  ASSERT_TRUE(write(*file, kBlock - 1, Bytes(2, std::byte{7})));
  EXPECT_EQ(files.memory_bytes(), 2 * kBlock);
  EXPECT_EQ(*file->size(), std::uint64_t{1} << 40);
}

TEST(SparseFileSystem, ZerosReplaceWhatIsThere) {
  SparseFileSystem files;
  const auto file = *files.create("a");
  ASSERT_TRUE(write(*file, 0, Bytes(2 * kBlock, std::byte{7})));
  ASSERT_TRUE(write(*file, 10, Bytes(kBlock)));
  Bytes read(2 * kBlock);
  ASSERT_EQ(*file->read_at(0, read, ReadMode::Blocking), read.size());
  Bytes expected(2 * kBlock, std::byte{7});
  std::fill_n(expected.begin() + 10, kBlock, std::byte{0});
  EXPECT_EQ(read, expected);
}

TEST(SparseFileSystem, MemoryComesBackWhenAFileIsRemovedAndClosed) {
  SparseFileSystem files;
  auto file = *files.create("a");
  ASSERT_TRUE(write(*file, 0, Bytes(kBlock, std::byte{7})));
  ASSERT_TRUE(files.remove("a"));
  EXPECT_EQ(files.memory_bytes(), kBlock);
  file.reset();
  EXPECT_EQ(files.memory_bytes(), 0u);
}

}  // namespace
}  // namespace secondsight::loadtest
