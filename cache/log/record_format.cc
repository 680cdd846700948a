#include "cache/log/record_format.h"

#include <algorithm>
#include <memory>
#include <xxhash.h>

#include "config/check.h"
#include "config/encoding.h"

namespace secondsight::cache::log {
namespace {

constexpr std::uint64_t align_up(std::uint64_t bytes) noexcept {
  return (bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
}

std::uint64_t to_disk(WallTime time) noexcept {
  return static_cast<std::uint64_t>(time.time_since_epoch().count());
}
WallTime from_disk(std::uint64_t milliseconds) noexcept {
  return WallTime(WallTime::duration(static_cast<WallTime::rep>(milliseconds)));
}

std::uint64_t body_bytes_of(const RecordView& record) noexcept {
  std::uint64_t bytes = 0;
  for (const auto piece : record.body) bytes += piece.size();
  return bytes;
}

RecordHeader header_of(const RecordView& record) noexcept {
  RecordHeader header;
  header.kind = record.kind;
  header.fingerprint = record.fingerprint;
  header.status = record.status;
  header.times = record.times;
  header.body_bytes = static_cast<std::uint32_t>(body_bytes_of(record));
  header.head_bytes = static_cast<std::uint32_t>(record.head.size());
  header.key_bytes = static_cast<std::uint32_t>(record.key.size());
  header.part_count = static_cast<std::uint32_t>(record.parts.size());
  return header;
}

/// One checksum per block, although blocks and pieces end at different places.
void put_block_checksums(const RecordView& record, const RecordPlace& place, Encoder& encoder) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              &XXH3_freeState);
  CHECK(state != nullptr);
  std::uint32_t block = 0;
  std::size_t filled = 0;
  for (std::span<const std::byte> piece : record.body) {
    while (!piece.empty()) {
      if (filled == 0) XXH3_64bits_reset_withSeed(state.get(), place.block_seed(block));
      const std::size_t take = std::min<std::size_t>(piece.size(), kBlockBytes - filled);
      XXH3_64bits_update(state.get(), piece.data(), take);
      piece = piece.subspan(take);
      filled += take;
      if (filled == kBlockBytes) {
        encoder.put(std::uint64_t{XXH3_64bits_digest(state.get())});
        ++block;
        filled = 0;
      }
    }
  }
  if (filled != 0) encoder.put(std::uint64_t{XXH3_64bits_digest(state.get())});
}

void put_header(const RecordHeader& header, Encoder& encoder) {
  encoder.put(header.fingerprint.high);
  encoder.put(header.fingerprint.low);
  encoder.put(to_disk(header.times.request_sent));
  encoder.put(to_disk(header.times.response_received));
  encoder.put(header.body_bytes);
  encoder.put(header.head_bytes);
  encoder.put(header.key_bytes);
  encoder.put(header.part_count);
  encoder.put(header.status);
  encoder.put(static_cast<std::uint8_t>(header.kind));
  encoder.put(std::uint8_t{0});
}

}  // namespace

std::uint32_t RecordHeader::block_bytes(std::uint32_t block) const noexcept {
  return std::min(kBlockBytes, body_bytes - block * kBlockBytes);
}

std::uint64_t RecordHeader::front_bytes() const noexcept {
  return std::uint64_t{kRecordHeaderBytes} + key_bytes + head_bytes +
         std::uint64_t{part_count} * kPartRefBytes +
         std::uint64_t{block_count()} * kBlockChecksumBytes;
}

std::uint64_t RecordHeader::record_bytes() const noexcept {
  return align_up(front_bytes() + body_bytes);
}

std::uint64_t encoded_bytes(const RecordView& record) noexcept {
  const std::uint64_t body_bytes = body_bytes_of(record);
  const std::uint64_t blocks = (body_bytes + kBlockBytes - 1) / kBlockBytes;
  return align_up(kRecordHeaderBytes + record.key.size() + record.head.size() +
                  record.parts.size() * kPartRefBytes + blocks * kBlockChecksumBytes + body_bytes);
}

void encode_front(const RecordView& record, const RecordPlace& place,
                  std::vector<std::byte>& front) {
  front.clear();
  Encoder encoder(front);
  encoder.put(std::uint64_t{0});  // both checksums follow when what they cover is there
  encoder.put(std::uint64_t{0});
  put_header(header_of(record), encoder);
  encoder.put_text(record.key);
  encoder.put_text(record.head);
  for (const PartRef& part : record.parts) {
    encoder.put(part.record.segment);
    encoder.put(part.record.offset_bytes);
    encoder.put(part.record.length_bytes);
    encoder.put(part.body_bytes);
  }
  put_block_checksums(record, place, encoder);

  const std::span<const std::byte> bytes(front);
  store_little_endian(front.data() + 8,
                      checksum(bytes.subspan(kRecordHeaderBytes), place.front_seed()));
  store_little_endian(front.data(),
                      checksum(bytes.subspan(8, kRecordHeaderBytes - 8), place.header_seed()));
}

std::optional<RecordHeader> decode_header(std::span<const std::byte> bytes,
                                          const RecordPlace& place) noexcept {
  if (bytes.size() < kRecordHeaderBytes) return std::nullopt;
  Decoder decoder(bytes);
  const auto header_checksum = decoder.take<std::uint64_t>();
  if (header_checksum != checksum(bytes.subspan(8, kRecordHeaderBytes - 8), place.header_seed()))
    return std::nullopt;

  RecordHeader header;
  header.front_checksum = decoder.take<std::uint64_t>();
  header.fingerprint.high = decoder.take<std::uint64_t>();
  header.fingerprint.low = decoder.take<std::uint64_t>();
  header.times.request_sent = from_disk(decoder.take<std::uint64_t>());
  header.times.response_received = from_disk(decoder.take<std::uint64_t>());
  header.body_bytes = decoder.take<std::uint32_t>();
  header.head_bytes = decoder.take<std::uint32_t>();
  header.key_bytes = decoder.take<std::uint32_t>();
  header.part_count = decoder.take<std::uint32_t>();
  header.status = decoder.take<std::uint16_t>();
  const auto kind = decoder.take<std::uint8_t>();
  if (kind < static_cast<std::uint8_t>(RecordKind::Object) ||
      kind > static_cast<std::uint8_t>(RecordKind::Purge))
    return std::nullopt;
  header.kind = static_cast<RecordKind>(kind);
  return header;
}

bool front_is_intact(std::span<const std::byte> front, const RecordHeader& header,
                     const RecordPlace& place) noexcept {
  return checksum(front.subspan(kRecordHeaderBytes), place.front_seed()) == header.front_checksum;
}

RecordHead decode_front(std::span<const std::byte> front, const RecordHeader& header) {
  RecordHead head;
  head.kind = header.kind;
  head.fingerprint = header.fingerprint;
  head.status = header.status;
  head.times = header.times;
  head.body_bytes = header.body_bytes;
  Decoder decoder(front.subspan(kRecordHeaderBytes));
  head.key = decoder.take_text(header.key_bytes);
  head.head = decoder.take_text(header.head_bytes);
  head.parts.reserve(header.part_count);
  for (std::uint32_t i = 0; i < header.part_count; ++i) {
    PartRef part;
    part.record.segment = decoder.take<std::uint32_t>();
    part.record.offset_bytes = decoder.take<std::uint32_t>();
    part.record.length_bytes = decoder.take<std::uint32_t>();
    part.body_bytes = decoder.take<std::uint64_t>();
    head.body_bytes += part.body_bytes;
    head.parts.push_back(part);
  }
  return head;
}

bool block_is_intact(std::span<const std::byte> bytes, std::uint32_t block,
                     std::span<const std::byte> front, const RecordHeader& header,
                     const RecordPlace& place) noexcept {
  const std::uint64_t behind = std::uint64_t{header.block_count() - block} * kBlockChecksumBytes;
  const std::byte* expected = front.data() + (header.front_bytes() - behind);
  return checksum(bytes, place.block_seed(block)) == load_little_endian<std::uint64_t>(expected);
}

}  // namespace secondsight::cache::log
