// The installation's secret on disk: made once, read at every start. Its format is in
// docs/admission.md; golden bytes in tests/admission/seed_file_test.cc.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <string>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "admission/fingerprint.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace secondsight::admission {
namespace {

namespace fs = std::filesystem;
using boost::system::error_code;

constexpr const char* kFileName = "seed";

// magic (8 bytes) | version (u32) | seed (32 bytes) | XXH3-64 of all before it (u64),
// little-endian.
constexpr std::array<char, 8> kMagic{'2', 'n', 'd', '-', 's', 'e', 'e', 'd'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kSeedOffset = kMagic.size() + sizeof(kVersion);
constexpr std::size_t kChecksumOffset = kSeedOffset + FingerprintSeed::kSeedBytes;
constexpr std::size_t kFileBytes = kChecksumOffset + sizeof(std::uint64_t);
using FileImage = std::array<unsigned char, kFileBytes>;

error_code last_error() noexcept {
  return {errno, boost::system::system_category()};
}
error_code damaged() noexcept {
  return boost::system::errc::make_error_code(boost::system::errc::bad_message);
}

template <class Integer>
void put_little_endian(unsigned char* out, Integer value) noexcept {
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    out[i] = static_cast<unsigned char>(value >> (8 * i) & 0xFFU);
  }
}

FileImage encode(const FingerprintSeed::Bytes& seed) noexcept {
  FileImage image{};
  std::copy(kMagic.begin(), kMagic.end(), image.begin());
  put_little_endian(image.data() + kMagic.size(), kVersion);
  std::memcpy(image.data() + kSeedOffset, seed.data(), seed.size());
  put_little_endian(image.data() + kChecksumOffset, XXH3_64bits(image.data(), kChecksumOffset));
  return image;
}

// A file is whole exactly if encoding the seed it holds gives the file again: magic, version and
// checksum are all checked by one comparison.
Result<FingerprintSeed::Bytes> decode(std::span<const unsigned char> file) {
  if (file.size() != kFileBytes) return damaged();
  FingerprintSeed::Bytes seed;
  std::memcpy(seed.data(), file.data() + kSeedOffset, seed.size());
  const FileImage whole = encode(seed);
  if (!std::equal(file.begin(), file.end(), whole.begin())) return damaged();
  return seed;
}

class Descriptor {
 public:
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const noexcept { return number_; }
  bool is_open() const noexcept { return number_ >= 0; }

 private:
  int number_;
};

// At most one byte more than a whole file: a longer one is damaged, however long it is.
Result<FingerprintSeed::Bytes> read_seed(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return last_error();
  std::array<unsigned char, kFileBytes + 1> bytes{};
  std::size_t count = 0;
  while (count < bytes.size()) {
    const ssize_t got = ::read(file.number(), bytes.data() + count, bytes.size() - count);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return last_error();
    if (got == 0) break;
    count += static_cast<std::size_t>(got);
  }
  return decode(std::span(bytes).first(count));
}

Result<> write_and_sync(const fs::path& path, const FileImage& image) {
  constexpr mode_t kOwnerOnly = 0600;
  const Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kOwnerOnly));
  if (!file.is_open()) return last_error();
  if (::fchmod(file.number(), kOwnerOnly) != 0) return last_error();  // whatever the umask says
  std::size_t written = 0;
  while (written < image.size()) {
    const ssize_t put = ::write(file.number(), image.data() + written, image.size() - written);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return last_error();
    written += static_cast<std::size_t>(put);
  }
  if (::fsync(file.number()) != 0) return last_error();
  return {};
}

Result<> sync_directory(const fs::path& path) {
  const Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open() || ::fsync(directory.number()) != 0) return last_error();
  return {};
}

// Never over an existing file, where the file system can promise that (NFS cannot).
Result<> rename_if_absent(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno != EINVAL && errno != ENOSYS) return last_error();
  if (::rename(from.c_str(), to.c_str()) != 0) return last_error();
  return {};
}

Result<FingerprintSeed::Bytes> random_bytes() {
  FingerprintSeed::Bytes bytes;
  std::size_t count = 0;
  while (count < bytes.size()) {
    const ssize_t got = ::getrandom(bytes.data() + count, bytes.size() - count, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return last_error();
    count += static_cast<std::size_t>(got);
  }
  return bytes;
}

Result<> create_seed_file(const fs::path& directory, const FingerprintSeed::Bytes& seed) {
  const fs::path path = directory / kFileName;
  // The process number keeps two first starts out of each other's way.
  const fs::path aside = directory / ("seed.new." + std::to_string(::getpid()));
  Result<> done = write_and_sync(aside, encode(seed));
  if (done) done = rename_if_absent(aside, path);
  if (!done) {
    ::unlink(aside.c_str());
    if (done.error() == boost::system::errc::file_exists) return {};  // the other one's will do
    return done;
  }
  return sync_directory(directory);
}

}  // namespace

Result<FingerprintSeed> FingerprintSeed::random() {
  const Result<Bytes> bytes = random_bytes();
  if (!bytes) return bytes.error();
  return FingerprintSeed(*bytes);
}

Result<FingerprintSeed> FingerprintSeed::load(const std::filesystem::path& directory) {
  const Result<Bytes> bytes = read_seed(directory / kFileName);
  if (!bytes) return bytes.error();
  return FingerprintSeed(*bytes);
}

Result<> FingerprintSeed::store_in(const std::filesystem::path& directory) const {
  return create_seed_file(directory, bytes_);
}

Result<FingerprintSeed> FingerprintSeed::load_or_create(const std::filesystem::path& directory) {
  auto seed = load(directory);
  if (seed || seed.error() != boost::system::errc::no_such_file_or_directory) return seed;
  const auto fresh = random();
  if (!fresh) return fresh;
  if (const Result<> stored = fresh->store_in(directory); !stored) return stored.error();
  return load(directory);  // what is on disk counts, not what was meant to be there
}

}  // namespace secondsight::admission
