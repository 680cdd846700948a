#include "proxy/cache_directory.h"

#include "config/check.h"

namespace secondsight::proxy {
namespace {

namespace errc = boost::system::errc;

/// Under the directory's lock where that can be had: of two first starts, both get the same.
admission::FingerprintSeed choose_seed(PosixFileSystem& files, const std::filesystem::path& path) {
  const auto there = files.attach() ? admission::FingerprintSeed::load_or_create(path)
                                    : admission::FingerprintSeed::load(path);
  return there ? *there : random_seed();
}

}  // namespace

admission::FingerprintSeed random_seed() {
  const auto seed = admission::FingerprintSeed::random();
  CHECK(seed);
  return *seed;
}

CacheDirectory::CacheDirectory(const std::filesystem::path& path)
    : path_(path), files_(path), seed_(choose_seed(files_, path)) {}

Result<FileSystem::Attached> CacheDirectory::attach() {
  const auto attached = files_.attach();
  if (!attached || *attached == Attached::Anew) is_ours_ = false;
  if (!attached || is_ours_) return attached;
  if (const auto checked = check_seed(); !checked) return checked.error();
  is_ours_ = true;
  return Attached::Anew;
}

Result<> CacheDirectory::check_seed() const {
  auto there = admission::FingerprintSeed::load(path_);
  if (!there && there.error() == errc::no_such_file_or_directory) {
    if (const auto stored = seed_.store_in(path_); !stored) return stored;
    there = admission::FingerprintSeed::load(path_);  // what is on disk counts
  }
  if (!there) return there.error();
  if (there->id() != seed_.id()) return make_error_code(errc::file_exists);
  return {};
}

Result<std::unique_ptr<File>> CacheDirectory::create(std::string_view name) {
  return files_.create(name);
}

Result<std::unique_ptr<File>> CacheDirectory::open(std::string_view name) {
  return files_.open(name);
}

}  // namespace secondsight::proxy
