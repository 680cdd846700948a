#include "config/read_only_directory.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "config/read_uncached.h"

namespace secondsight {
namespace {

using boost::system::error_code;
using boost::system::errc::make_error_code;
namespace errc = boost::system::errc;
namespace fs = std::filesystem;

constexpr const char* kLockName = "lock";

error_code last_error() noexcept {
  return {errno, boost::system::generic_category()};
}
error_code no_writing() noexcept {
  return make_error_code(errc::read_only_file_system);
}

class ReadOnlyFile final : public File {
 public:
  explicit ReadOnlyFile(int descriptor) noexcept : descriptor_(descriptor) {}
  ~ReadOnlyFile() override { ::close(descriptor_); }
  ReadOnlyFile(const ReadOnlyFile&) = delete;
  ReadOnlyFile& operator=(const ReadOnlyFile&) = delete;

  /// Whoever looks a directory over wants to know what the device has: every mode is Uncached.
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out,
                              ReadMode /*mode*/) const override {
    return read_uncached(SystemCalls::of_kernel(), descriptor_, offset, out);
  }
  Result<std::uint64_t> size() const override {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) return last_error();
    return static_cast<std::uint64_t>(status.st_size);
  }

  Result<> write_at(std::uint64_t /*offset*/,
                    std::span<const std::span<const std::byte>> /*pieces*/) override {
    return no_writing();
  }
  Result<> reserve(std::uint64_t /*size_bytes*/) override { return no_writing(); }
  Result<> sync() override { return no_writing(); }

 private:
  int descriptor_;
};

}  // namespace

Result<std::unique_ptr<ReadOnlyDirectory>> ReadOnlyDirectory::open_directory(
    const fs::path& directory, Locking locking) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    if (error) return error_code(error.value(), boost::system::generic_category());
    return make_error_code(errc::not_a_directory);
  }
  std::unique_ptr<ReadOnlyDirectory> files(new ReadOnlyDirectory(directory));
  if (locking == Locking::None) return files;
  files->lock_ = ::open((directory / kLockName).c_str(), O_RDONLY | O_CLOEXEC);
  if (files->lock_ < 0 && errno != ENOENT) return last_error();
  if (files->lock_ < 0) return files;
  int locked = 0;
  do {
    locked = ::flock(files->lock_, LOCK_EX | LOCK_NB);
  } while (locked != 0 && errno == EINTR);
  if (locked != 0)
    return errno == EWOULDBLOCK ? make_error_code(errc::device_or_resource_busy) : last_error();
  return files;
}

ReadOnlyDirectory::~ReadOnlyDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

Result<std::unique_ptr<File>> ReadOnlyDirectory::open(std::string_view name) {
  const int descriptor = ::open((path_ / name).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return last_error();
  return std::unique_ptr<File>(std::make_unique<ReadOnlyFile>(descriptor));
}

Result<std::vector<std::string>> ReadOnlyDirectory::list() const {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator entry(path_, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    std::error_code ignored;  // what is no longer there is no file of ours
    if (name != kLockName && entry->is_regular_file(ignored)) names.push_back(std::move(name));
  }
  if (error) return error_code(error.value(), boost::system::generic_category());
  return names;
}

Result<std::unique_ptr<File>> ReadOnlyDirectory::create(std::string_view /*name*/) {
  return no_writing();
}
Result<> ReadOnlyDirectory::remove(std::string_view /*name*/) {
  return no_writing();
}
Result<> ReadOnlyDirectory::sync_directory() {
  return no_writing();
}

}  // namespace secondsight
