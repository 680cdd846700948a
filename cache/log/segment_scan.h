#pragma once
#include <cstdint>

#include "cache/log/segment.h"
#include "cache/log/segment_format.h"
#include "config/result.h"

namespace secondsight::cache::log {

struct SegmentContents {
  Footer footer;
  bool is_sealed = false;  // from a footer; else from a scan
};

/// How many records its footer lists, unverified; 0: it has none. Errors: I/O.
Result<std::uint64_t> count_in_footer(const Segment& segment);

/// What a segment holds: from its footer, or else from a scan of it. Damage is no error, it makes
/// the answer shorter; a record that is damaged behind a good header is listed as a Tombstone (but
/// for a Part, which replaces nothing, and a Purge, of which the header says all that counts).
/// Errors: I/O.
Result<SegmentContents> read_contents(const Segment& segment, std::uint64_t seed_id);

}  // namespace secondsight::cache::log
