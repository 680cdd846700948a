#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/file_system.h"

namespace secondsight::loadtest {

/// Files in memory that keep no block of zeros: a log whose bodies are zeros takes the room of its
/// heads only, so that simulated disks may be larger than the machine's memory. Nothing ever fails,
/// and nothing is lost. One thread.
class SparseFileSystem final : public FileSystem {
 public:
  static constexpr std::size_t kBlockBytes = 512;

  Result<std::unique_ptr<File>> create(std::string_view name) override;
  Result<std::unique_ptr<File>> open(std::string_view name) override;
  Result<std::vector<std::string>> list() const override;
  Result<> remove(std::string_view name) override;
  Result<> sync_directory() override { return {}; }

  /// What the files' blocks take in memory; of removed ones until they are closed.
  std::uint64_t memory_bytes() const noexcept { return *blocks_ * kBlockBytes; }

 private:
  struct Contents;
  class OpenFile;
  std::shared_ptr<std::uint64_t> blocks_ = std::make_shared<std::uint64_t>(0);
  std::map<std::string, std::shared_ptr<Contents>, std::less<>> files_;
};

}  // namespace secondsight::loadtest
