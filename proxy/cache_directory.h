#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "admission/fingerprint.h"
#include "config/posix_file_system.h"

namespace secondsight::proxy {

/// cache.directory as the log sees it: a directory with the seed by which its segments are read.
/// The process has one seed for all its life. A directory without a seed gets this one; one with
/// another is refused, as its objects could not be found (and are kept for a restart).
/// Threads: as PosixFileSystem.
class CacheDirectory final : public FileSystem {
 public:
  /// Takes the directory if it can be had, and the seed that is there, even if another process has
  /// the directory. Else the seed is a fresh one.
  explicit CacheDirectory(const std::filesystem::path& path);

  const admission::FingerprintSeed& seed() const noexcept { return seed_; }

  /// Errors: as PosixFileSystem; file_exists (another seed), bad_message (a damaged one).
  Result<Attached> attach() override;
  Result<std::unique_ptr<File>> create(std::string_view name) override;
  Result<std::unique_ptr<File>> open(std::string_view name) override;
  Result<std::vector<std::string>> list() const override { return files_.list(); }
  Result<> remove(std::string_view name) override { return files_.remove(name); }
  Result<> sync_directory() override { return files_.sync_directory(); }

 private:
  Result<> check_seed() const;

  const std::filesystem::path path_;
  PosixFileSystem files_;
  const admission::FingerprintSeed seed_;
  bool is_ours_ = false;  // attached, and of our seed; whoever attaches is one thread
};

/// A fresh seed. Ends the process where the kernel has no random bytes.
admission::FingerprintSeed random_seed();

}  // namespace secondsight::proxy
