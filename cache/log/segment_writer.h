#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/log/record.h"
#include "cache/log/segment.h"
#include "cache/log/segment_format.h"
#include "config/result.h"

namespace secondsight::cache::log {

/// Appends to one fresh segment. start -> [append | sync]*; then write_footer() seals it. One
/// thread.
class SegmentWriter {
 public:
  /// Reserves the file's space and writes the segment header. Errors: no_space_on_device, I/O.
  static Result<std::unique_ptr<SegmentWriter>> start(std::shared_ptr<Segment> segment,
                                                      std::uint64_t seed_id);

  /// Whether a record of that size fits, with room left for the footer.
  bool fits(std::uint64_t record_bytes) const noexcept;
  /// The largest record that fits.
  std::uint64_t room_bytes() const noexcept;
  /// The record must fit. After an error what the segment holds from there on is unknown: end it.
  Result<Location> append(const RecordView& record);
  /// After an error nothing that was appended since the last sync is sure: let go of the segment.
  Result<> sync();
  const std::shared_ptr<Segment>& segment() const noexcept { return segment_; }
  bool has_unsynced() const noexcept { return has_unsynced_; }
  const Footer& contents() const noexcept { return contents_; }

 private:
  SegmentWriter(std::shared_ptr<Segment> segment, std::uint64_t seed_id) noexcept;

  std::shared_ptr<Segment> segment_;
  std::uint64_t seed_id_;
  Footer contents_;
  bool has_unsynced_ = false;
  std::vector<std::byte> front_;                    // kept from record to record
  std::vector<std::span<const std::byte>> pieces_;  // likewise
};

/// Writes the footer at the segment's end. The records are to be synced before, so that a footer
/// never lists what was lost. Returns its length; 0: it could not be written, so that the segment
/// is scanned when the log is opened, as it is when a power cut takes the footer.
std::uint64_t write_footer(Segment& segment, std::uint64_t seed_id, const Footer& contents);

}  // namespace secondsight::cache::log
