#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/log/record.h"

namespace secondsight::cache::log {

inline constexpr std::uint32_t kFormatVersion = 2;
inline constexpr std::uint32_t kSegmentHeaderBytes = 40;
inline constexpr std::uint32_t kFooterEntryBytes = 25;
inline constexpr std::uint32_t kFooterTrailerBytes = 24;

/// "0000002a.segment".
std::string segment_file_name(std::uint32_t number);
/// Empty for any other file's name.
std::optional<std::uint32_t> parse_segment_file_name(std::string_view name) noexcept;

/// The first bytes of a segment; laid out the same in every version.
struct SegmentHeader {
  std::uint32_t version = kFormatVersion;
  std::uint32_t number = 0;
  std::uint64_t seed_id = 0;
  std::uint32_t segment_bytes = 0;
};
std::vector<std::byte> encode_segment_header(const SegmentHeader& header);
/// Empty when damaged.
std::optional<SegmentHeader> decode_segment_header(std::span<const std::byte> bytes) noexcept;

/// One record of a segment, as its footer lists it.
struct FooterEntry {
  admission::Fingerprint fingerprint{};
  std::uint32_t offset_bytes = 0;
  std::uint32_t length_bytes = 0;
  RecordKind kind = RecordKind::Object;
  friend bool operator==(const FooterEntry&, const FooterEntry&) = default;
};

/// What a segment holds, in the order it was appended.
struct Footer {
  std::vector<FooterEntry> entries;
  std::uint32_t records_end_bytes = kSegmentHeaderBytes;  // offset behind the last record
};

constexpr std::uint64_t footer_bytes(std::uint64_t entry_count) noexcept {
  return entry_count * kFooterEntryBytes + kFooterTrailerBytes;
}
std::vector<std::byte> encode_footer(const Footer& footer, std::uint64_t seed_id,
                                     std::uint32_t segment);
/// How long the footer is whose trailer (the file's last kFooterTrailerBytes) this is; empty: none.
std::optional<std::uint64_t> footer_bytes_in_trailer(std::span<const std::byte> trailer) noexcept;
/// From all its bytes. Empty when damaged, or when written for another place.
std::optional<Footer> decode_footer(std::span<const std::byte> bytes, std::uint64_t seed_id,
                                    std::uint32_t segment);

}  // namespace secondsight::cache::log
