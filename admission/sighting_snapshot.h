#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "admission/bloom_math.h"
#include "admission/two_generation_filter.h"
#include "config/clock.h"
#include "config/file_system.h"
#include "config/result.h"

namespace secondsight::admission {

/// The bits of one or two generations of a filter as a file, for a filter of the same size and
/// seed: what an instance hands to another, and what a journal keeps of it. The latest generation
/// first. docs/on-disk-format.md, "Sightings".
struct Snapshot {
  /// What a file says first.
  struct Header {
    static constexpr std::size_t kBytes = 64;
    std::uint64_t seed_id = 0;
    std::uint64_t line_count = 0;
    std::uint64_t keys_per_generation = 0;
    WallTime taken{};
    std::uint32_t generations = 0;  // 1 or 2

    /// Whether a filter of that size under that seed has the same bits for the same key.
    bool fits(std::uint64_t seed, const FilterSize& size) const noexcept {
      return seed_id == seed && line_count == size.line_count;
    }
  };
  Header header;
  /// One set of words each, as TwoGenerationFilter::copy_generation() gives it. Blocks that were
  /// damaged are empty.
  std::vector<std::vector<std::uint64_t>> generations;
  std::uint64_t damaged_bytes = 0;
};

/// Both generations (current first), or `previous` alone.
enum class SnapshotOf : std::uint8_t { Both, Previous };
/// Writes at the front of an empty file; the header last, after a sync, so that what was cut off is
/// no snapshot. Synced. Errors: I/O.
Result<> write_snapshot(File& file, const TwoGenerationFilter& filter, SnapshotOf which,
                        std::uint64_t seed_id, WallTime now);

/// Whether a file says that it is one, of whatever version and however damaged.
bool is_snapshot(const File& file);
/// Errors: bad_message (damaged header, or no snapshot at all), protocol_not_supported (a newer
/// version), I/O.
Result<Snapshot::Header> read_snapshot_header(const File& file);
/// The header and the bits. Errors: those, and value_too_large where the file claims more lines
/// than it has bytes for.
Result<Snapshot> read_snapshot(const File& file);

}  // namespace secondsight::admission
