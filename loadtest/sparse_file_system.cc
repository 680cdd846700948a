#include "loadtest/sparse_file_system.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace secondsight::loadtest {
namespace {

using boost::system::errc::make_error_code;
namespace errc = boost::system::errc;
using Block = std::array<std::byte, SparseFileSystem::kBlockBytes>;

bool is_zero(std::span<const std::byte> bytes) noexcept {
  static constexpr Block kZeros{};
  return std::memcmp(bytes.data(), kZeros.data(), bytes.size()) == 0;
}

/// Calls `visit(block, offset within it, place in the range, bytes)` for each block that the range
/// touches.
template <class Visit>
void for_each_block(std::uint64_t offset, std::size_t bytes, Visit visit) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t block = (offset + done) / sizeof(Block);
    const std::size_t within = (offset + done) % sizeof(Block);
    const std::size_t count = std::min(sizeof(Block) - within, bytes - done);
    visit(block, within, done, count);
    done += count;
  }
}

}  // namespace

/// One file, shared by its name and its handles.
struct SparseFileSystem::Contents {
  explicit Contents(std::shared_ptr<std::uint64_t> counted) : all_blocks(std::move(counted)) {}
  ~Contents() { *all_blocks -= blocks_kept; }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  void grow(std::uint64_t bytes) { size_bytes = std::max(size_bytes, bytes); }
  /// Null: zeros.
  Block* find(std::size_t block) const {
    return block < blocks.size() ? blocks[block].get() : nullptr;
  }
  Block& make(std::size_t block) {
    if (block >= blocks.size()) blocks.resize(block + 1);
    blocks[block] = std::make_unique<Block>();
    ++blocks_kept;
    ++*all_blocks;
    return *blocks[block];
  }

  std::uint64_t size_bytes = 0;
  std::vector<std::unique_ptr<Block>> blocks;  // up to the last that is kept
  std::uint64_t blocks_kept = 0;
  std::shared_ptr<std::uint64_t> all_blocks;  // of the file system
};

class SparseFileSystem::OpenFile final : public File {
 public:
  explicit OpenFile(std::shared_ptr<Contents> contents) : contents_(std::move(contents)) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out,
                              ReadMode /*mode*/) const override {
    if (offset >= contents_->size_bytes) return std::size_t{0};
    const std::size_t bytes = std::min<std::uint64_t>(out.size(), contents_->size_bytes - offset);
    for_each_block(offset, bytes,
                   [&](std::size_t block, std::size_t within, std::size_t at, std::size_t count) {
                     if (const Block* const from = contents_->find(block)) {
                       std::memcpy(out.data() + at, from->data() + within, count);
                     } else {
                       std::memset(out.data() + at, 0, count);
                     }
                   });
    return bytes;
  }

  Result<> write_at(std::uint64_t offset,
                    std::span<const std::span<const std::byte>> pieces) override {
    for (const auto piece : pieces) {
      write(offset, piece);
      offset += piece.size();
    }
    return {};
  }

  Result<> reserve(std::uint64_t size_bytes) override {
    contents_->grow(size_bytes);
    return {};
  }
  Result<> sync() override { return {}; }
  Result<std::uint64_t> size() const override { return contents_->size_bytes; }

 private:
  void write(std::uint64_t offset, std::span<const std::byte> piece) {
    contents_->grow(offset + piece.size());
    for_each_block(offset, piece.size(),
                   [&](std::size_t block, std::size_t within, std::size_t at, std::size_t count) {
                     const auto bytes = piece.subspan(at, count);
                     Block* to = contents_->find(block);
                     if (to == nullptr && is_zero(bytes)) return;
                     if (to == nullptr) to = &contents_->make(block);
                     std::memcpy(to->data() + within, bytes.data(), count);
                   });
  }

  std::shared_ptr<Contents> contents_;
};

Result<std::unique_ptr<File>> SparseFileSystem::create(std::string_view name) {
  const auto [at, is_new] = files_.try_emplace(std::string(name));
  if (!is_new) return make_error_code(errc::file_exists);
  at->second = std::make_shared<Contents>(blocks_);
  return std::unique_ptr<File>(std::make_unique<OpenFile>(at->second));
}

Result<std::unique_ptr<File>> SparseFileSystem::open(std::string_view name) {
  const auto at = files_.find(name);
  if (at == files_.end()) return make_error_code(errc::no_such_file_or_directory);
  return std::unique_ptr<File>(std::make_unique<OpenFile>(at->second));
}

Result<std::vector<std::string>> SparseFileSystem::list() const {
  std::vector<std::string> names;
  for (const auto& [name, contents] : files_) names.push_back(name);
  return names;
}

Result<> SparseFileSystem::remove(std::string_view name) {
  const auto at = files_.find(name);
  if (at == files_.end()) return make_error_code(errc::no_such_file_or_directory);
  files_.erase(at);
  return {};
}

}  // namespace secondsight::loadtest
