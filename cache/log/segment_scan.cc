#include "cache/log/segment_scan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "cache/log/segment_walk.h"

namespace secondsight::cache::log {
namespace {

/// What stands for a record with a good header; empty: nothing.
std::optional<RecordKind> kind_to_list(RecordKind kind, Contents contents) noexcept {
  if (contents == Contents::Intact || kind == RecordKind::Purge) return kind;
  if (kind == RecordKind::Part) return std::nullopt;
  return RecordKind::Tombstone;
}

Result<Footer> scan_records(const Segment& segment, std::uint64_t seed_id,
                            std::uint64_t file_bytes) {
  SegmentWindow window(segment.file(), file_bytes, ReadMode::Blocking);
  std::vector<std::byte> front;
  Footer found;
  std::uint64_t offset = kSegmentHeaderBytes;
  while (offset + kRecordHeaderBytes <= file_bytes) {
    const RecordPlace place{seed_id, segment.number(), static_cast<std::uint32_t>(offset)};
    auto bytes = window.at(offset, kRecordHeaderBytes);
    if (!bytes) return bytes.error();
    const auto header = decode_header(*bytes, place);
    const Gap gap = classify_gap(*bytes, header, place, file_bytes);
    if (gap == Gap::End) break;
    if (gap == Gap::Damage) {
      auto next = find_next_header(window, place);
      if (!next) return next.error();
      offset = *next;
      continue;
    }
    auto checked = check_contents(window, *header, place, front);
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

Result<std::uint64_t> count_in_footer(const Segment& segment) {
  const auto size = segment.file().size();
  if (!size) return size.error();
  std::array<std::byte, kFooterTrailerBytes> trailer{};
  if (*size < trailer.size()) return std::uint64_t{0};
  const auto read = segment.file().read_at(*size - trailer.size(), trailer, ReadMode::Blocking);
  if (!read) return read.error();
  const auto length = footer_bytes_in_trailer(trailer);
  if (!length || *length > *size) return std::uint64_t{0};
  return (*length - kFooterTrailerBytes) / kFooterEntryBytes;
}

Result<SegmentContents> read_contents(const Segment& segment, std::uint64_t seed_id) {
  auto size = segment.file().size();
  if (!size) return size.error();
  const std::uint64_t file_bytes =
      std::min<std::uint64_t>(*size, std::numeric_limits<std::uint32_t>::max());
  auto footer =
      read_footer(segment.file(), file_bytes, seed_id, segment.number(), ReadMode::Blocking);
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
