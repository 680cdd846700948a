#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/file_system.h"
#include "config/result.h"

namespace secondsight {

/// A directory of the machine that is looked at and not changed: nothing is made, nothing is opened
/// for writing, and every call that would change something answers read_only_file_system.
/// Thread-safe.
class ReadOnlyDirectory final : public FileSystem {
 public:
  enum class Locking : std::uint8_t {
    Exclusive,  // the directory's lock is held, if it has one, as a PosixFileSystem does: no proxy
                // starts on it meanwhile
    None,       // a process may be using the directory: its files grow and go while they are read
  };
  /// Errors: device_or_resource_busy (a running process has the directory), I/O.
  static Result<std::unique_ptr<ReadOnlyDirectory>> open_directory(
      const std::filesystem::path& directory, Locking locking = Locking::Exclusive);
  ~ReadOnlyDirectory() override;
  ReadOnlyDirectory(const ReadOnlyDirectory&) = delete;
  ReadOnlyDirectory& operator=(const ReadOnlyDirectory&) = delete;

  Result<std::unique_ptr<File>> create(std::string_view name) override;
  Result<std::unique_ptr<File>> open(std::string_view name) override;
  /// The lock file left out.
  Result<std::vector<std::string>> list() const override;
  Result<> remove(std::string_view name) override;
  Result<> sync_directory() override;

 private:
  explicit ReadOnlyDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
  int lock_ = -1;  // none: not wanted, or the directory has never been in use
};

}  // namespace secondsight
