#include "config/posix_file_system.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <limits>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "config/read_uncached.h"

namespace secondsight {
namespace {

using boost::system::error_code;
using boost::system::errc::make_error_code;
namespace errc = boost::system::errc;

constexpr mode_t kFileMode = 0600;
constexpr const char* kLockName = "lock";

error_code last_error() noexcept {
  const bool is_space = errno == EDQUOT || errno == EFBIG;
  const int number = is_space ? ENOSPC : errno;
  return {number, boost::system::generic_category()};
}

/// Calls until a signal does not interrupt.
template <class Call>
auto retry(Call call) noexcept {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class PosixFile final : public File {
 public:
  PosixFile(int descriptor, SystemCalls& calls) noexcept : descriptor_(descriptor), calls_(calls) {}
  ~PosixFile() override { ::close(descriptor_); }
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out,
                              ReadMode mode) const override {
    if (mode == ReadMode::Uncached) return read_uncached(calls_, descriptor_, offset, out);
    const int flags = mode == ReadMode::PageCacheOnly ? RWF_NOWAIT : 0;
    std::size_t filled = 0;
    while (filled < out.size()) {
      const iovec piece{out.data() + filled, out.size() - filled};
      const auto at = static_cast<off_t>(offset + filled);
      const ssize_t n = retry([&] { return calls_.preadv2(descriptor_, &piece, 1, at, flags); });
      if (n > 0) {
        filled += static_cast<std::size_t>(n);
      } else if (mode == ReadMode::PageCacheOnly && (n == 0 || errno == EOPNOTSUPP)) {
        return make_error_code(errc::resource_unavailable_try_again);
      } else if (n == 0) {
        break;
      } else {
        return last_error();
      }
    }
    return filled;
  }

  Result<> write_at(std::uint64_t offset,
                    std::span<const std::span<const std::byte>> pieces) override {
    std::array<iovec, kPiecesPerCall> vector{};
    std::size_t piece = 0;
    std::size_t skip = 0;  // bytes of pieces[piece] that are written
    while (true) {
      while (piece < pieces.size() && skip == pieces[piece].size()) {
        ++piece;
        skip = 0;
      }
      if (piece == pieces.size()) return {};
      const std::size_t count = std::min(pieces.size() - piece, vector.size());
      for (std::size_t i = 0; i < count; ++i) {
        const auto bytes = pieces[piece + i].subspan(i == 0 ? skip : 0);
        vector[i] = {const_cast<std::byte*>(bytes.data()), bytes.size()};  // pwritev only reads
      }
      const auto at = static_cast<off_t>(offset);
      ssize_t n = retry(
          [&] { return calls_.pwritev(descriptor_, vector.data(), static_cast<int>(count), at); });
      if (n < 0) return last_error();
      if (n == 0) return make_error_code(errc::io_error);
      offset += static_cast<std::uint64_t>(n);
      for (auto left = static_cast<std::size_t>(n); left > 0;) {
        const std::size_t taken = std::min(left, pieces[piece].size() - skip);
        left -= taken;
        skip += taken;
        if (left > 0) {
          ++piece;
          skip = 0;
        }
      }
    }
  }

  Result<> reserve(std::uint64_t size_bytes) override {
    const auto size = static_cast<off_t>(size_bytes);
    if (retry([&] { return calls_.fallocate(descriptor_, size); }) == 0) return {};
    if (errno == EOPNOTSUPP || errno == ENOSYS) return {};
    return last_error();
  }

  Result<> sync() override {
    if (retry([&] { return calls_.fdatasync(descriptor_); }) != 0) return last_error();
    return {};
  }

  Result<std::uint64_t> size() const override {
    struct stat status {};
    if (calls_.fstat(descriptor_, status) != 0) return last_error();
    return static_cast<std::uint64_t>(status.st_size);
  }

 private:
  static constexpr std::size_t kPiecesPerCall =
      256;  // below IOV_MAX; a whole part in 16 KiB chunks
  int descriptor_;
  SystemCalls& calls_;
};

Result<int> open_at(SystemCalls& calls, int directory, const char* path, int flags) {
  const int descriptor =
      retry([&] { return calls.openat(directory, path, flags | O_CLOEXEC, kFileMode); });
  if (descriptor < 0) return last_error();
  return descriptor;
}

/// Parents as the umask has it, the last one for the owner only.
Result<> make_directory(SystemCalls& calls, std::filesystem::path directory) {
  if (!directory.has_filename()) directory = directory.parent_path();  // a trailing slash
  if (directory.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(directory.parent_path(), error);
    if (error) return error_code(error.value(), boost::system::generic_category());
  }
  if (calls.mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return last_error();
  return {};
}

bool is_same_file(const struct stat& a, const struct stat& b) noexcept {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

error_code not_attached() {
  return make_error_code(errc::not_connected);
}

}  // namespace

class PosixFileSystem::Held {
 public:
  explicit Held(int directory_descriptor) noexcept : directory(directory_descriptor) {}
  ~Held() {
    if (lock >= 0) ::close(lock);
    ::close(directory);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  const int directory;
  int lock = -1;
};

PosixFileSystem::PosixFileSystem(std::filesystem::path directory, SystemCalls& calls)
    : path_(std::move(directory)), calls_(calls) {}

PosixFileSystem::~PosixFileSystem() = default;

Result<std::unique_ptr<PosixFileSystem>> PosixFileSystem::open_directory(
    const std::filesystem::path& directory) {
  auto files = std::make_unique<PosixFileSystem>(directory);
  if (auto attached = files->attach(); !attached) return attached.error();
  return files;
}

std::shared_ptr<const PosixFileSystem::Held> PosixFileSystem::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

/// What cannot be told (a path that may not be searched, say) is no change: the descriptors work,
/// or will say themselves that they do not.
bool PosixFileSystem::is_in_place(const Held& held) const {
  struct stat ours {
  }, there{};
  if (calls_.fstat(held.directory, ours) != 0) return true;
  if (calls_.stat(path_.c_str(), there) != 0) return errno != ENOENT && errno != ENOTDIR;
  if (!is_same_file(ours, there)) return false;
  if (calls_.fstat(held.lock, ours) != 0) return true;
  if (calls_.fstatat(held.directory, kLockName, there) != 0) return errno != ENOENT;
  return is_same_file(ours, there);
}

Result<FileSystem::Attached> PosixFileSystem::attach() {
  if (const auto current = held()) {
    if (is_in_place(*current)) return Attached::Same;
    const std::lock_guard lock(mutex_);
    held_.reset();
  }
  if (auto made = make_directory(calls_, path_); !made) return made.error();
  auto directory = open_at(calls_, AT_FDCWD, path_.c_str(), O_RDONLY | O_DIRECTORY);
  if (!directory) return directory.error();
  const auto fresh = std::make_shared<Held>(*directory);
  auto lock = open_at(calls_, fresh->directory, kLockName, O_RDWR | O_CREAT);
  if (!lock && lock.error() == errc::read_only_file_system)
    lock = open_at(calls_, fresh->directory, kLockName, O_RDONLY);
  if (!lock) return lock.error();
  fresh->lock = *lock;
  if (retry([&] { return calls_.flock(fresh->lock, LOCK_EX | LOCK_NB); }) != 0)
    return errno == EWOULDBLOCK ? make_error_code(errc::device_or_resource_busy) : last_error();
  // Removed between opening and locking: another process may have locked the next one.
  if (!is_in_place(*fresh)) return make_error_code(errc::device_or_resource_busy);
  const std::lock_guard guard(mutex_);
  held_ = fresh;
  return Attached::Anew;
}

Result<std::unique_ptr<File>> PosixFileSystem::create(std::string_view name) {
  const auto directory = held();
  if (!directory) return not_attached();
  auto descriptor =
      open_at(calls_, directory->directory, std::string(name).c_str(), O_RDWR | O_CREAT | O_EXCL);
  if (!descriptor) return descriptor.error();
  return std::unique_ptr<File>(std::make_unique<PosixFile>(*descriptor, calls_));
}

Result<std::unique_ptr<File>> PosixFileSystem::open(std::string_view name) {
  const auto directory = held();
  if (!directory) return not_attached();
  const std::string path(name);
  auto descriptor = open_at(calls_, directory->directory, path.c_str(), O_RDWR);
  if (!descriptor && descriptor.error() == errc::read_only_file_system)
    descriptor = open_at(calls_, directory->directory, path.c_str(), O_RDONLY);
  if (!descriptor) return descriptor.error();
  return std::unique_ptr<File>(std::make_unique<PosixFile>(*descriptor, calls_));
}

Result<std::vector<std::string>> PosixFileSystem::list() const {
  const auto directory = held();
  if (!directory) return not_attached();
  auto descriptor = open_at(calls_, directory->directory, ".", O_RDONLY | O_DIRECTORY);
  if (!descriptor) return descriptor.error();
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(*descriptor), &::closedir);
  if (!entries) {
    const error_code error = last_error();
    ::close(*descriptor);
    return error;
  }
  std::vector<std::string> names;
  errno = 0;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is safe for streams that are not shared
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    const bool is_file = entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN;
    if (is_file && name != "." && name != ".." && name != kLockName) names.emplace_back(name);
  }
  if (errno != 0) return last_error();
  return names;
}

Result<> PosixFileSystem::remove(std::string_view name) {
  const auto directory = held();
  if (!directory) return not_attached();
  const std::string path(name);
  if (retry([&] { return calls_.unlinkat(directory->directory, path.c_str()); }) != 0)
    return last_error();
  return {};
}

Result<> PosixFileSystem::sync_directory() {
  const auto directory = held();
  if (!directory) return not_attached();
  if (retry([&] { return calls_.fsync(directory->directory); }) != 0) return last_error();
  return {};
}

Result<std::unique_ptr<File>> create_file(const std::filesystem::path& path) {
  SystemCalls& calls = SystemCalls::of_kernel();
  auto descriptor = open_at(calls, AT_FDCWD, path.c_str(), O_RDWR | O_CREAT | O_EXCL);
  if (!descriptor) return descriptor.error();
  return std::unique_ptr<File>(std::make_unique<PosixFile>(*descriptor, calls));
}

Result<std::unique_ptr<File>> open_file(const std::filesystem::path& path) {
  std::error_code ignored;  // what cannot be told, opening tells
  if (std::filesystem::is_directory(path, ignored)) return make_error_code(errc::is_a_directory);
  SystemCalls& calls = SystemCalls::of_kernel();
  auto descriptor = open_at(calls, AT_FDCWD, path.c_str(), O_RDONLY);
  if (!descriptor) return descriptor.error();
  return std::unique_ptr<File>(std::make_unique<PosixFile>(*descriptor, calls));
}

}  // namespace secondsight
