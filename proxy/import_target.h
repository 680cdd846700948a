#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "admission/fingerprint.h"
#include "admission/two_generation_filter.h"
#include "config/clock.h"
#include "config/file_system.h"
#include "config/result.h"
#include "config/settings.h"
#include "proxy/sighting_import.h"

namespace secondsight::proxy {

/// Whose sightings are added to: those of a proxy that is running on the cache directory, or those
/// that the next one to start there will find. The one way in for both is a snapshot that lies in
/// the directory (kOfferedSnapshot) while it is taken.
class ImportTarget {
 public:
  /// Why there is none, for people.
  struct None {
    std::string reason;
  };
  /// Takes the directory's lock, or finds that a proxy has it. `filter`: as the settings want it,
  /// empty, this object's; a stopped proxy's sightings go there. `makes_seed`: a directory without
  /// a seed gets one. `admin`: where a running proxy is asked, if not as the settings say. All
  /// outlive it.
  enum class MakeSeed : std::uint8_t { No, Yes };
  static std::variant<std::unique_ptr<ImportTarget>, None> open(
      const Settings& settings, const std::optional<std::string>& admin, MakeSeed make_seed,
      admission::TwoGenerationFilter& filter, const Clock& clock);
  virtual ~ImportTarget() = default;

  virtual const admission::FingerprintSeed& seed() const noexcept = 0;
  /// Files of the journal that could not be used, with the reason.
  virtual const std::vector<std::string>& skipped() const noexcept = 0;
  /// Has `write` fill a new file, and the proxy take that. Errors are refusals.
  SnapshotImport take(const std::function<Result<>(File&)>& write);

 protected:
  explicit ImportTarget(std::string directory) : path_(std::move(directory)) {}
  /// The offered snapshot lies there, whole.
  virtual SnapshotImport take_offered() = 0;

 private:
  const std::string path_;
};

}  // namespace secondsight::proxy
