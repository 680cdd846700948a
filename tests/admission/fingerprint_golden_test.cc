#include <string>
#include <unordered_set>

#include <gtest/gtest.h>

#include "admission/fingerprint.h"
#include "admission/two_generation_filter.h"

namespace secondsight::admission {
namespace {

FingerprintSeed counting_seed() {
  FingerprintSeed::Bytes bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  return FingerprintSeed(bytes);
}

// These values are on users' disks: journals, index snapshots and segment footers hold them. If one
// changes, every format that stores a fingerprint needs a new version.
TEST(FingerprintGolden, ValuesOfOneSeedNeverChange) {
  const FingerprintSeed seed = counting_seed();
  struct Case {
    std::string key;
    Fingerprint expected;
  };
  const std::vector<Case> cases{
      {"", {0x51FF867E424BB5F5U, 0x43DB5BB2756287EBU}},
      {"a", {0x87ACDE3D4E68FF88U, 0x1B824FA8F643EAE4U}},
      {"http://example.org/", {0xADA0E2D00113B730U, 0x415F744F7A2E80F5U}},
      {"https://example.org/images/logo.png?v=3", {0x79C5AC736749AB6EU, 0xD3C085FFD99FBAF8U}},
      {std::string(127, 'x'), {0x36640BD3D25F5041U, 0x8B01FF00710933AEU}},
      {std::string(240, 'x'), {0xC1942749F3D59299U, 0xAF048A094224E0DBU}},
      {std::string(241, 'x'), {0x88FA7D0CE75612BCU, 0x083E5A5FD6D5CFFCU}},
      {std::string(5000, 'x'), {0x50C626D3299EE5E4U, 0x52C22D068C478968U}},
  };
  for (const Case& c : cases) {
    const Fingerprint got = seed.fingerprint_of(c.key);
    EXPECT_EQ(got, c.expected) << c.key.size() << " bytes: {0x" << std::hex << got.high << ", 0x"
                               << got.low << "}";
  }
}

TEST(FingerprintGolden, SeedIdNeverChanges) {
  EXPECT_EQ(counting_seed().id(), 0x10A3E80A6F0A5110U);
}

TEST(FingerprintGolden, FilterAddressNeverChanges) {
  struct Case {
    std::uint64_t hash;
    std::uint64_t line_count;
    FilterAddress expected;
  };
  const std::vector<Case> cases{
      {0, 32768, {0, {0x1U, 0x1U, 0x1U, 0x1U}}},
      {1, 32768, {0, {0x8800000000U, 0x200000020000000U, 0x400000800000U, 0x2000000000000400U}}},
      {0x0123456789ABCDEFU,
       32768,
       {145, {0x208U, 0x8000004000U, 0x200200000000000U, 0x280000000000U}}},
      {0xFEDCBA9876543210U,
       2162688,
       {2153076, {0x280000U, 0x40080000U, 0x400800000000U, 0x800080U}}},
      {~std::uint64_t{0},
       2162688,
       {2162687, {0x11000000U, 0x400000040U, 0x10000020000U, 0x20000000000004U}}},
  };
  for (const Case& c : cases) {
    const FilterAddress got = FilterAddress::of(c.hash, c.line_count);
    EXPECT_EQ(got.line, c.expected.line) << std::hex << c.hash;
    EXPECT_EQ(got.masks, c.expected.masks)
        << std::hex << "{0x" << got.masks[0] << ", 0x" << got.masks[1] << ", 0x" << got.masks[2]
        << ", 0x" << got.masks[3] << "} line " << std::dec << got.line;
  }
}

// One number for very many: another way to compute an address (by vector instructions, say) has to
// give the same.
TEST(FingerprintGolden, AMillionFilterAddressesNeverChange) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
  std::uint64_t hash = 0;
  std::uint64_t digest = 0;
  const auto take = [&digest](std::uint64_t value) { digest = (digest ^ value) * kOdd; };
  for (int i = 0; i < 1'000'000; ++i) {
    hash += 0xD1B54A32D192ED03U;
    const FilterAddress address = FilterAddress::of(hash, 2'162'688);
    take(address.line);
    for (const std::uint64_t mask : address.masks) take(mask);
    digest ^= digest >> 29U;
  }
  EXPECT_EQ(digest, 0x4612F4475C55D8CAU) << std::hex << digest;
}

TEST(Fingerprint, AnotherSeedGivesAnotherFingerprintAndId) {
  FingerprintSeed::Bytes bytes{};
  const FingerprintSeed zero(bytes);
  bytes[31] = std::byte{1};
  const FingerprintSeed one(bytes);
  EXPECT_NE(zero.fingerprint_of("key").high, one.fingerprint_of("key").high);
  EXPECT_NE(zero.fingerprint_of("key").low, one.fingerprint_of("key").low);
  EXPECT_NE(zero.id(), one.id());
}

TEST(Fingerprint, RandomSeedsDiffer) {
  std::unordered_set<std::uint64_t> ids;
  for (int i = 0; i < 100; ++i) {
    const Result<FingerprintSeed> seed = FingerprintSeed::random();
    ASSERT_TRUE(seed.has_value());
    ids.insert(seed->id());
  }
  EXPECT_EQ(ids.size(), 100U);
}

}  // namespace
}  // namespace secondsight::admission
