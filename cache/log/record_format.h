#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/log/checksum.h"
#include "cache/log/record.h"

namespace secondsight::cache::log {

inline constexpr std::uint32_t kRecordHeaderBytes = 68;
inline constexpr std::uint32_t kRecordAlignment = 8;  // lets a scan find records behind damage
inline constexpr std::uint32_t kPartRefBytes = 20;
inline constexpr std::uint32_t kBlockBytes = 64 * 1024;  // the unit of body that is verified
inline constexpr std::uint32_t kBlockChecksumBytes = 8;

/// The fixed-size start of a record. Format: docs/on-disk-format.md.
struct RecordHeader {
  RecordKind kind = RecordKind::Object;
  admission::Fingerprint fingerprint{};
  std::uint16_t status = 0;
  policy::ExchangeTimes times{};
  std::uint32_t body_bytes = 0;
  std::uint32_t head_bytes = 0;
  std::uint32_t key_bytes = 0;
  std::uint32_t part_count = 0;
  std::uint64_t front_checksum = 0;

  std::uint32_t block_count() const noexcept {
    return body_bytes / kBlockBytes + (body_bytes % kBlockBytes != 0 ? 1 : 0);
  }
  /// Bytes of body in `block`: 64 KiB, the last one what is left.
  std::uint32_t block_bytes(std::uint32_t block) const noexcept;
  /// Header, key, head, part references, block checksums: all before the body.
  std::uint64_t front_bytes() const noexcept;
  /// The whole record, padding included.
  std::uint64_t record_bytes() const noexcept;
};

/// Bytes that `record` takes on disk, which may be more than a record can have (then it is
/// refused).
std::uint64_t encoded_bytes(const RecordView& record) noexcept;

/// Puts everything before the body into `front` (cleared first), block checksums of the body's
/// pieces included. The record must fit a segment.
void encode_front(const RecordView& record, const RecordPlace& place,
                  std::vector<std::byte>& front);

/// Empty unless the first kRecordHeaderBytes of `bytes` are a header that was written for `place`.
std::optional<RecordHeader> decode_header(std::span<const std::byte> bytes,
                                          const RecordPlace& place) noexcept;

/// Whether key, head, part references and block checksums are as written. `front`: front_bytes()
/// bytes.
bool front_is_intact(std::span<const std::byte> front, const RecordHeader& header,
                     const RecordPlace& place) noexcept;

/// Of an intact front.
RecordHead decode_front(std::span<const std::byte> front, const RecordHeader& header);

/// Whether `bytes` are body block `block` as written, going by an intact front.
bool block_is_intact(std::span<const std::byte> bytes, std::uint32_t block,
                     std::span<const std::byte> front, const RecordHeader& header,
                     const RecordPlace& place) noexcept;

}  // namespace secondsight::cache::log
