#pragma once
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "config/file_system.h"
#include "config/result.h"
#include "config/system_calls.h"

namespace secondsight {

/// A directory of the machine, this process's alone: an exclusive flock on its file "lock" is held
/// from attach() to destruction, or until another directory stands in its place. Files are 0600,
/// the directory (made when missing) 0700. Interrupted and short calls are continued; a full quota
/// and a file size limit are reported as no_space_on_device. On a read-only file system files are
/// opened for reading. Thread-safe.
///
/// PageCacheOnly reads answer resource_unavailable_try_again also at the end of a file and where
/// the file system knows no RWF_NOWAIT.
class PosixFileSystem final : public FileSystem {
 public:
  /// Nothing is opened before attach(). `calls` outlives it and its files.
  explicit PosixFileSystem(std::filesystem::path directory,
                           SystemCalls& calls = SystemCalls::of_kernel());
  /// With attach() done. Errors: its.
  static Result<std::unique_ptr<PosixFileSystem>> open_directory(
      const std::filesystem::path& directory);
  ~PosixFileSystem() override;
  PosixFileSystem(const PosixFileSystem&) = delete;
  PosixFileSystem& operator=(const PosixFileSystem&) = delete;

  /// Anew also where the directory's lock file was removed: with the other files, most likely, and
  /// another process may have made its own.
  Result<Attached> attach() override;
  Result<std::unique_ptr<File>> create(std::string_view name) override;
  Result<std::unique_ptr<File>> open(std::string_view name) override;
  /// The lock file left out.
  Result<std::vector<std::string>> list() const override;
  Result<> remove(std::string_view name) override;
  Result<> sync_directory() override;

 private:
  /// The descriptors of one directory that is locked.
  class Held;
  std::shared_ptr<const Held> held() const;
  bool is_in_place(const Held& held) const;

  const std::filesystem::path path_;
  SystemCalls& calls_;
  mutable std::mutex mutex_;  // for one copy
  std::shared_ptr<const Held> held_;
};

/// One file outside of any such directory, made with mode 0600. Errors: file_exists, I/O.
Result<std::unique_ptr<File>> create_file(const std::filesystem::path& path);
/// One to read. Errors: I/O, is_a_directory.
Result<std::unique_ptr<File>> open_file(const std::filesystem::path& path);

}  // namespace secondsight
