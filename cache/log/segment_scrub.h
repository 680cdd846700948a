#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/log/object_log.h"
#include "cache/log/segment.h"
#include "config/result.h"

namespace secondsight::cache::log {

/// What was read of one record.
struct ScrubbedRecord {
  LoggedRecord record;
  std::uint64_t bytes = 0;           // read; 0: it could not be looked at, and nothing is known
  boost::system::error_code damage;  // bad_message, io_error; none: every checksum is right
};

/// Goes through the sealed segments of a running log, oldest first and again and again, and reads
/// their records from the device: no page that others need makes room for one that is read only
/// here. Small records come with one read for many. A segment is held open during a read and no
/// longer; one that is reclaimed meanwhile is left.
/// One thread, beside the log's own.
class SegmentScrub {
 public:
  explicit SegmentScrub(std::shared_ptr<const SegmentTable> segments)
      : segments_(std::move(segments)) {}

  /// The next record. Empty: that was the last one of this round, and the next call begins another.
  std::optional<ScrubbedRecord> next();
  /// Segments below this number are gone for good.
  std::uint32_t oldest_segment() const { return segments_->next_after(0); }

 private:
  bool find_segment();
  ScrubbedRecord check(const LoggedRecord& record);
  Result<std::span<const std::byte>> read(const Location& at);
  Result<std::span<const std::byte>> read_at_least(const Location& at, std::size_t bytes);

  std::shared_ptr<const SegmentTable> segments_;
  std::uint32_t number_ = 0;           // the segment in hand
  std::vector<LoggedRecord> records_;  // its
  std::size_t next_ = 0;               // of records_
  std::vector<std::byte> buffer_;      // the segment's bytes from buffer_at_ on
  std::uint64_t buffer_at_ = 0;
};

}  // namespace secondsight::cache::log
