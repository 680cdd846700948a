#include "proxy/body_decoder.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace secondsight::proxy {
namespace {

using Outcome = BodyDecoder::Outcome;

struct Decoded {
  Outcome outcome = Outcome::NeedMore;
  std::string body;
  std::size_t taken = 0;
};

/// Lets the decoder see `text` in two pieces, as a session does: what it has not taken comes again.
Decoded decode(BodyDecoder decoder, std::string_view text, std::size_t cut) {
  Decoded decoded;
  for (const std::size_t end : {cut, text.size()}) {
    for (;;) {
      const std::string_view rest = text.substr(decoded.taken, end - decoded.taken);
      const auto step = decoder.next(std::as_bytes(std::span(rest)));
      decoded.taken += step.taken;
      decoded.outcome = step.outcome;
      for (const std::byte b : step.data) decoded.body += static_cast<char>(b);
      if (step.outcome != Outcome::Data) break;
    }
    if (decoded.outcome != Outcome::NeedMore) break;
  }
  return decoded;
}

BodyDecoder chunked(std::uint64_t body_max = 1000, std::uint64_t trailer_max = 40) {
  BodyDecoder decoder;
  decoder.start_chunked(body_max, trailer_max);
  return decoder;
}

TEST(BodyDecoder, CountsALength) {
  BodyDecoder decoder;
  decoder.start_length(5);
  EXPECT_EQ(decoder.remaining(), 5u);
  for (std::size_t cut = 0; cut <= 8; ++cut) {
    const Decoded decoded = decode(decoder, "helloGET", cut);
    EXPECT_EQ(decoded.outcome, Outcome::End);
    EXPECT_EQ(decoded.body, "hello");
    EXPECT_EQ(decoded.taken, 5u);
  }
  decoder.start_length(0);
  EXPECT_TRUE(decoder.done());
}

TEST(BodyDecoder, ReadsChunksInAnyPieces) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"0\r\n\r\n", ""},
      {"5\r\nhello\r\n0\r\n\r\n", "hello"},
      {"5\r\nhello\r\n00a\r\n, \r\n\r\nworl\r\n1;x=y\r\nd\r\n000\r\n\r\n", "hello, \r\n\r\nworld"},
      {"A;a=\"b c\";d\r\n0123456789\r\n0;e\r\nX-Sum: 1\r\nY:\r\n\r\n", "0123456789"},
      {"0000000000000001\r\nx\r\n0\r\n\r\n", "x"},
  };
  for (const auto& [text, body] : cases) {
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      const Decoded decoded = decode(chunked(), text + "GET /", cut);
      EXPECT_EQ(decoded.outcome, Outcome::End) << text << cut;
      EXPECT_EQ(decoded.body, body);
      EXPECT_EQ(decoded.taken, text.size());
    }
    // Without its last byte the body is not over.
    EXPECT_EQ(decode(chunked(), text.substr(0, text.size() - 1), 0).outcome, Outcome::NeedMore);
  }
}

TEST(BodyDecoder, RefusesBadChunks) {
  const std::vector<std::string> cases{
      "\r\n",
      "x\r\n",
      "0x5\r\nhello\r\n",
      "+5\r\nhello\r\n",
      "-5\r\nhello\r\n",
      " 5\r\nhello\r\n",
      "5 \r\nhello\r\n",
      "5 ;a\r\nhello\r\n",
      "5\nhello\r\n",
      "5\rhello\r\n",
      "5\r\r\nhello\r\n",
      ";a\r\nhello\r\n",
      "5;a\nb\r\nhello\r\n",
      std::string("5;a\0\r\nhello\r\n", 13),
      "5;a\rb\r\nhello\r\n",
      "00000000000000005\r\nhello\r\n",
      "5\r\nhello0\r\n\r\n",
      "5\r\nhello\n0\r\n\r\n",
      "5\r\nhello\r0\r\n\r\n",
      "0\r\n\n",
      "0\r\n\rX",
      "0\r\n folded\r\n\r\n",
      "0\r\nno colon\r\n\r\n",
      "0\r\n: empty\r\n\r\n",
      "0\r\nA: b\nC: d\r\n\r\n",
      std::string("0\r\nA: \0\r\n\r\n", 11),
      "0\r\nA: b\rC\r\n\r\n",
  };
  for (const std::string& text : cases) {
    for (std::size_t cut = 0; cut <= text.size(); ++cut)
      EXPECT_EQ(decode(chunked(), text, cut).outcome, Outcome::Failed)
          << ::testing::PrintToString(text) << cut;
  }
}

TEST(BodyDecoder, BoundsBodyExtensionsAndTrailers) {
  const auto fault = [](BodyDecoder decoder, std::string_view text) {
    for (;;) {
      const auto step = decoder.next(std::as_bytes(std::span(text)));
      text.remove_prefix(step.taken);
      if (step.outcome == Outcome::Failed) return word_of(decoder.fault());
      if (step.outcome != Outcome::Data) return std::string_view("none");
    }
  };
  EXPECT_EQ(fault(chunked(5), "5\r\nhello\r\n0\r\n\r\n"), "none");
  EXPECT_EQ(fault(chunked(5), "6\r\nhello!\r\n"), "body-too-large");
  EXPECT_EQ(fault(chunked(5), "5\r\nhello\r\n1\r\n!\r\n"), "body-too-large");
  EXPECT_EQ(fault(chunked(5), "ffffffffffffffff\r\n"), "body-too-large");
  EXPECT_EQ(fault(chunked(5, 40), "1;" + std::string(41, 'x') + "\r\n"), "chunk");
  EXPECT_EQ(fault(chunked(5, 40),
                  "1;" + std::string(30, 'x') + "\r\na\r\n1;" + std::string(30, 'x') + "\r\nb\r\n"),
            "chunk");
  EXPECT_EQ(fault(chunked(5, 40), "0\r\nA: " + std::string(37, 'x') + "\r\n\r\n"), "none");
  EXPECT_EQ(fault(chunked(5, 40), "0\r\nA: " + std::string(38, 'x') + "\r\n\r\n"),
            "header-too-large");
}

}  // namespace
}  // namespace secondsight::proxy
