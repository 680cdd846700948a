#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/log/file_system.h"
#include "config/result.h"

namespace secondsight::cache::log {

/// A directory of the machine, this process's alone: an exclusive flock on its file "lock" is held
/// until destruction. Files are 0600, the directory (made when missing) 0700. Interrupted and short
/// calls are continued; a full quota is reported as no_space_on_device. Thread-safe.
///
/// PageCacheOnly reads answer resource_unavailable_try_again also at the end of a file and where
/// the file system knows no RWF_NOWAIT.
class PosixFileSystem final : public FileSystem {
 public:
  /// Errors: device_or_resource_busy (another process has the directory), I/O.
  static Result<std::unique_ptr<PosixFileSystem>> open_directory(
      const std::filesystem::path& directory);
  ~PosixFileSystem() override;
  PosixFileSystem(const PosixFileSystem&) = delete;
  PosixFileSystem& operator=(const PosixFileSystem&) = delete;

  Result<std::unique_ptr<File>> create(std::string_view name) override;
  Result<std::unique_ptr<File>> open(std::string_view name) override;
  /// The lock file left out.
  Result<std::vector<std::string>> list() const override;
  Result<> remove(std::string_view name) override;
  Result<> sync_directory() override;

 private:
  PosixFileSystem(int directory, int lock) noexcept : directory_(directory), lock_(lock) {}
  int directory_;
  int lock_;
};

}  // namespace secondsight::cache::log
