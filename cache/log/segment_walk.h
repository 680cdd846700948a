#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/log/record_format.h"
#include "cache/log/segment_format.h"
#include "config/file_system.h"
#include "config/result.h"

// What reads a segment front to back goes through: how its records are found and judged.
namespace secondsight::cache::log {

/// A segment's file, or its first `end_bytes`, read front to back through a buffer of 1 MiB.
class SegmentWindow {
 public:
  SegmentWindow(const File& file, std::uint64_t end_bytes, ReadMode mode)
      : file_(file), end_bytes_(end_bytes), mode_(mode) {}

  std::uint64_t end_bytes() const noexcept { return end_bytes_; }
  std::uint64_t bytes_read() const noexcept { return bytes_read_; }

  /// The bytes [offset, offset + bytes), fewer at the end; valid until the next call. Errors: I/O.
  Result<std::span<const std::byte>> at(std::uint64_t offset, std::size_t bytes);

 private:
  const File& file_;
  std::uint64_t end_bytes_;
  ReadMode mode_;
  std::uint64_t start_ = 0;
  std::size_t filled_ = 0;
  std::uint64_t bytes_read_ = 0;
  std::vector<std::byte> buffer_;
};

/// What stands where a record is due.
enum class Gap : std::uint8_t {
  None,    // a record
  End,     // zeros: space that was reserved and never written
  Damage,  // neither
};
/// `header`: what decode_header() makes of `header_bytes`.
Gap classify_gap(std::span<const std::byte> header_bytes, const std::optional<RecordHeader>& header,
                 const RecordPlace& place, std::uint64_t end_bytes) noexcept;

/// The next place behind `place` where a good header stands, or the window's end. Errors: I/O.
Result<std::uint64_t> find_next_header(SegmentWindow& window, RecordPlace place);

enum class Contents : std::uint8_t { Intact, FrontDamaged, BodyDamaged };

/// Reads all of one record whose header is good; leaves its front (header to block checksums) in
/// `front`. Errors: I/O.
Result<Contents> check_contents(SegmentWindow& window, const RecordHeader& header,
                                const RecordPlace& place, std::vector<std::byte>& front);

/// Empty: there is none, or it is damaged. Errors: I/O.
Result<std::optional<Footer>> read_footer(const File& file, std::uint64_t file_bytes,
                                          std::uint64_t seed_id, std::uint32_t segment,
                                          ReadMode mode);

}  // namespace secondsight::cache::log
