#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/log/record.h"
#include "cache/log/record_reader.h"
#include "cache/log/segment.h"
#include "config/result.h"

namespace secondsight::cache::log {

/// Reads one stored object (single record, or large object over its parts). Holds open the segment
/// it is reading from, so that reclaim under a reader is harmless; of a large object that is the
/// part in hand, not all of them, so that a slow client pins one segment only. May outlive the log.
/// One thread at a time.
class ObjectReader {
 public:
  const RecordHead& head() const noexcept { return head_; }
  /// Copies body bytes [offset, offset + out.size()), which must exist, after verifying the
  /// checksum of every block they touch. Errors: resource_unavailable_try_again (PageCacheOnly,
  /// call again on a disk thread), bad_message (damaged), no_such_file_or_directory (a part was
  /// reclaimed), I/O. After an error `out` is unspecified and must not be given out.
  Result<> read_body(std::uint64_t offset, std::span<std::byte> out, ReadMode mode);

 private:
  friend class ObjectLog;
  ObjectReader() = default;
  static Result<std::unique_ptr<ObjectReader>> open(std::shared_ptr<const SegmentTable> table,
                                                    const Location& location, ReadMode mode);
  Result<> check_parts_exist() const;
  Result<> open_part(std::size_t index, ReadMode mode);

  RecordHead head_;
  std::shared_ptr<const SegmentTable> table_;
  std::optional<RecordReader> record_;          // the object's own, or the part in hand
  std::optional<std::size_t> part_;             // which part that is
  std::vector<std::uint64_t> part_ends_bytes_;  // where in the body each part ends
};

}  // namespace secondsight::cache::log
