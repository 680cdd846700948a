#include "cache/log/segment_format.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "cache/log/checksum.h"
#include "config/encoding.h"

namespace secondsight::cache::log {
namespace {

constexpr std::string_view kSegmentMagic = "2SIGHTSG";
constexpr std::string_view kFooterMagic = "2SIGHTFT";
constexpr std::string_view kFileSuffix = ".segment";
constexpr std::size_t kNumberDigits = 8;

std::uint64_t footer_seed(std::uint64_t seed_id, std::uint32_t segment) noexcept {
  return RecordPlace{seed_id, segment, std::numeric_limits<std::uint32_t>::max()}.header_seed();
}

}  // namespace

std::string segment_file_name(std::uint32_t number) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name(kNumberDigits, '0');
  for (std::size_t i = kNumberDigits; i-- > 0; number >>= 4) name[i] = kDigits[number & 0xF];
  name += kFileSuffix;
  return name;
}

std::optional<std::uint32_t> parse_segment_file_name(std::string_view name) noexcept {
  if (name.size() != kNumberDigits + kFileSuffix.size() || !name.ends_with(kFileSuffix))
    return std::nullopt;
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const std::string_view digits = name.substr(0, kNumberDigits);
  if (!std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  std::uint32_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  if (number == 0) return std::nullopt;
  return number;
}

std::vector<std::byte> encode_segment_header(const SegmentHeader& header) {
  std::vector<std::byte> bytes;
  bytes.reserve(kSegmentHeaderBytes);
  Encoder encoder(bytes);
  encoder.put_text(kSegmentMagic);
  encoder.put(header.version);
  encoder.put(header.number);
  encoder.put(header.seed_id);
  encoder.put(header.segment_bytes);
  encoder.put(std::uint32_t{0});
  encoder.put(checksum(bytes, 0));
  return bytes;
}

std::optional<SegmentHeader> decode_segment_header(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < kSegmentHeaderBytes) return std::nullopt;
  Decoder decoder(bytes);
  if (decoder.take_text(kSegmentMagic.size()) != kSegmentMagic) return std::nullopt;
  SegmentHeader header;
  header.version = decoder.take<std::uint32_t>();
  header.number = decoder.take<std::uint32_t>();
  header.seed_id = decoder.take<std::uint64_t>();
  header.segment_bytes = decoder.take<std::uint32_t>();
  decoder.take<std::uint32_t>();
  if (decoder.take<std::uint64_t>() != checksum(bytes.first(kSegmentHeaderBytes - 8), 0))
    return std::nullopt;
  return header;
}

std::vector<std::byte> encode_footer(const Footer& footer, std::uint64_t seed_id,
                                     std::uint32_t segment) {
  std::vector<std::byte> bytes;
  bytes.reserve(footer_bytes(footer.entries.size()));
  Encoder encoder(bytes);
  for (const FooterEntry& entry : footer.entries) {
    encoder.put(entry.fingerprint.high);
    encoder.put(entry.fingerprint.low);
    encoder.put(entry.offset_bytes);
    encoder.put(entry.length_bytes);
    encoder.put(static_cast<std::uint8_t>(entry.kind));
  }
  encoder.put_text(kFooterMagic);
  encoder.put(static_cast<std::uint32_t>(footer.entries.size()));
  encoder.put(footer.records_end_bytes);
  encoder.put(checksum(bytes, footer_seed(seed_id, segment)));
  return bytes;
}

std::optional<std::uint64_t> footer_bytes_in_trailer(std::span<const std::byte> trailer) noexcept {
  if (trailer.size() != kFooterTrailerBytes) return std::nullopt;
  Decoder decoder(trailer);
  if (decoder.take_text(kFooterMagic.size()) != kFooterMagic) return std::nullopt;
  return footer_bytes(decoder.take<std::uint32_t>());
}

std::optional<Footer> decode_footer(std::span<const std::byte> bytes, std::uint64_t seed_id,
                                    std::uint32_t segment) {
  if (bytes.size() < kFooterTrailerBytes) return std::nullopt;
  const auto trailer = bytes.last(kFooterTrailerBytes);
  if (footer_bytes_in_trailer(trailer) != bytes.size()) return std::nullopt;
  const auto expected = load_little_endian<std::uint64_t>(bytes.data() + bytes.size() - 8);
  if (checksum(bytes.first(bytes.size() - 8), footer_seed(seed_id, segment)) != expected)
    return std::nullopt;

  Footer footer;
  footer.records_end_bytes = load_little_endian<std::uint32_t>(trailer.data() + 12);
  Decoder decoder(bytes);
  footer.entries.resize((bytes.size() - kFooterTrailerBytes) / kFooterEntryBytes);
  for (FooterEntry& entry : footer.entries) {
    entry.fingerprint.high = decoder.take<std::uint64_t>();
    entry.fingerprint.low = decoder.take<std::uint64_t>();
    entry.offset_bytes = decoder.take<std::uint32_t>();
    entry.length_bytes = decoder.take<std::uint32_t>();
    entry.kind = static_cast<RecordKind>(decoder.take<std::uint8_t>());
  }
  return footer;
}

}  // namespace secondsight::cache::log
