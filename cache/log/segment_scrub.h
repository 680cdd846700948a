#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
/// here. Holds a segment open for one record at a time; one that is reclaimed meanwhile is left.
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
  ScrubbedRecord read(const LoggedRecord& record);

  std::shared_ptr<const SegmentTable> segments_;
  std::uint32_t number_ = 0;           // the segment in hand
  std::vector<LoggedRecord> records_;  // its
  std::size_t next_ = 0;               // of records_
  std::vector<std::byte> body_;        // kept from record to record
};

}  // namespace secondsight::cache::log
