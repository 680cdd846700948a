#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "admission/sighting_journal.h"
#include "admission/two_generation_filter.h"
#include "config/clock.h"
#include "config/result.h"
#include "config/settings.h"

namespace secondsight::proxy {

/// A file that stands already: whether another takes its place.
enum class Overwrite : std::uint8_t { Never, Replace };

/// Gives `filter`, which is empty, what a proxy with these settings would remember if it started
/// now on the cache directory, whether one is running there or not: changes nothing and takes no
/// lock. A running one's last half second is missing. Errors: those of the directory and its seed.
struct Remembered {
  std::uint64_t seed_id = 0;
  admission::SightingJournal::Restored restored;
};
Result<Remembered> remember(const Settings& settings, admission::TwoGenerationFilter& filter,
                            const Clock& clock);

/// Writes both generations of a filter as a snapshot at `path`, with mode 0600: whole, or not at
/// all. Errors: file_exists, I/O.
Result<> write_snapshot_file(const std::string& path, Overwrite overwrite,
                             const admission::TwoGenerationFilter& filter, std::uint64_t seed_id,
                             WallTime now);

}  // namespace secondsight::proxy
