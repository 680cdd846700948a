#include "cache/log/verify.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cache/log/object_log.h"
#include "cache/log/record_format.h"
#include "cache/log/segment_format.h"
#include "tests/cache/log/log_fixture.h"
#include "tests/support/sim_file_system.h"

namespace secondsight::cache::log {
namespace {

using test::ignore_reclaimed;
using test::ignore_recovered;
using test::SimFileSystem;

constexpr std::uint32_t kSegmentBytes = 512 * 1024;
constexpr std::uint64_t kSegments = 8;
const admission::FingerprintSeed kSeed{admission::FingerprintSeed::Bytes{}};

std::size_t index_of(RecordKind kind) {
  return static_cast<std::size_t>(kind);
}

/// A log on a simulated disk, closed before it is verified.
class Verify : public ::testing::Test {
 protected:
  Verify() { open(); }

  void open(std::uint64_t seed_id = kSeed.id(), std::uint64_t seal_bytes = 0) {
    auto opened = ObjectLog::open(disk_,
                                  {.capacity_bytes = kSegments * kSegmentBytes,
                                   .segment_bytes = kSegmentBytes,
                                   .seed_id = seed_id,
                                   .seal_bytes = seal_bytes},
                                  ignore_recovered);
    ASSERT_TRUE(opened) << opened.error().message();
    log_ = std::move(*opened);
  }
  void close() {
    EXPECT_OK(log_->close());
    log_.reset();
  }

  Location append(const std::string& key, std::size_t body_bytes,
                  RecordKind kind = RecordKind::Object, std::span<const PartRef> parts = {}) {
    const auto body = test::body_of(kSeed.fingerprint_of(key).low, ++version_, body_bytes);
    const std::span<const std::byte> piece(body);
    RecordView view;
    view.kind = kind;
    view.fingerprint = kSeed.fingerprint_of(key);
    view.status = 200;
    if (kind != RecordKind::Part && kind != RecordKind::Tombstone) {
      view.key = key;
      view.head = "OK\r\n";
    }
    if (!body.empty()) view.body = {&piece, 1};
    view.parts = parts;
    const auto at = log_->append(view, ignore_reclaimed);
    EXPECT_TRUE(at) << at.error().message();
    return at ? *at : Location{};
  }
  /// A body in two parts, and the record that names them.
  Location append_large(const std::string& key, std::size_t part_bytes) {
    const std::vector<PartRef> parts = {{append(key, part_bytes, RecordKind::Part), part_bytes},
                                        {append(key, part_bytes, RecordKind::Part), part_bytes}};
    return append(key, 0, RecordKind::LargeObject, parts);
  }

  VerifyReport verify() {
    auto report = log::verify(disk_, kSeed);
    EXPECT_TRUE(report) << report.error().message();
    return report ? std::move(*report) : VerifyReport{};
  }
  void flip(std::uint32_t segment, std::uint64_t offset) {
    disk_.flip_bit(segment_file_name(segment), offset * 8 + 3);
  }
  void flip(const Location& at, std::uint64_t offset_in_record) {
    flip(at.segment, at.offset_bytes + offset_in_record);
  }
  /// Every byte of every file, to see that nothing is changed.
  std::map<std::string, std::vector<std::byte>> all_contents() {
    std::map<std::string, std::vector<std::byte>> all;
    for (const std::string& name : *disk_.list()) all[name] = disk_.contents(name);
    return all;
  }

  SimFileSystem disk_{1};
  std::unique_ptr<ObjectLog> log_;
  std::uint64_t version_ = 0;
};

std::string words(const VerifyReport& report) {
  std::string text;
  for (const DamagedPlace& place : report.damaged) {
    text += std::to_string(place.location.segment) + "+" +
            std::to_string(place.location.offset_bytes) + " " +
            std::string(to_string(place.damage)) + " " + place.detail + "\n";
  }
  return text;
}

/// The one place that is damaged.
DamagedPlace only_damage(const VerifyReport& report) {
  EXPECT_EQ(report.damaged_count, 1U) << words(report);
  return report.damaged.empty() ? DamagedPlace{} : report.damaged.front();
}

TEST_F(Verify, AnEmptyDirectoryIsClean) {
  log_.reset();
  const auto report = verify();
  EXPECT_TRUE(report.is_clean());
  EXPECT_EQ(report.sealed_segments + report.unsealed_segments, 0U);
}

TEST_F(Verify, CountsWhatIsThereAndChangesNothing) {
  append("a", 100);
  append("a", 200);
  append("b", 100'000);
  append("gone", 50);
  append("gone", 0, RecordKind::Tombstone);
  append("v", 0, RecordKind::VaryMarker);
  append_large("large", 70'000);
  append_large("large", 80'000);
  append("never", 0, RecordKind::Tombstone);
  close();
  disk_.set_contents("journal", {});
  const auto before = all_contents();

  const auto report = verify();
  EXPECT_TRUE(report.is_clean()) << words(report);
  EXPECT_EQ(report.sealed_segments, 1U);
  EXPECT_EQ(report.unsealed_segments, 0U);
  EXPECT_EQ(report.kinds[index_of(RecordKind::Object)].records, 4U);
  EXPECT_EQ(report.kinds[index_of(RecordKind::Part)].records, 4U);
  EXPECT_EQ(report.kinds[index_of(RecordKind::LargeObject)].records, 2U);
  EXPECT_EQ(report.kinds[index_of(RecordKind::VaryMarker)].records, 1U);
  EXPECT_EQ(report.kinds[index_of(RecordKind::Tombstone)].records, 2U);
  EXPECT_EQ(report.kinds[index_of(RecordKind::Tombstone)].bytes, 144U);
  EXPECT_GT(report.kinds[index_of(RecordKind::Part)].bytes, 300'000U);
  EXPECT_EQ(report.current_records, 4U);   // a, b, v, large
  EXPECT_EQ(report.replaced_records, 2U);  // a, large
  EXPECT_EQ(report.removed_records, 1U);
  EXPECT_EQ(report.parts_of_current, 2U);
  EXPECT_EQ(report.torn_tail_bytes, 0U);
  EXPECT_EQ(report.other_names, std::vector<std::string>{"journal"});
  EXPECT_GT(report.bytes_read, 400'000U);
  EXPECT_EQ(all_contents(), before);
}

TEST_F(Verify, EveryByteOfARecordIsChecked) {
  append("before", 100);
  const auto at = append("key", 70'000);  // two blocks
  append("behind", 100);
  close();
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> offsets = {0, 8, 16, 68, 71, 74, 83, 90, 65'000, 69'999};
  for (int i = 0; i < 40; ++i) offsets.push_back(random() % (at.length_bytes - 8));
  for (const std::uint64_t offset : offsets) {
    SCOPED_TRACE("byte " + std::to_string(offset) + " of the record");
    flip(at, offset);
    const auto report = verify();
    const auto found = only_damage(report);
    EXPECT_EQ(found.location, at);
    EXPECT_EQ(found.kind, RecordKind::Object);
    EXPECT_TRUE(found.is_current);
    const std::uint64_t front_end = 68 + 3 + 4 + 16;
    const Damage expected = offset < 68          ? Damage::RecordHeader
                            : offset < front_end ? Damage::Front
                                                 : Damage::Body;
    EXPECT_EQ(found.damage, expected) << to_string(found.damage);
    EXPECT_EQ(report.kinds[index_of(RecordKind::Object)].records, 2U);
    flip(at, offset);
  }
  EXPECT_TRUE(verify().is_clean());
}

TEST_F(Verify, SaysWhetherWhatIsDamagedWouldBeFound) {
  const auto old = append("key", 100);
  append("key", 100);
  close();
  flip(old, 95);
  EXPECT_FALSE(only_damage(verify()).is_current);
}

TEST_F(Verify, AHeaderThatWasZeroedHidesNothingBehindIt) {
  const auto at = append("a", 100);
  append("b", 100);
  close();
  const auto name = segment_file_name(at.segment);
  auto bytes = disk_.contents(name);
  std::fill_n(bytes.begin() + at.offset_bytes, at.length_bytes, std::byte{0});
  disk_.set_contents(name, bytes);
  const auto report = verify();
  EXPECT_EQ(only_damage(report).location, at);
  EXPECT_EQ(report.kinds[index_of(RecordKind::Object)].records, 1U);
}

TEST_F(Verify, AKeyMustHaveTheRecordsFingerprint) {
  RecordView view;
  view.fingerprint = kSeed.fingerprint_of("one");
  view.key = "another";
  const auto at = log_->append(view, ignore_reclaimed);
  ASSERT_TRUE(at);
  close();
  const auto found = only_damage(verify());
  EXPECT_EQ(found.damage, Damage::Fingerprint);
  EXPECT_EQ(found.location, *at);
}

TEST_F(Verify, PartsMustBeTheObjectsOwnAtTheirLength) {
  const auto part = append("key", 1'000, RecordKind::Part);
  const auto stranger = append("other", 1'000, RecordKind::Part);
  const auto marker = append("key", 1'000, RecordKind::VaryMarker);
  Location longer = part;
  longer.length_bytes += 8;
  const struct {
    PartRef part;
    Damage damage;
  } table[] = {
      {{part, 999}, Damage::PartLength},
      {{longer, 1'000}, Damage::PartLength},
      {{stranger, 1'000}, Damage::PartOfOther},
      {{marker, 1'000}, Damage::PartOfOther},
  };
  std::vector<Location> places;
  for (const auto& row : table)
    places.push_back(append("key", 0, RecordKind::LargeObject, {&row.part, 1}));
  close();
  const auto report = verify();
  ASSERT_EQ(report.damaged_count, std::size(table)) << words(report);
  for (std::size_t i = 0; i < std::size(table); ++i) {
    EXPECT_EQ(report.damaged[i].damage, table[i].damage) << i;
    EXPECT_EQ(report.damaged[i].location, places[i]) << i;
  }
}

/// A power cut may take them and leave the object.
TEST_F(Verify, PartsThatAreNowhereAreNoDamage) {
  Location nowhere = append("key", 1'000, RecordKind::Part);
  nowhere.offset_bytes += 8;
  for (const PartRef& part : {PartRef{nowhere, 1'000}, PartRef{{1, 400'000, 96}, 9}})
    append("key", 0, RecordKind::LargeObject, {&part, 1});
  close();
  const auto report = verify();
  EXPECT_TRUE(report.is_clean()) << words(report);
  EXPECT_EQ(report.incomplete_objects, 2U);
}

TEST_F(Verify, APartThatWasReclaimedIsNoDamage) {
  const auto part = append("key", 100'000, RecordKind::Part);
  while (append("fill", 100'000).segment == part.segment) {
  }
  const PartRef reference{part, 100'000};
  append("key", 0, RecordKind::LargeObject, {&reference, 1});
  close();
  ASSERT_TRUE(disk_.remove(segment_file_name(part.segment)));
  const auto report = verify();
  EXPECT_TRUE(report.is_clean()) << words(report);
  EXPECT_EQ(report.incomplete_objects, 1U);
}

TEST_F(Verify, AnUnsealedSegmentIsNoDamage) {
  append("a", 100);
  append("b", 70'000);
  log_.reset();  // killed
  const auto report = verify();
  EXPECT_TRUE(report.is_clean()) << words(report);
  EXPECT_EQ(report.unsealed_segments, 1U);
  EXPECT_EQ(report.current_records, 2U);
  EXPECT_EQ(report.torn_tail_bytes, 0U);
}

TEST_F(Verify, ACleanCloseHoldsThroughAPowerCut) {
  log_.reset();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimFileSystem disk(seed);
    auto log = ObjectLog::open(disk,
                               {.capacity_bytes = kSegments * kSegmentBytes,
                                .segment_bytes = kSegmentBytes,
                                .seed_id = kSeed.id()},
                               ignore_recovered);
    ASSERT_TRUE(log);
    RecordView view;
    view.key = "a";
    view.fingerprint = kSeed.fingerprint_of(view.key);
    ASSERT_TRUE((*log)->append(view, ignore_reclaimed));
    EXPECT_OK((*log)->close());
    log = make_error_code(boost::system::errc::io_error);
    disk.power_cycle();
    const auto report = log::verify(disk, kSeed);
    ASSERT_TRUE(report);
    EXPECT_EQ(report->sealed_segments, 1U) << "seed " << seed;
  }
}

TEST_F(Verify, ATornTailIsNoDamage) {
  const auto whole = append("a", 100);
  const auto torn = append("b", 70'000);
  log_.reset();
  const auto name = segment_file_name(whole.segment);
  const auto bytes = disk_.contents(name);
  for (const std::uint64_t kept : {8U, 60U, 68U, 80U, 200U, 65'000U, 70'000U}) {
    SCOPED_TRACE(std::to_string(kept) + " bytes of the last record");
    auto cut = bytes;
    std::fill(cut.begin() + torn.offset_bytes + static_cast<std::ptrdiff_t>(kept), cut.end(),
              std::byte{0});
    disk_.set_contents(name, cut);
    const auto report = verify();
    EXPECT_TRUE(report.is_clean()) << words(report);
    EXPECT_GT(report.torn_tail_bytes, 0U);
    EXPECT_LE(report.torn_tail_bytes, kept);
    EXPECT_EQ(report.current_records, 1U);
  }
}

TEST_F(Verify, DamageBeforeAWholeRecordIsNoTornTail) {
  const auto damaged = append("a", 100);
  append("b", 100);
  log_.reset();
  flip(damaged, 95);
  EXPECT_EQ(only_damage(verify()).location, damaged);
}

TEST_F(Verify, WhatAnEarlierStartDroppedIsNoDamage) {
  const auto damaged = append("a", 100);
  const auto part = append("p", 100, RecordKind::Part);
  append("b", 100);
  log_.reset();
  flip(damaged, 95);
  flip(part, 95);
  open();  // scans, and seals
  close();
  const auto report = verify();
  EXPECT_TRUE(report.is_clean()) << words(report);
  EXPECT_EQ(report.dropped_records, 2U);
  EXPECT_EQ(report.current_records, 1U);
}

TEST_F(Verify, APurgeHoldsByItsHeader) {
  const auto purge = append("p", 0, RecordKind::Purge);
  append("b", 100);
  log_.reset();
  flip(purge, 70);
  open();
  close();
  EXPECT_TRUE(verify().is_clean());
  flip(purge, 20);
  EXPECT_EQ(only_damage(verify()).damage, Damage::RecordHeader);
}

TEST_F(Verify, AFooterThatDisagreesIsNamed) {
  const auto first = append("a", 100);
  const auto second = append("b", 100);
  close();
  const auto name = segment_file_name(first.segment);
  const auto seal_again = [&](const Footer& footer) {
    auto bytes = disk_.contents(name);
    std::fill(bytes.end() - 200, bytes.end(), std::byte{0});
    const auto sealed = encode_footer(footer, kSeed.id(), first.segment);
    std::copy(sealed.begin(), sealed.end(),
              bytes.end() - static_cast<std::ptrdiff_t>(sealed.size()));
    disk_.set_contents(name, bytes);
  };
  Footer footer;
  footer.entries = {
      {kSeed.fingerprint_of("a"), first.offset_bytes, first.length_bytes, RecordKind::Object},
      {kSeed.fingerprint_of("b"), second.offset_bytes, second.length_bytes, RecordKind::Object}};
  footer.records_end_bytes = second.offset_bytes + second.length_bytes;
  seal_again(footer);
  ASSERT_TRUE(verify().is_clean());

  Footer wrong = footer;
  wrong.entries[1].fingerprint.low ^= 1;
  seal_again(wrong);
  EXPECT_EQ(only_damage(verify()).damage, Damage::FooterEntry);

  wrong = footer;
  wrong.entries.erase(wrong.entries.begin());
  seal_again(wrong);
  EXPECT_EQ(only_damage(verify()).location, first);

  wrong = footer;
  wrong.entries[1].kind = RecordKind::VaryMarker;
  seal_again(wrong);
  EXPECT_EQ(only_damage(verify()).location, second);
}

TEST_F(Verify, EveryByteOfAFooterIsChecked) {
  const auto at = append("a", 100);
  close();
  const std::uint64_t footer_at = kSegmentBytes - footer_bytes(1);
  for (std::uint64_t offset = footer_at; offset < kSegmentBytes; ++offset) {
    flip(at.segment, offset);
    const auto report = verify();
    EXPECT_EQ(only_damage(report).damage, Damage::Footer) << offset;
    EXPECT_EQ(report.current_records, 1U);
    flip(at.segment, offset);
  }
}

TEST_F(Verify, EveryByteOfASegmentHeaderIsChecked) {
  const auto at = append("a", 100);
  close();
  for (std::uint64_t offset = 0; offset < kSegmentHeaderBytes; ++offset) {
    flip(at.segment, offset);
    const auto report = verify();
    EXPECT_EQ(only_damage(report).damage, Damage::SegmentHeader) << offset;
    EXPECT_EQ(report.current_records, 1U);
    flip(at.segment, offset);
  }
}

TEST_F(Verify, SegmentsOfOthersAreCountedAndLeftAlone) {
  append("a", 100);
  close();
  const auto put_header = [&](std::uint32_t number, std::uint32_t version, std::uint64_t seed_id) {
    auto bytes = encode_segment_header({version, number, seed_id, kSegmentBytes});
    bytes.resize(kSegmentBytes, std::byte{0x55});
    disk_.set_contents(segment_file_name(number), bytes);
  };
  put_header(10, kFormatVersion - 1, kSeed.id());
  put_header(11, kFormatVersion, kSeed.id() + 1);
  disk_.set_contents(segment_file_name(12), std::vector<std::byte>(5'000, std::byte{0x77}));
  auto report = verify();
  EXPECT_TRUE(report.is_clean()) << words(report);
  EXPECT_EQ(report.sealed_segments, 1U);
  EXPECT_EQ(report.older_segments, 1U);
  EXPECT_EQ(report.other_seed_segments, 1U);
  EXPECT_EQ(report.unknown_segments, 1U);

  put_header(13, kFormatVersion + 1, kSeed.id());
  report = verify();
  EXPECT_EQ(only_damage(report).damage, Damage::NewerVersion);
  EXPECT_TRUE(report.is_unreadable);
}

TEST_F(Verify, AnErrorOfTheDiskIsReportedAndTheRestIsRead) {
  const auto first = append("a", 100);
  while (append("fill", 100'000).segment == first.segment) {
  }
  close();
  const auto before = disk_.operations();
  const auto whole = verify();
  ASSERT_TRUE(whole.is_clean());
  const auto operations = disk_.operations() - before;
  ASSERT_GT(operations, 8U);
  for (std::uint64_t n = 1; n < operations; ++n) {  // 0: the listing
    disk_.fail_operation(disk_.operations() + n, boost::system::errc::io_error);
    const auto report = verify();
    EXPECT_EQ(only_damage(report).damage, Damage::Unreadable) << n;
    EXPECT_TRUE(report.is_unreadable) << n;
    EXPECT_GT(report.current_records, 0U) << n;
  }
  disk_.fail_operation(disk_.operations(), boost::system::errc::io_error);
  EXPECT_FALSE(log::verify(disk_, kSeed));
}

TEST_F(Verify, TheListIsBoundedTheCountIsNot) {
  std::vector<Location> places;
  for (int i = 0; i < 150; ++i) places.push_back(append("key " + std::to_string(i), 100));
  close();
  for (const Location& at : places) flip(at, 90);
  const auto report = verify();
  EXPECT_EQ(report.damaged_count, 150U);
  EXPECT_EQ(report.damaged.size(), VerifyReport::kListed);
}

/// Whatever a power cut does to a log without bit rot, at most the tail is torn once it is opened.
TEST_F(Verify, AReopenedLogIsCleanAfterEveryPowerCut) {
  log_.reset();
  for (std::uint64_t at = 0; at < 60; ++at) {
    SCOPED_TRACE("power fails at operation " + std::to_string(at));
    SimFileSystem disk(at);
    const ObjectLog::Options options{.capacity_bytes = 4 * 4'096,
                                     .segment_bytes = 4'096,
                                     .seed_id = kSeed.id(),
                                     .seal_bytes = at % 2 * 8'192};
    disk.crash_at(at);
    auto log = ObjectLog::open(disk, options, ignore_recovered);
    for (std::uint64_t i = 0; log && i < 40; ++i) {
      RecordView view;
      const std::string key = "key " + std::to_string(i % 7);
      view.fingerprint = kSeed.fingerprint_of(key);
      view.key = key;
      const auto body = test::body_of(i, 1, 100 + i * 20);
      const std::span<const std::byte> piece(body);
      view.body = {&piece, 1};
      static_cast<void>((*log)->append(view, ignore_reclaimed));
    }
    log = make_error_code(boost::system::errc::io_error);
    disk.power_cycle();
    log = ObjectLog::open(disk, options, ignore_recovered);
    ASSERT_TRUE(log);
    EXPECT_OK((*log)->close());
    log = make_error_code(boost::system::errc::io_error);
    const auto report = log::verify(disk, kSeed);
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->is_clean()) << words(*report);
    EXPECT_EQ(report->torn_tail_bytes, 0U);
  }
}

}  // namespace
}  // namespace secondsight::cache::log
