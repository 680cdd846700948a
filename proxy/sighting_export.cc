#include "proxy/sighting_export.h"

#include <filesystem>
#include <system_error>
#include <unistd.h>

#include "admission/fingerprint.h"
#include "admission/sighting_snapshot.h"
#include "config/posix_file_system.h"
#include "config/read_only_directory.h"
#include "proxy/sighting_options.h"

namespace secondsight::proxy {
namespace {

namespace fs = std::filesystem;

Result<> rename(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) return boost::system::error_code(error.value(), boost::system::generic_category());
  return {};
}

void remove(const std::string& path) {
  std::error_code ignored;  // without its header it is no snapshot, and a later one replaces it
  fs::remove(path, ignored);
}

}  // namespace

Result<Remembered> remember(const Settings& settings, admission::TwoGenerationFilter& filter,
                            const Clock& clock) {
  const std::string& directory = settings.cache.directory;
  const auto seed = admission::FingerprintSeed::load(directory);
  if (!seed) return seed.error();
  const auto files = ReadOnlyDirectory::open_directory(directory, ReadOnlyDirectory::Locking::None);
  if (!files) return files.error();
  admission::SightingJournal journal(**files, journal_options(settings, filter.size(), seed->id()));
  auto restored = journal.restore(filter, clock.wall(), clock.steady());
  if (!restored) return restored.error();
  return Remembered{seed->id(), std::move(*restored)};
}

Result<> write_snapshot_file(const std::string& path, Overwrite overwrite,
                             const admission::TwoGenerationFilter& filter, std::uint64_t seed_id,
                             WallTime now) {
  std::error_code unknown;
  const auto there = fs::symlink_status(path, unknown);
  if (fs::exists(there) && !fs::is_regular_file(there))
    return make_error_code(boost::system::errc::file_exists);  // a device, a pipe, a link
  // What stands there is replaced by a whole one only; without it the name itself is taken first.
  const std::string aside =
      overwrite == Overwrite::Replace ? path + ".new." + std::to_string(::getpid()) : path;
  const auto file = create_file(aside);
  if (!file) return file.error();
  Result<> done =
      admission::write_snapshot(**file, filter, admission::SnapshotOf::Both, seed_id, now);
  if (done && aside != path) done = rename(aside, path);
  if (!done) remove(aside);
  return done;
}

}  // namespace secondsight::proxy
