#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "cache/log/record_format.h"
#include "cache/log/segment.h"
#include "config/result.h"

namespace secondsight::cache::log {

/// Reads one record and gives out only bytes that were verified. A small record comes with one read
/// and its segment is let go at once; a larger one holds its segment. One thread at a time.
class RecordReader {
 public:
  /// Reads the front and as much of the body as one read brings. Errors: bad_message (damaged),
  /// resource_unavailable_try_again (PageCacheOnly), I/O.
  static Result<RecordReader> open(std::shared_ptr<const Segment> segment, std::uint64_t seed_id,
                                   const Location& location, ReadMode mode);

  const RecordHeader& header() const noexcept { return header_; }
  RecordHead decode_head() const { return decode_front(front(), header_); }

  /// Copies body bytes [offset, offset + out.size()), which must exist. Errors as open(); then
  /// `out` is unspecified.
  Result<> read_body(std::uint64_t offset, std::span<std::byte> out, ReadMode mode);

 private:
  RecordReader() = default;
  std::span<const std::byte> front() const noexcept {
    return {buffer_.get(), header_.front_bytes()};
  }
  Result<> read_at(std::uint64_t offset_in_record, std::span<std::byte> out, ReadMode mode) const;
  Result<> read_front(ReadMode mode);
  Result<> verify_buffered_blocks();
  Result<> read_whole_blocks(std::uint32_t first, std::span<std::byte> out, ReadMode mode) const;
  Result<std::span<const std::byte>> block(std::uint32_t index, ReadMode mode);

  std::shared_ptr<const Segment> segment_;  // null once the whole record is in buffer_
  RecordPlace place_{};
  Location location_{};
  RecordHeader header_{};
  std::unique_ptr<std::byte[]> buffer_;  // the front and the first blocks
  std::size_t buffer_bytes_ = 0;
  std::uint32_t buffered_blocks_ = 0;   // wholly in buffer_, verified
  std::unique_ptr<std::byte[]> block_;  // the last block that was wanted in part, verified
  std::uint32_t block_index_ = 0;       // meaningful while block_ is set
};

}  // namespace secondsight::cache::log
