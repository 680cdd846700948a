#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admission/fingerprint.h"
#include "cache/log/record.h"
#include "config/file_system.h"
#include "config/result.h"

namespace secondsight::cache::log {

/// What a whole and unchanged directory cannot hold.
enum class Damage : std::uint8_t {
  SegmentHeader,  // of a segment whose records are ours
  Footer,         // something stands where one is due, and is none
  FooterEntry,    // the footer and the records disagree
  RecordHeader,   // no record where one was written
  Front,          // key, head, part references or block checksums
  Body,
  Fingerprint,   // of another key than the record's
  PartOfOther,   // where a large object has a part, there is another object's
  PartLength,    // the part is there, with a body of another length
  Unreadable,    // an I/O error
  NewerVersion,  // the segment was written by a newer program
};
std::string_view to_string(Damage) noexcept;

struct DamagedPlace {
  /// As far as it is known: length 0, or offset 0 too when it is the whole segment.
  Location location;
  std::optional<RecordKind> kind;  // empty: not known, or no record
  Damage damage = Damage::Body;
  std::string detail;       // for people; may be empty
  bool is_current = false;  // what a running proxy would find under the record's key
};

struct RecordTally {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
};

/// What verify() found. Counts are whole; lists hold the first kListed.
struct VerifyReport {
  static constexpr std::size_t kListed = 100;
  static constexpr std::size_t kKinds = 8;  // more than there are

  // Files.
  std::uint64_t sealed_segments = 0;
  std::uint64_t unsealed_segments = 0;
  std::uint64_t older_segments = 0;       // of an older format: removed at the next start
  std::uint64_t other_seed_segments = 0;  // likewise
  std::uint64_t newer_segments = 0;       // of a newer format: no start succeeds
  std::uint64_t unknown_segments = 0;     // named as one; nothing in them is ours
  std::uint64_t other_files = 0;
  std::vector<std::string> other_names;

  // Records that are intact, by kind (index: RecordKind).
  std::array<RecordTally, kKinds> kinds{};
  /// Of the objects, large objects and markers: found under their key, outdone by a newer record,
  /// or by a tombstone.
  std::uint64_t current_records = 0, replaced_records = 0, removed_records = 0;
  std::uint64_t parts_of_current = 0;    // part references of current large objects
  std::uint64_t incomplete_objects = 0;  // large ones that lost a part, to reclaim for one
  std::uint64_t dropped_records = 0;     // damaged ones that an earlier start took out already

  std::uint64_t torn_tail_bytes = 0;  // what an unclean stop left behind the last whole record

  std::uint64_t damaged_count = 0;
  std::vector<DamagedPlace> damaged;
  bool is_unreadable = false;  // whether Unreadable or NewerVersion is among them

  std::uint64_t bytes_read = 0;

  bool is_clean() const noexcept { return damaged_count == 0; }
};

/// Reads every record of every segment of that directory and changes nothing. Memory: one footer, a
/// read buffer, and 30 to 90 bytes for each distinct key. Errors: I/O of the directory itself; what
/// goes wrong with a file is in the report.
Result<VerifyReport> verify(FileSystem& files, const admission::FingerprintSeed& seed);

}  // namespace secondsight::cache::log
