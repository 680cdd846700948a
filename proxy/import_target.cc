#include "proxy/import_target.h"

#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "admission/sighting_journal.h"
#include "config/address.h"
#include "config/posix_file_system.h"
#include "proxy/admin_client.h"
#include "proxy/cache_directory.h"
#include "proxy/sighting_options.h"

namespace secondsight::proxy {
namespace {

namespace fs = std::filesystem;
namespace errc = boost::system::errc;
using admission::FingerprintSeed;
using admission::SightingJournal;
using admission::TwoGenerationFilter;

// Longer than the proxy itself waits for what it does.
constexpr std::chrono::seconds kPatience{75};

/// The next proxy to start on the directory, which is locked.
class StoppedProxy final : public ImportTarget {
 public:
  StoppedProxy(const Settings& settings, std::unique_ptr<CacheDirectory> directory,
               TwoGenerationFilter& filter, const Clock& clock)
      : ImportTarget(settings.cache.directory),
        directory_(std::move(directory)),
        options_(journal_options(settings, filter.size(), directory_->seed().id())),
        filter_(filter),
        clock_(clock),
        journal_(*directory_, options_) {}

  Result<> restore() {
    auto restored = journal_.restore(filter_, clock_.wall(), clock_.steady());
    if (!restored) return restored.error();
    skipped_ = std::move(restored->skipped);
    return {};
  }

  const FingerprintSeed& seed() const noexcept override { return directory_->seed(); }
  const std::vector<std::string>& skipped() const noexcept override { return skipped_; }

 private:
  SnapshotImport take_offered() override {
    SnapshotImport import =
        import_offered(*directory_, filter_, options_.seed_id, options_.previous_rate_max);
    if (import.new_bits == 0) return import;
    if (const auto kept = journal_.keep_previous(filter_, clock_.wall()); !kept)
      note_unkept(import, kept.error());
    return import;
  }

  const std::unique_ptr<CacheDirectory> directory_;
  const SightingJournal::Options options_;
  TwoGenerationFilter& filter_;
  const Clock& clock_;
  SightingJournal journal_;
  std::vector<std::string> skipped_;
};

/// One that holds the directory's lock: asked at its admin listener.
class RunningProxy final : public ImportTarget {
 public:
  RunningProxy(const Settings& settings, ListenAddress admin, const FingerprintSeed& seed)
      : ImportTarget(settings.cache.directory), admin_(std::move(admin)), seed_(seed) {}

  const FingerprintSeed& seed() const noexcept override { return seed_; }
  const std::vector<std::string>& skipped() const noexcept override { return skipped_; }

 private:
  SnapshotImport take_offered() override {
    const AdminAnswer answer =
        post_to_admin(admin_, "/sightings/import", "application/json", "", kPatience);
    const std::string who = "the proxy that uses the directory, asked at " + to_string(admin_);
    if (!answer.failure.empty()) return refuse_import(who + ": " + answer.failure);
    if (auto import = read_snapshot_import(answer.body)) return *std::move(import);
    return refuse_import(who + ", answers " + std::to_string(answer.status) +
                         ": not one that keeps sightings");
  }

  const ListenAddress admin_;
  const FingerprintSeed seed_;
  const std::vector<std::string> skipped_;
};

/// What the proxy could not open, because another user made it, would be of no use to it, and its
/// lock least of all.
std::optional<std::string> explain_user(const std::string& directory) {
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0) {
    const std::error_code error(errno, std::generic_category());
    return error == std::errc::no_such_file_or_directory
               ? "it is not there: make it first, for the user that the proxy runs as"
               : error.message();
  }
  if (status.st_uid == ::geteuid()) return std::nullopt;
  return "it belongs to the user with the number " + std::to_string(status.st_uid) +
         ": import as that user, or the proxy could not read what comes of it";
}

std::string explain_seed(const boost::system::error_code& error) {
  if (error == errc::no_such_file_or_directory) {
    return "it has no seed yet: copy the seed file of the installation that the snapshot is of "
           "(it is a secret), then import again";
  }
  return "its seed: " + (error == errc::bad_message ? "damaged" : error.message());
}

}  // namespace

std::variant<std::unique_ptr<ImportTarget>, ImportTarget::None> ImportTarget::open(
    const Settings& settings, const std::optional<std::string>& admin, MakeSeed make_seed,
    TwoGenerationFilter& filter, const Clock& clock) {
  const std::string& path = settings.cache.directory;
  if (auto reason = explain_user(path)) return None{std::move(*reason)};
  auto seed = FingerprintSeed::load(path);
  const bool may_come = make_seed == MakeSeed::Yes && seed.has_error() &&
                        seed.error() == errc::no_such_file_or_directory;
  if (!seed && !may_come) return None{explain_seed(seed.error())};

  auto directory = std::make_unique<CacheDirectory>(path);
  const auto attached = directory->attach();
  if (attached) {
    auto stopped = std::make_unique<StoppedProxy>(settings, std::move(directory), filter, clock);
    if (const auto restored = stopped->restore(); !restored)
      return None{restored.error().message()};
    return stopped;
  }
  if (attached.error() != errc::device_or_resource_busy) return None{attached.error().message()};
  if (!seed) return None{explain_seed(seed.error())};
  auto address = find_admin(admin, settings.admin);
  if (auto* bad = std::get_if<BadUsage>(&address)) return None{std::move(bad->reason)};
  return std::make_unique<RunningProxy>(settings, std::get<ListenAddress>(std::move(address)),
                                        *seed);
}

SnapshotImport ImportTarget::take(const std::function<Result<>(File&)>& write) {
  const fs::path path = fs::path(path_) / kOfferedSnapshot;
  const auto file = create_file(path);
  if (!file && file.error() == errc::file_exists) {
    return refuse_import(path.string() +
                         " is there: another import is under way, or one was cut off (then remove "
                         "it)");
  }
  if (!file) return refuse_import(path.string() + ": " + file.error().message());
  const auto written = write(**file);
  SnapshotImport import =
      written ? take_offered() : refuse_import(path.string() + ": " + written.error().message());
  std::error_code ignored;  // what stays is told to the next who imports
  fs::remove(path, ignored);
  return import;
}

}  // namespace secondsight::proxy
