#include "cache/log/segment_scan.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "cache/log/encoding.h"
#include "cache/log/record_format.h"

namespace secondsight::cache::log {
namespace {

constexpr std::size_t kWindowBytes = 1U << 20;

/// A file read front to back through a buffer.
class Window {
 public:
  Window(const File& file, std::uint64_t file_bytes) : file_(file), file_bytes_(file_bytes) {}

  std::uint64_t file_bytes() const noexcept { return file_bytes_; }

  /// The bytes [offset, offset + bytes), fewer at the end of the file; valid until the next call.
  Result<std::span<const std::byte>> at(std::uint64_t offset, std::size_t bytes) {
    bytes = std::min<std::uint64_t>(bytes, file_bytes_ - std::min(offset, file_bytes_));
    if (offset < start_ || offset + bytes > start_ + filled_) {
      buffer_.resize(std::max(bytes, kWindowBytes));
      auto read = file_.read_at(offset, buffer_, ReadMode::Blocking);
      if (!read) return read.error();
      start_ = offset;
      filled_ = *read;
    }
    const std::size_t in_buffer = offset - start_;
    return std::span<const std::byte>(buffer_).subspan(in_buffer,
                                                       std::min(bytes, filled_ - in_buffer));
  }

 private:
  const File& file_;
  std::uint64_t file_bytes_;
  std::uint64_t start_ = 0;
  std::size_t filled_ = 0;
  std::vector<std::byte> buffer_;
};

Result<std::optional<Footer>> read_footer(const Segment& segment, std::uint64_t seed_id,
                                          std::uint64_t file_bytes) {
  std::optional<Footer> none;
  if (file_bytes < kSegmentHeaderBytes + kFooterTrailerBytes) return none;
  std::vector<std::byte> bytes(kFooterTrailerBytes);
  auto read = segment.file().read_at(file_bytes - bytes.size(), bytes, ReadMode::Blocking);
  if (!read) return read.error();
  const auto length = footer_bytes_in_trailer(bytes);
  if (!length || *length > file_bytes - kSegmentHeaderBytes) return none;
  bytes.resize(*length);
  read = segment.file().read_at(file_bytes - bytes.size(), bytes, ReadMode::Blocking);
  if (!read) return read.error();
  return decode_footer(bytes, seed_id, segment.number());
}

enum class Contents : std::uint8_t { Intact, Damaged };

/// Reads all of one record, whose header is good. Errors: I/O.
Result<Contents> check_contents(Window& window, const RecordHeader& header,
                                const RecordPlace& place) {
  const std::size_t front_bytes = header.front_bytes();
  auto read = window.at(place.offset_bytes, front_bytes);
  if (!read) return read.error();
  if (read->size() != front_bytes || !front_is_intact(*read, header, place))
    return Contents::Damaged;
  const std::vector<std::byte> front(read->begin(), read->end());

  std::uint64_t at = place.offset_bytes + front_bytes;
  for (std::uint32_t i = 0; i < header.block_count(); ++i) {
    auto block = window.at(at, header.block_bytes(i));
    if (!block) return block.error();
    if (block->size() != header.block_bytes(i) || !block_is_intact(*block, i, front, header, place))
      return Contents::Damaged;
    at += block->size();
  }
  return Contents::Intact;
}

/// What stands for a record with a good header; empty: nothing.
std::optional<RecordKind> kind_to_list(RecordKind kind, Contents contents) noexcept {
  if (contents == Contents::Intact || kind == RecordKind::Purge) return kind;
  if (kind == RecordKind::Part) return std::nullopt;
  return RecordKind::Tombstone;
}

/// Why the scan finds no record at a place.
enum class Gap : std::uint8_t { None, End, Damage };

/// Zeros are space that was reserved and never written.
Gap classify(std::span<const std::byte> header_bytes, const std::optional<RecordHeader>& header,
             const RecordPlace& place, std::uint64_t file_bytes) {
  if (header)
    return header->record_bytes() <= file_bytes - place.offset_bytes ? Gap::None : Gap::Damage;
  const bool is_zero = std::all_of(header_bytes.begin(), header_bytes.end(),
                                   [](std::byte b) { return b == std::byte{0}; });
  return is_zero ? Gap::End : Gap::Damage;
}

/// The next place where a good header stands, or the end of the file.
Result<std::uint64_t> find_next_header(Window& window, RecordPlace place) {
  std::uint64_t offset = place.offset_bytes;
  while ((offset += kRecordAlignment) + kRecordHeaderBytes <= window.file_bytes()) {
    auto bytes = window.at(offset, kRecordHeaderBytes);
    if (!bytes) return bytes.error();
    // Most of what is searched are zeros; no checksum is zero (but for one in 2^64).
    if (bytes->size() < kRecordHeaderBytes || load_little_endian<std::uint64_t>(bytes->data()) == 0)
      continue;
    place.offset_bytes = static_cast<std::uint32_t>(offset);
    if (decode_header(*bytes, place)) return offset;
  }
  return window.file_bytes();
}

Result<Footer> scan_records(const Segment& segment, std::uint64_t seed_id,
                            std::uint64_t file_bytes) {
  Window window(segment.file(), file_bytes);
  Footer found;
  std::uint64_t offset = kSegmentHeaderBytes;
  while (offset + kRecordHeaderBytes <= file_bytes) {
    const RecordPlace place{seed_id, segment.number(), static_cast<std::uint32_t>(offset)};
    auto bytes = window.at(offset, kRecordHeaderBytes);
    if (!bytes) return bytes.error();
    const auto header = decode_header(*bytes, place);
    const Gap gap = classify(*bytes, header, place, file_bytes);
    if (gap == Gap::End) break;
    if (gap == Gap::Damage) {
      auto next = find_next_header(window, place);
      if (!next) return next.error();
      offset = *next;
      continue;
    }
    auto checked = check_contents(window, *header, place);
    if (!checked) return checked.error();
    const auto length = static_cast<std::uint32_t>(header->record_bytes());
    if (const auto kind = kind_to_list(header->kind, *checked))
      found.entries.push_back({header->fingerprint, place.offset_bytes, length, *kind});
    offset += length;
    found.records_end_bytes = static_cast<std::uint32_t>(offset);
  }
  return found;
}

}  // namespace

Result<SegmentContents> read_contents(const Segment& segment, std::uint64_t seed_id) {
  auto size = segment.file().size();
  if (!size) return size.error();
  const std::uint64_t file_bytes =
      std::min<std::uint64_t>(*size, std::numeric_limits<std::uint32_t>::max());
  auto footer = read_footer(segment, seed_id, file_bytes);
  if (!footer) return footer.error();
  SegmentContents contents;
  contents.is_sealed = footer->has_value();
  if (contents.is_sealed) {
    contents.footer = std::move(**footer);
    return contents;
  }
  auto scanned = scan_records(segment, seed_id, file_bytes);
  if (!scanned) return scanned.error();
  contents.footer = std::move(*scanned);
  return contents;
}

}  // namespace secondsight::cache::log
