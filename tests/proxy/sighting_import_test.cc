#include "proxy/sighting_import.h"

#include <vector>

#include <gtest/gtest.h>

#include "admission/bloom_math.h"
#include "tests/support/sim_file_system.h"

namespace secondsight::proxy {
namespace {

using admission::FilterSize;
using admission::Fingerprint;
using admission::Generation;
using admission::Sighting;
using admission::Snapshot;
using admission::SnapshotOf;
using admission::TwoGenerationFilter;
using test::SimFileSystem;
using namespace std::chrono_literals;

constexpr std::uint64_t kSeedId = 77;
constexpr FilterSize kSize{.line_count = 4'096, .keys_per_generation = 60'000};
constexpr SteadyTime kStart{};

/// As even as a hash, no more: SplitMix64.
Fingerprint key(std::uint64_t i) {
  std::uint64_t z = (i + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return {z ^ (z >> 31U), 0};
}

double rate_max() {
  return admission::false_positive_rate(kSize.keys_per_line());
}

/// Sighted: [first, end).
void sight(TwoGenerationFilter& filter, std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t i = first; i < end; ++i) filter.sight(key(i));
}

void expect_remembered(const TwoGenerationFilter& filter, std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t i = first; i < end; ++i) ASSERT_EQ(filter.peek(key(i)), Sighting::Repeat) << i;
}

Snapshot snapshot_of(const TwoGenerationFilter& filter, std::uint64_t seed_id = kSeedId) {
  Snapshot snapshot;
  snapshot.header.seed_id = seed_id;
  snapshot.header.line_count = filter.size().line_count;
  snapshot.header.generations = 2;
  for (const Generation which : {Generation::Current, Generation::Previous}) {
    auto& words = snapshot.generations.emplace_back(filter.words_per_generation());
    filter.copy_generation(which, words);
  }
  return snapshot;
}

class SightingImportTest : public ::testing::Test {
 protected:
  TwoGenerationFilter mine{kSize, 1h, kStart};
  TwoGenerationFilter theirs{kSize, 1h, kStart};
};

TEST_F(SightingImportTest, BringsBothGenerationsOnce) {
  sight(theirs, 0, 10'000);
  theirs.rotate_at_once(kStart);
  sight(theirs, 10'000, 20'000);
  sight(mine, 20'000, 30'000);
  const Snapshot snapshot = snapshot_of(theirs);

  const SnapshotImport first = import_snapshot(snapshot, mine, kSeedId, rate_max());
  EXPECT_EQ(first.merged, 2U);
  EXPECT_EQ(first.refused, 0U);
  EXPECT_GT(first.new_bits, 100'000U);
  EXPECT_EQ(first.reason, "");
  EXPECT_FALSE(first.is_busy);
  expect_remembered(mine, 0, 30'000);

  const SnapshotImport again = import_snapshot(snapshot, mine, kSeedId, rate_max());
  EXPECT_EQ(again.merged, 2U);
  EXPECT_EQ(again.new_bits, 0U);
  EXPECT_EQ(again.reason, "");

  mine.rotate_at_once(kStart);
  EXPECT_EQ(mine.peek(key(0)), Sighting::First) << "it was in the older generation";
}

TEST_F(SightingImportTest, RefusesAnotherSeedAndAnotherSize) {
  sight(theirs, 0, 100);
  const SnapshotImport seed = import_snapshot(snapshot_of(theirs, 78), mine, kSeedId, rate_max());
  EXPECT_EQ(seed.merged, 0U);
  EXPECT_EQ(seed.refused, 2U);
  EXPECT_NE(seed.reason.find("seed file"), std::string::npos) << seed.reason;

  TwoGenerationFilter larger({.line_count = 5'000, .keys_per_generation = 60'000}, 1h, kStart);
  const SnapshotImport size = import_snapshot(snapshot_of(larger), mine, kSeedId, rate_max());
  EXPECT_EQ(size.refused, 2U);
  EXPECT_NE(size.reason.find("5000 lines, this one has 4096"), std::string::npos) << size.reason;
  EXPECT_NE(size.reason.find("expected_keys"), std::string::npos) << size.reason;
  EXPECT_EQ(mine.peek(key(0)), Sighting::First);
}

TEST_F(SightingImportTest, KeepsTheLatestGenerationWhereTheOlderIsTooMuch) {
  sight(theirs, 0, 55'000);
  theirs.rotate_at_once(kStart);
  sight(theirs, 55'000, 65'000);
  const Snapshot snapshot = snapshot_of(theirs);
  const SnapshotImport import = import_snapshot(snapshot, mine, kSeedId, rate_max());
  EXPECT_EQ(import.merged, 1U);
  EXPECT_EQ(import.refused, 1U);
  EXPECT_NE(import.reason.find(" % of strangers"), std::string::npos) << import.reason;
  expect_remembered(mine, 55'000, 65'000);
  const auto again = import_snapshot(snapshot, mine, kSeedId, rate_max());
  EXPECT_EQ(again.new_bits, 0U);
  EXPECT_EQ(again.refused, 1U);
}

TEST_F(SightingImportTest, RefusesAUnionThatIsTooFull) {
  sight(mine, 0, 40'000);
  mine.rotate_at_once(kStart);
  sight(theirs, 40'000, 80'000);
  const SnapshotImport import = import_snapshot(snapshot_of(theirs), mine, kSeedId, rate_max());
  EXPECT_EQ(import.merged, 0U);
  EXPECT_EQ(import.refused, 1U) << "the older one is empty";
  EXPECT_TRUE(is_refused(import));
  EXPECT_NE(import.reason.find("with its latest generation"), std::string::npos) << import.reason;
  EXPECT_EQ(import.new_bits, 0U);
}

// What is refused is not made up for by what is older.
TEST_F(SightingImportTest, RefusesWhatIsOlderThanARefusedOne) {
  sight(mine, 0, 40'000);
  mine.rotate_at_once(kStart);
  sight(theirs, 80'000, 80'100);
  theirs.rotate_at_once(kStart);
  sight(theirs, 40'000, 80'000);
  const SnapshotImport import = import_snapshot(snapshot_of(theirs), mine, kSeedId, rate_max());
  EXPECT_EQ(import.merged, 0U);
  EXPECT_EQ(import.refused, 2U);
  EXPECT_EQ(mine.peek(key(80'000)), Sighting::First);
}

TEST_F(SightingImportTest, AnEmptySnapshotIsNeitherMergedNorRefused) {
  const SnapshotImport import = import_snapshot(snapshot_of(theirs), mine, kSeedId, rate_max());
  EXPECT_EQ(import.merged, 0U);
  EXPECT_FALSE(is_refused(import));
}

TEST_F(SightingImportTest, GoesOnWhenASweepIsOver) {
  sight(theirs, 0, 100);
  mine.maintain(kStart + 2h);
  ASSERT_TRUE(mine.sweeping());
  const Snapshot snapshot = snapshot_of(theirs);
  SnapshotImport import = import_snapshot(snapshot, mine, kSeedId, rate_max());
  EXPECT_TRUE(import.is_busy);
  EXPECT_EQ(import.merged, 0U);
  SimFileSystem nothing(1);
  EXPECT_TRUE(import_offered(nothing, mine, kSeedId, rate_max(), import).is_busy);
  for (auto now = kStart + 2h; mine.sweeping(); now += 1s) mine.maintain(now);

  // One that had its first generation merged when a sweep came between.
  import.merged = 1;
  import.looked_at = 1;
  import.new_bits = 5;
  import = import_snapshot(snapshot, mine, kSeedId, rate_max(), std::move(import));
  EXPECT_FALSE(import.is_busy);
  EXPECT_EQ(import.merged, 1U);
  EXPECT_EQ(import.new_bits, 5U) << "the older generation is empty";
  EXPECT_EQ(mine.peek(key(0)), Sighting::First) << "the first was not looked at again";
}

TEST_F(SightingImportTest, TakesWhatIsOfferedInADirectory) {
  SimFileSystem files(1);
  sight(theirs, 0, 5'000);
  const auto import = [&] { return import_offered(files, mine, kSeedId, rate_max()); };
  EXPECT_NE(import().reason.find("sightings-import.bits: "), std::string::npos);
  {
    const auto file = files.create(kOfferedSnapshot);
    ASSERT_TRUE(file);
    ASSERT_TRUE(admission::write_snapshot(**file, theirs, SnapshotOf::Both, kSeedId, WallTime{}));
  }
  const auto whole = files.contents(kOfferedSnapshot);

  files.set_contents(kOfferedSnapshot, {whole.begin(), whole.begin() + 1'000});
  EXPECT_EQ(import().reason, "sightings-import.bits: cut off: it has fewer bytes than it claims");
  files.set_contents(kOfferedSnapshot, {whole.begin(), whole.begin() + 20});
  EXPECT_EQ(import().reason,
            "sightings-import.bits: no snapshot of sightings, or its header is damaged");
  files.set_contents(kOfferedSnapshot, std::vector<std::byte>(whole.size()));
  EXPECT_EQ(import().reason,
            "sightings-import.bits: no snapshot of sightings, or its header is damaged");
  EXPECT_EQ(import().merged, 0U);
  EXPECT_EQ(mine.peek(key(0)), Sighting::First);

  files.set_contents(kOfferedSnapshot, whole);
  EXPECT_EQ(import_offered(files, mine, kSeedId + 1, rate_max()).refused, 1U);
  const SnapshotImport taken = import();
  EXPECT_EQ(taken.merged, 1U);
  EXPECT_GT(taken.new_bits, 30'000U);
  expect_remembered(mine, 0, 5'000);
}

TEST(SnapshotImportAsJson, IsReadBack) {
  SnapshotImport import;
  import.merged = 1;
  import.refused = 1;
  import.new_bits = 1'234'567'890'123;
  import.is_kept = false;
  import.reason = "a \"reason\"";
  const auto back = read_snapshot_import(to_json(import) + "\n");
  ASSERT_TRUE(back);
  EXPECT_EQ(back->merged, import.merged);
  EXPECT_EQ(back->refused, import.refused);
  EXPECT_EQ(back->new_bits, import.new_bits);
  EXPECT_EQ(back->is_kept, import.is_kept);
  EXPECT_EQ(back->reason, import.reason);
  EXPECT_EQ(to_json({}),
            R"({"merged":0,"refused":0,"new_bits":0,"damaged_bytes":0,"kept":true,"reason":""})");
}

TEST(SnapshotImportAsJson, IsNothingElse) {
  for (const char* text :
       {"", "not found\n", "{}", "[]",
        R"({"merged":1,"refused":0,"new_bits":2,"damaged_bytes":0,"kept":true})",
        R"({"merged":-1,"refused":0,"new_bits":2,"damaged_bytes":0,"kept":true,"reason":""})",
        R"({"merged":"1","refused":0,"new_bits":2,"damaged_bytes":0,"kept":true,"reason":""})",
        R"({"merged":1,"refused":0,"new_bits":2,"damaged_bytes":0,"kept":1,"reason":""})"})
    EXPECT_FALSE(read_snapshot_import(text)) << text;
}

TEST(SnapshotImportUnkept, SaysWhy) {
  SnapshotImport import;
  import.merged = 2;
  note_unkept(import, make_error_code(boost::system::errc::no_space_on_device));
  EXPECT_FALSE(import.is_kept);
  EXPECT_NE(import.reason.find("16th of [cache] disk"), std::string::npos) << import.reason;
}

}  // namespace
}  // namespace secondsight::proxy
