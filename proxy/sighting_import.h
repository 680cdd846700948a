#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/system/error_code.hpp>

#include "admission/sighting_snapshot.h"
#include "admission/two_generation_filter.h"
#include "config/file_system.h"
#include "config/result.h"

namespace secondsight::proxy {

/// What came of a snapshot that was offered to a filter.
struct SnapshotImport {
  unsigned merged = 0;              // generations whose bits `previous` has now
  unsigned refused = 0;             // generations
  std::uint64_t new_bits = 0;       // that `previous` did not have before
  std::uint64_t damaged_bytes = 0;  // of the snapshot, left out
  bool is_kept = true;              // what was merged outlives the process
  std::string reason;      // why something was refused or is not kept, for people; else empty
  unsigned looked_at = 0;  // generations
  bool is_busy = false;    // a sweep is under way: go on later with this as `so_far`
};

/// Refuses the whole, for a reason.
SnapshotImport refuse_import(std::string reason);

/// What was merged could not be written where a restart would find it.
void note_unkept(SnapshotImport& import, const boost::system::error_code& error);

/// Whether nothing of it was taken, though there was something.
constexpr bool is_refused(const SnapshotImport& import) noexcept {
  return import.merged == 0 && import.refused > 0;
}

/// Merges the generations of `snapshot`, the latest first, into the filter's `previous`, as far as
/// seed, size and `rate_max` (of `previous` alone) allow. Doing it again changes nothing. Any
/// thread but maintain()'s.
SnapshotImport import_snapshot(const admission::Snapshot& snapshot,
                               admission::TwoGenerationFilter& filter, std::uint64_t seed_id,
                               double rate_max, SnapshotImport so_far = {});

/// What an error of admission::read_snapshot() means, for people.
std::string explain_unreadable(const boost::system::error_code& error);

/// Why a filter cannot take what a snapshot has, whatever its bits; empty: it may.
std::optional<std::string> explain_misfit(const admission::Snapshot::Header& header,
                                          std::uint64_t seed_id, const admission::FilterSize& size);

/// Where a running proxy finds the snapshot that POST /sightings/import is about: in its cache
/// directory, whole before it is asked, removed by whoever asked.
inline constexpr std::string_view kOfferedSnapshot = "sightings-import.bits";

/// The same with the snapshot of that file, read anew with each call. Blocks.
SnapshotImport import_offered(FileSystem& files, admission::TwoGenerationFilter& filter,
                              std::uint64_t seed_id, double rate_max, SnapshotImport so_far = {});

/// {"merged": 2, "refused": 0, "new_bits": 1234, "damaged_bytes": 0, "kept": true, "reason": ""}
std::string to_json(const SnapshotImport& import);
/// Empty: the text is none.
std::optional<SnapshotImport> read_snapshot_import(std::string_view json);

}  // namespace secondsight::proxy
