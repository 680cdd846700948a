#include "cache/log/segment_walk.h"

#include <algorithm>

#include "config/encoding.h"

namespace secondsight::cache::log {
namespace {

constexpr std::size_t kWindowBytes = 1U << 20;

}  // namespace

Result<std::span<const std::byte>> SegmentWindow::at(std::uint64_t offset, std::size_t bytes) {
  bytes = std::min<std::uint64_t>(bytes, end_bytes_ - std::min(offset, end_bytes_));
  if (offset < start_ || offset + bytes > start_ + filled_) {
    buffer_.resize(std::max(bytes, kWindowBytes));
    auto read = file_.read_at(offset, buffer_, mode_);
    if (!read) return read.error();
    start_ = offset;
    filled_ = *read;
    bytes_read_ += *read;
  }
  const std::size_t in_buffer = offset - start_;
  return std::span<const std::byte>(buffer_).subspan(in_buffer,
                                                     std::min(bytes, filled_ - in_buffer));
}

Gap classify_gap(std::span<const std::byte> header_bytes, const std::optional<RecordHeader>& header,
                 const RecordPlace& place, std::uint64_t end_bytes) noexcept {
  if (header)
    return header->record_bytes() <= end_bytes - place.offset_bytes ? Gap::None : Gap::Damage;
  const bool is_zero = std::all_of(header_bytes.begin(), header_bytes.end(),
                                   [](std::byte b) { return b == std::byte{0}; });
  return is_zero ? Gap::End : Gap::Damage;
}

Result<std::uint64_t> find_next_header(SegmentWindow& window, RecordPlace place) {
  std::uint64_t offset = place.offset_bytes;
  while ((offset += kRecordAlignment) + kRecordHeaderBytes <= window.end_bytes()) {
    auto bytes = window.at(offset, kRecordHeaderBytes);
    if (!bytes) return bytes.error();
    // Most of what is searched are zeros; no checksum is zero (but for one in 2^64).
    if (bytes->size() < kRecordHeaderBytes || load_little_endian<std::uint64_t>(bytes->data()) == 0)
      continue;
    place.offset_bytes = static_cast<std::uint32_t>(offset);
    if (decode_header(*bytes, place)) return offset;
  }
  return window.end_bytes();
}

Result<Contents> check_contents(SegmentWindow& window, const RecordHeader& header,
                                const RecordPlace& place, std::vector<std::byte>& front) {
  const std::size_t front_bytes = header.front_bytes();
  auto read = window.at(place.offset_bytes, front_bytes);
  if (!read) return read.error();
  if (read->size() != front_bytes || !front_is_intact(*read, header, place))
    return Contents::FrontDamaged;
  front.assign(read->begin(), read->end());

  std::uint64_t at = place.offset_bytes + front_bytes;
  for (std::uint32_t i = 0; i < header.block_count(); ++i) {
    auto block = window.at(at, header.block_bytes(i));
    if (!block) return block.error();
    if (block->size() != header.block_bytes(i) || !block_is_intact(*block, i, front, header, place))
      return Contents::BodyDamaged;
    at += block->size();
  }
  return Contents::Intact;
}

Result<std::optional<Footer>> read_footer(const File& file, std::uint64_t file_bytes,
                                          std::uint64_t seed_id, std::uint32_t segment,
                                          ReadMode mode) {
  std::optional<Footer> none;
  if (file_bytes < kSegmentHeaderBytes + kFooterTrailerBytes) return none;
  std::vector<std::byte> bytes(kFooterTrailerBytes);
  auto read = file.read_at(file_bytes - bytes.size(), bytes, mode);
  if (!read) return read.error();
  const auto length = footer_bytes_in_trailer(bytes);
  if (!length || *length > file_bytes - kSegmentHeaderBytes) return none;
  bytes.resize(*length);
  read = file.read_at(file_bytes - bytes.size(), bytes, mode);
  if (!read) return read.error();
  return decode_footer(bytes, seed_id, segment);
}

}  // namespace secondsight::cache::log
