#include "cache/log/segment_format.h"

#include <gtest/gtest.h>

namespace secondsight::cache::log {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

const SegmentHeader kHeader{1, 0x2A, 0x1122334455667788, 262'144};

Footer sample_footer() {
  Footer footer;
  footer.entries = {{{1, 2}, 40, 112, RecordKind::Object},
                    {{0x0102030405060708, 3}, 152, 72, RecordKind::Tombstone}};
  footer.records_end_bytes = 224;
  return footer;
}

TEST(SegmentFormat, FileNames) {
  EXPECT_EQ(segment_file_name(1), "00000001.segment");
  EXPECT_EQ(segment_file_name(0xDEADBEEF), "deadbeef.segment");
  for (const std::uint32_t number : {1U, 0x2AU, 0xFFFFFFFFU})
    EXPECT_EQ(parse_segment_file_name(segment_file_name(number)), number);
  for (const std::string_view other :
       {"", "lock", "seed", "00000000.segment", "0000001.segment", "000000001.segment",
        "0000002A.segment", "0000000g.segment", "00000001.segment~", "x00000001.segment",
        "+0000001.segment", "00000001.Segment"})
    EXPECT_FALSE(parse_segment_file_name(other)) << other;
}

TEST(SegmentFormat, GoldenBytesOfTheHeader) {
  const auto bytes = encode_segment_header(kHeader);
  EXPECT_EQ(hex(bytes),
            "3253494748545347"  // magic
            "01000000"          // version
            "2a000000"          // number
            "8877665544332211"  // seed id
            "00000400"          // segment_bytes
            "00000000"          // zero
            "f5f37d925a57babf");
  const auto header = decode_segment_header(bytes);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->version, 1U);
  EXPECT_EQ(header->number, 0x2AU);
  EXPECT_EQ(header->seed_id, 0x1122334455667788U);
  EXPECT_EQ(header->segment_bytes, 262'144U);
}

TEST(SegmentFormat, GoldenBytesOfTheFooter) {
  const auto bytes = encode_footer(sample_footer(), 0x1122334455667788, 0x2A);
  EXPECT_EQ(hex(bytes),
            "01000000000000000200000000000000280000007000000001"  // entry 0
            "08070605040302010300000000000000980000004800000005"  // entry 1
            "3253494748544654"                                    // magic
            "02000000"                                            // entries
            "e0000000"                                            // end
            "00e1f1dedd40da4b");
  EXPECT_EQ(bytes.size(), footer_bytes(2));
  const auto trailer = std::span(bytes).last(kFooterTrailerBytes);
  EXPECT_EQ(footer_bytes_in_trailer(trailer), bytes.size());
  const auto footer = decode_footer(bytes, 0x1122334455667788, 0x2A);
  ASSERT_TRUE(footer);
  EXPECT_EQ(footer->entries, sample_footer().entries);
  EXPECT_EQ(footer->records_end_bytes, 224U);
}

TEST(SegmentFormat, EveryFlippedBitIsNoticed) {
  const auto header = encode_segment_header(kHeader);
  for (std::size_t bit = 0; bit < header.size() * 8; ++bit) {
    auto damaged = header;
    damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(decode_segment_header(damaged)) << "bit " << bit;
  }
  const auto footer = encode_footer(sample_footer(), 1, 2);
  for (std::size_t bit = 0; bit < footer.size() * 8; ++bit) {
    auto damaged = footer;
    damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(decode_footer(damaged, 1, 2)) << "bit " << bit;
  }
}

TEST(SegmentFormat, AFooterIsBoundToItsSegmentAndSeed) {
  const auto footer = encode_footer(sample_footer(), 1, 2);
  EXPECT_TRUE(decode_footer(footer, 1, 2));
  EXPECT_FALSE(decode_footer(footer, 1, 3));
  EXPECT_FALSE(decode_footer(footer, 2, 2));
}

TEST(SegmentFormat, ShortInputIsRefused) {
  const auto header = encode_segment_header(kHeader);
  for (std::size_t n = 0; n < header.size(); ++n)
    EXPECT_FALSE(decode_segment_header(std::span(header).first(n))) << n;
  const auto footer = encode_footer(sample_footer(), 1, 2);
  for (std::size_t n = 0; n < footer.size(); ++n)
    EXPECT_FALSE(decode_footer(std::span(footer).first(n), 1, 2)) << n;
}

TEST(SegmentFormat, AnEmptyFooterIsOne) {
  const auto bytes = encode_footer({}, 1, 2);
  const auto footer = decode_footer(bytes, 1, 2);
  ASSERT_TRUE(footer);
  EXPECT_TRUE(footer->entries.empty());
  EXPECT_EQ(footer->records_end_bytes, kSegmentHeaderBytes);
}

}  // namespace
}  // namespace secondsight::cache::log
