#include "cache/log/record_format.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "config/encoding.h"
#include "tests/cache/log/log_fixture.h"

namespace secondsight::cache::log {
namespace {

using test::body_of;

std::string hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

const RecordPlace kPlace{0x1122334455667788, 7, 40};

struct Sample {
  Sample() {
    view.kind = RecordKind::Object;
    view.fingerprint = {0x0102030405060708, 0x1112131415161718};
    view.status = 203;
    view.times = {WallTime(std::chrono::milliseconds(1'700'000'000'123)),
                  WallTime(std::chrono::milliseconds(-2))};
    view.key = "http://a/";
    view.head = "OK\r\nETag: \"x\"\r\n";
    view.body = {&piece, 1};
  }
  std::string text = "hello";
  std::span<const std::byte> piece = std::as_bytes(std::span(text));
  RecordView view;
};

TEST(RecordFormat, GoldenBytesOfAnObject) {
  const Sample sample;
  std::vector<std::byte> front;
  encode_front(sample.view, kPlace, front);
  EXPECT_EQ(hex(front),
            "ecb12553a3a3761f"                  // header checksum
            "e6649d8babdf528d"                  // front checksum
            "08070605040302011817161514131211"  // fingerprint
            "7b68e5cf8b010000"                  // request sent
            "feffffffffffffff"                  // response received
            "05000000"                          // body
            "0f000000"                          // head
            "09000000"                          // key
            "00000000"                          // parts
            "cb00"                              // status
            "0100"                              // kind, zero
            "687474703a2f2f612f"                // key
            "4f4b0d0a455461673a202278220d0a"    // head
            "080c24f7a233efe4");
  EXPECT_EQ(encoded_bytes(sample.view), 112U);
}

TEST(RecordFormat, GoldenBytesOfALargeObject) {
  Sample sample;
  const PartRef parts[] = {{{1, 40, 4096}, 4000}, {{2, 48, 1024}, 0x1'0000'0001}};
  sample.view.kind = RecordKind::LargeObject;
  sample.view.parts = parts;
  sample.view.body = {};
  std::vector<std::byte> front;
  encode_front(sample.view, kPlace, front);
  EXPECT_EQ(hex(front),
            "90597308cc613247"                          // header checksum
            "652637626efd4b3b"                          // front checksum
            "08070605040302011817161514131211"          // fingerprint
            "7b68e5cf8b010000"                          // request sent
            "feffffffffffffff"                          // response received
            "00000000"                                  // body
            "0f000000"                                  // head
            "09000000"                                  // key
            "02000000"                                  // parts
            "cb00"                                      // status
            "0300"                                      // kind, zero
            "687474703a2f2f612f"                        // key
            "4f4b0d0a455461673a202278220d0a"            // head
            "010000002800000000100000a00f000000000000"  // part 0
            "0200000030000000000400000100000001000000");
  const auto header = decode_header(front, kPlace);
  ASSERT_TRUE(header);
  ASSERT_TRUE(front_is_intact(front, *header, kPlace));
  const RecordHead head = decode_front(front, *header);
  ASSERT_EQ(head.parts.size(), 2U);
  EXPECT_EQ(head.parts[1].record, (Location{2, 48, 1024}));
  EXPECT_EQ(head.parts[1].body_bytes, 0x1'0000'0001U);
  EXPECT_EQ(head.body_bytes, 4000U + 0x1'0000'0001U);
}

/// What the store writes of each: a part has no key and no head, a tombstone nothing at all.
TEST(RecordFormat, GoldenBytesOfEveryOtherKind) {
  struct Row {
    RecordKind kind;
    const char* key;
    const char* head;
    const char* body;
    const char* checksums;  // of the header, of the front
    const char* lengths;    // body, head, key
    const char* kind_byte;
    const char* behind;  // the header
    std::uint64_t record_bytes;
  };
  for (const Row& row : {
           Row{RecordKind::Part, "", "", "hello", "968b516755b3a5a62a5dbbfaa532b89d",
               "050000000000000000000000", "02", "080c24f7a233efe4", 88},
           Row{RecordKind::VaryMarker, "http://a/", "OK\r\n", "",
               "00a7fea7e4809c48f9b1f8f83ce5e84e", "000000000400000009000000", "04",
               "687474703a2f2f612f4f4b0d0a", 88},
           Row{RecordKind::Tombstone, "", "", "", "f27969ecd070d6f968b687cb50aeb383",
               "000000000000000000000000", "05", "", 72},
           Row{RecordKind::Purge, "tag x", "", "", "b96246be2a96ae4c1ee7456d21855e22",
               "000000000000000005000000", "06", "7461672078", 80},
       }) {
    Sample sample;
    sample.text = row.body;
    sample.piece = std::as_bytes(std::span(sample.text));
    sample.view.kind = row.kind;
    sample.view.key = row.key;
    sample.view.head = row.head;
    if (sample.text.empty()) sample.view.body = {};
    std::vector<std::byte> front;
    encode_front(sample.view, kPlace, front);
    EXPECT_EQ(hex(front), std::string(row.checksums) + "08070605040302011817161514131211" +
                              "7b68e5cf8b010000" + "feffffffffffffff" + row.lengths + "00000000" +
                              "cb00" + row.kind_byte + "00" + row.behind);
    EXPECT_EQ(encoded_bytes(sample.view), row.record_bytes);
  }
}

TEST(RecordFormat, DecodesWhatWasEncoded) {
  const Sample sample;
  std::vector<std::byte> front;
  encode_front(sample.view, kPlace, front);
  const auto header = decode_header(front, kPlace);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->front_bytes(), front.size());
  EXPECT_EQ(header->record_bytes(), encoded_bytes(sample.view));
  ASSERT_TRUE(front_is_intact(front, *header, kPlace));
  const RecordHead head = decode_front(front, *header);
  EXPECT_EQ(head.kind, sample.view.kind);
  EXPECT_EQ(head.fingerprint, sample.view.fingerprint);
  EXPECT_EQ(head.status, 203);
  EXPECT_EQ(head.times.request_sent, sample.view.times.request_sent);
  EXPECT_EQ(head.times.response_received, sample.view.times.response_received);
  EXPECT_EQ(head.key, sample.view.key);
  EXPECT_EQ(head.head, sample.view.head);
  EXPECT_EQ(head.body_bytes, 5U);
  EXPECT_TRUE(block_is_intact(sample.piece, 0, front, *header, kPlace));
}

TEST(RecordFormat, NothingVerifiesAtAnotherPlace) {
  const Sample sample;
  std::vector<std::byte> front;
  encode_front(sample.view, kPlace, front);
  const auto header = decode_header(front, kPlace);
  ASSERT_TRUE(header);
  for (const RecordPlace& other :
       {RecordPlace{kPlace.seed_id + 1, 7, 40}, RecordPlace{kPlace.seed_id, 8, 40},
        RecordPlace{kPlace.seed_id, 7, 48}}) {
    EXPECT_FALSE(decode_header(front, other));
    EXPECT_FALSE(front_is_intact(front, *header, other));
    EXPECT_FALSE(block_is_intact(sample.piece, 0, front, *header, other));
  }
}

TEST(RecordFormat, EveryFlippedBitOfTheFrontIsNoticed) {
  const Sample sample;
  std::vector<std::byte> front;
  encode_front(sample.view, kPlace, front);
  for (std::size_t bit = 0; bit < front.size() * 8; ++bit) {
    auto damaged = front;
    damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto header = decode_header(damaged, kPlace);
    EXPECT_FALSE(header && front_is_intact(damaged, *header, kPlace)) << "bit " << bit;
  }
}

TEST(RecordFormat, ShortInputIsNoHeader) {
  const Sample sample;
  std::vector<std::byte> front;
  encode_front(sample.view, kPlace, front);
  for (std::size_t n = 0; n < kRecordHeaderBytes; ++n)
    EXPECT_FALSE(decode_header(std::span(front).first(n), kPlace)) << n;
}

TEST(RecordFormat, AnUnknownKindIsNoHeader) {
  for (const unsigned kind : {0U, 7U, 255U}) {
    Sample sample;
    sample.view.kind = static_cast<RecordKind>(kind);
    std::vector<std::byte> front;
    encode_front(sample.view, kPlace, front);
    EXPECT_FALSE(decode_header(front, kPlace)) << kind;
  }
}

/// So that no block stands in for another, even where somebody makes up a front.
TEST(RecordFormat, EqualBlocksHaveChecksumsOfTheirOwn) {
  Sample sample;
  const std::vector<std::byte> body(std::size_t{3} * kBlockBytes);
  const std::span<const std::byte> whole(body);
  sample.view.body = {&whole, 1};
  std::vector<std::byte> front;
  encode_front(sample.view, kPlace, front);
  std::set<std::string> checksums;
  for (std::size_t i = 1; i <= 3; ++i) checksums.insert(hex(std::span(front).last(8 * i).first(8)));
  EXPECT_EQ(checksums.size(), 3U);
}

TEST(RecordFormat, BlockChecksumsDoNotDependOnHowTheBodyIsCut) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{kBlockBytes} - 1, std::size_t{kBlockBytes},
        std::size_t{kBlockBytes} + 1, std::size_t{3} * kBlockBytes + 17}) {
    const auto body = body_of(1, 1, bytes);
    Sample sample;
    const std::span<const std::byte> whole(body);
    sample.view.body = {&whole, 1};
    std::vector<std::byte> expected;
    encode_front(sample.view, kPlace, expected);
    for (const std::size_t cut : {std::size_t{1'000}, std::size_t{kBlockBytes} / 2 + 3,
                                  std::size_t{kBlockBytes}, std::size_t{200'000}}) {
      std::vector<std::span<const std::byte>> pieces;
      for (std::size_t at = 0; at < body.size(); at += cut)
        pieces.push_back(whole.subspan(at, std::min(cut, body.size() - at)));
      pieces.emplace_back();
      sample.view.body = pieces;
      std::vector<std::byte> front;
      encode_front(sample.view, kPlace, front);
      EXPECT_EQ(front, expected) << bytes << " bytes cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace secondsight::cache::log
