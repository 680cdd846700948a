#include "admission/sighting_format.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "admission/sighting_snapshot.h"
#include "tests/admission/journal_fixture.h"

namespace secondsight::admission {
namespace {

namespace errc = boost::system::errc;
using test::SimFileSystem;

constexpr WallTime kTime{std::chrono::milliseconds{1'796'000'000'123}};

std::string hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0 && i % 8 == 0) text += ' ';
    text += kDigits[std::to_integer<unsigned>(bytes[i]) >> 4U];
    text += kDigits[std::to_integer<unsigned>(bytes[i]) & 15U];
  }
  return text;
}

MarksHeader some_header() {
  MarksHeader header;
  header.seed_id = 0x0123456789ABCDEF;
  header.number = 7;
  header.generation = 6;
  header.started = kTime;
  header.keys_per_generation = 1'000'000;
  header.line_count = 65536;
  return header;
}

// What another build wrote is read by this one: docs/on-disk-format.md.
TEST(SightingFormat, GoldenHeader) {
  EXPECT_EQ(hex(some_header().encode()),
            "326e642d6d61726b 0100000000000000 efcdab8967452301 0700000000000000 "
            "0600000000000000 7b28f129a2010000 40420f0000000000 0000010000000000 "
            "dc0ed61be38922cc");
}

TEST(SightingFormat, GoldenFrame) {
  std::vector<std::byte> bytes;
  const std::array<std::uint64_t, 3> marks{1, 0xFEDCBA9876543210, 42};
  encode_frame({0x0123456789ABCDEF, 7, 72}, kTime, marks, bytes);
  EXPECT_EQ(hex(bytes),
            "22c91a0adb54acfa 6d61726b03000000 7b28f129a2010000 0100000000000000 "
            "1032547698badcfe 2a00000000000000");
}

TEST(SightingFormat, GoldenSnapshotHeader) {
  SimFileSystem files(1);
  const auto file = files.create("out.bits");
  ASSERT_TRUE(file);
  TwoGenerationFilter filter({1000, 1000}, std::chrono::hours{1}, SteadyTime{});
  filter.sight({0x0123456789ABCDEF, 0});
  ASSERT_TRUE(write_snapshot(**file, filter, SnapshotOf::Both, 0x0123456789ABCDEF, kTime));
  const auto bytes = files.contents("out.bits");
  ASSERT_EQ(bytes.size(), 64U + std::size_t{2} * 8193 * 8);
  EXPECT_EQ(hex(std::span(bytes).first(64)),
            "326e642d62697473 0100000002000000 efcdab8967452301 e803000000000000 "
            "e803000000000000 7b28f129a2010000 0000000000000000 b3514c0276648cad");
  // The key's four words, in its line.
  const auto line = FilterAddress::of(0x0123456789ABCDEF, 1000).line;
  EXPECT_EQ(hex(std::span(bytes).subspan(64 + line * 32, 32)),
            "0802000000000000 0040000080000000 0000000000200002 0000000000280000");
  EXPECT_EQ(hex(std::span(bytes).subspan(64 + 8192 * 8, 8)), "12cf6978b1ae59a6");
}

TEST(SightingFormat, NamesOfFiles) {
  EXPECT_EQ(sighting_file_name(SightingFile::Marks, 7), "sightings-0000000007.marks");
  EXPECT_EQ(sighting_file_name(SightingFile::Bits, 12'345'678'901), "sightings-12345678901.bits");
  EXPECT_EQ(number_of(SightingFile::Marks, "sightings-0000000007.marks"), 7U);
  EXPECT_EQ(number_of(SightingFile::Bits, "sightings-12345678901.bits"), 12'345'678'901U);
  for (const std::string_view name :
       {"sightings-0000000007.bits", "sightings-7.marks", "sightings-.marks", "sightings.marks",
        "sightings-000000000x.marks", "sightings--000000007.marks", "00000001.segment",
        "sightings-99999999999999999999999.marks", "xsightings-0000000007.marks", ""}) {
    EXPECT_FALSE(number_of(SightingFile::Marks, name)) << name;
  }
}

TEST(SightingFormat, AHeaderComesBack) {
  const auto bytes = some_header().encode();
  const auto header = MarksHeader::decode(bytes);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->encode(), bytes);
  EXPECT_EQ(header->started, kTime);
}

TEST(SightingFormat, NoChangedHeaderPasses) {
  const auto whole = some_header().encode();
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    auto bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_FALSE(MarksHeader::decode(bytes)) << bit;
  }
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(MarksHeader::decode(std::span(whole).first(size))) << size;
  auto newer = whole;
  newer[8] = std::byte{2};
  EXPECT_EQ(MarksHeader::decode(newer).error(), errc::protocol_not_supported);
}

// A frame at another place, of another file or under another seed is none.
TEST(SightingFormat, AFrameIsBoundToItsPlace) {
  const std::array<std::uint64_t, 2> marks{1, 2};
  struct Row {
    FramePlace place;
    std::uint64_t marks;
  };
  for (const Row& row :
       {Row{{1, 7, 72}, 2}, Row{{1, 7, 80}, 0}, Row{{1, 8, 72}, 0}, Row{{2, 7, 72}, 0}}) {
    SimFileSystem files(1);
    MarksHeader header;
    header.seed_id = 1;
    header.number = 7;
    const auto front = header.encode();
    std::vector<std::byte> bytes(front.begin(), front.end());
    encode_frame(row.place, kTime, marks, bytes);
    files.set_contents("f", bytes);
    const auto file = files.open("f");
    ASSERT_TRUE(file);
    const auto read = read_marks(**file, 1, 7, [](auto) {});
    ASSERT_TRUE(read);
    EXPECT_EQ(read->marks, row.marks);
  }
}

class SnapshotTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 20'000; ++i) filter_.sight(keys_.next());
    const auto file = files_.create("s");
    ASSERT_TRUE(file);
    ASSERT_TRUE(write_snapshot(**file, filter_, SnapshotOf::Both, 1, kTime));
  }
  Result<Snapshot> read() {
    const auto file = files_.open("s");
    if (!file) return file.error();
    return read_snapshot(**file);
  }

  SimFileSystem files_{1};
  test::Keys keys_{1};
  TwoGenerationFilter filter_{{5000, 100'000}, std::chrono::hours{1}, SteadyTime{}};
};

TEST_F(SnapshotTest, BothGenerationsComeBack) {
  const auto snapshot = read();
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->damaged_bytes, 0U);
  ASSERT_EQ(snapshot->generations.size(), 2U);
  std::vector<std::uint64_t> words(filter_.words_per_generation());
  filter_.copy_generation(Generation::Current, words);
  EXPECT_TRUE(snapshot->generations[0] == words);
  filter_.copy_generation(Generation::Previous, words);
  EXPECT_TRUE(snapshot->generations[1] == words);
  EXPECT_TRUE(snapshot->header.fits(1, filter_.size()));
  EXPECT_FALSE(snapshot->header.fits(2, filter_.size()));
  EXPECT_FALSE(snapshot->header.fits(1, {5001, 100'000}));
}

TEST_F(SnapshotTest, ADamagedBlockIsEmptyTheOthersAreThere) {
  const auto whole = read();
  files_.flip_bit("s", (64 + 100) * 8 + 3);
  const auto snapshot = read();
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->damaged_bytes, 8193U * 8);
  const auto& words = snapshot->generations[0];
  EXPECT_EQ(std::count(words.begin(), words.begin() + 8192, 0U), 8192);
  EXPECT_TRUE(std::equal(words.begin() + 8192, words.end(), whole->generations[0].begin() + 8192));
}

TEST_F(SnapshotTest, NoChangedHeaderPasses) {
  const auto whole = files_.contents("s");
  for (std::uint64_t bit = 0; bit < 64 * 8; ++bit) {
    files_.set_contents("s", whole);
    files_.flip_bit("s", bit);
    EXPECT_FALSE(read()) << bit;
  }
}

TEST_F(SnapshotTest, AShortFileIsNoSnapshotOrHasDamage) {
  const auto whole = files_.contents("s");
  for (const std::size_t size : {0U, 63U, 64U, 70'000U, 200'000U}) {
    files_.set_contents("s", {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    const auto snapshot = read();
    EXPECT_TRUE(!snapshot || snapshot->damaged_bytes > 0) << size;
  }
}

// What a header claims is believed only as far as the file has bytes.
TEST_F(SnapshotTest, AClaimBeyondTheFileTakesNoMemory) {
  TwoGenerationFilter large({1'000'000, 100'000}, std::chrono::hours{1}, SteadyTime{});
  const auto file = files_.create("large");
  ASSERT_TRUE(file);
  ASSERT_TRUE(write_snapshot(**file, large, SnapshotOf::Previous, 1, kTime));
  auto bytes = files_.contents("large");
  bytes.resize(100'000);
  files_.set_contents("s", bytes);
  EXPECT_EQ(read().error(), errc::value_too_large);
}

// A power cut while it is written leaves no snapshot or the whole one.
TEST(Snapshot, IsWholeOrNone) {
  TwoGenerationFilter filter({5000, 100'000}, std::chrono::hours{1}, SteadyTime{});
  test::Keys keys(1);
  for (int i = 0; i < 20'000; ++i) filter.sight(keys.next());
  for (std::uint64_t at = 0; at < 30; ++at) {
    SimFileSystem files(at);
    {
      const auto file = files.create("s");
      if (!file) continue;
      ASSERT_TRUE(files.sync_directory());
      files.crash_at(files.operations() + at);
      const auto written = write_snapshot(**file, filter, SnapshotOf::Both, 1, kTime);
      static_cast<void>(written);
    }
    files.power_cycle();
    const auto file = files.open("s");
    if (!file) continue;
    const auto snapshot = read_snapshot(**file);
    EXPECT_TRUE(!snapshot || snapshot->damaged_bytes == 0) << at;
  }
}

}  // namespace
}  // namespace secondsight::admission
