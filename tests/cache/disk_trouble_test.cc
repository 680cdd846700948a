// A disk that is not there, goes away, fills up or comes back: what is counted and said, and that
// nothing is served that was removed meanwhile.
#include <algorithm>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "cache/cache.h"
#include "cache/log/segment_format.h"
#include "cache/variants.h"
#include "tests/cache/cache_fixture.h"
#include "tests/support/troubled_file_system.h"

namespace secondsight::cache {
namespace {

namespace errc = boost::system::errc;

constexpr std::uint64_t kDiskBytes = 16_MiB;

/// A cache on a troubled disk. Without a memory tier, so that what is found was on disk.
class DiskTroubleTest : public ::testing::Test {
 protected:
  void open() {
    AdmissionSettings admission;
    admission.policy = PolicyName::Always;
    admission.expected_keys = 1'000;
    policy_ = admission::make_policy(admission, SteadyTime{std::chrono::hours{1}});
    CacheSettings settings;
    settings.memory_bytes = 0;
    settings.disk_bytes = kDiskBytes;
    auto opened = Cache::open(settings, &files_, *policy_, kSeed, metrics_);
    ASSERT_TRUE(opened) << opened.error().message();
    cache_ = std::move(*opened);
  }
  void reopen() {
    cache_.reset();
    open();
  }
  /// As Maintenance, once a second; everything that came of it is done on return.
  void tick(int times = 1) {
    for (int i = 0; i < times; ++i) {
      cache_->try_disk_again();
      cache_->drain();
    }
  }
  Detail store(std::string_view target, std::size_t body_bytes = 100) {
    const auto object = object_of(target, body_bytes);
    const Sighting sighting = cache_->sight(object->key, body_bytes);
    const Detail refusal = cache_->store(*sighting.admitted, object);
    cache_->drain();
    return refusal;
  }
  void remove(std::string_view target) { cache_->invalidate(key_of(target), nullptr, WallTime{}); }
  /// Whether the object is served from disk, as a request would look for it: what waits in the
  /// writer's queue goes first.
  bool is_served(std::string_view target) {
    if (cache_->find_in_memory(key_of(target))) return false;
    const auto entry = cache_->find_on_disk(key_of(target));
    if (!entry) return false;
    const auto object = cache_->open_object(key_of(target), *entry, ReadMode::Blocking);
    return object && !object->is_vary_marker;
  }
  double errors(std::string_view kind) const {
    const std::string text = metrics_.expose();
    const std::string name = "secondsight_disk_errors_total{kind=\"" + std::string(kind) + "\"} ";
    const auto at = text.find(name);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size()));
  }

  test::TroubledFileSystem files_;
  Metrics metrics_;
  std::unique_ptr<admission::AdmissionPolicy> policy_;
  std::unique_ptr<Cache> cache_;
};

/// The lines that say so.
std::ptrdiff_t lines_with(const std::string& log, std::string_view text) {
  std::ptrdiff_t count = 0;
  for (auto at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++count;
  return count;
}

TEST_F(DiskTroubleTest, ADiskThatCannotBeHadAtStartIsTakenWhenItCan) {
  open();
  EXPECT_EQ(store("/before"), Detail::None);
  cache_.reset();

  files_.fail_attach(errc::device_or_resource_busy);
  testing::internal::CaptureStderr();
  open();
  EXPECT_FALSE(cache_->is_disk_up());
  EXPECT_EQ(cache_->objects_on_disk(), 0U);
  EXPECT_EQ(errors("busy"), 1);
  EXPECT_EQ(store("/during"), Detail::DiskError);
  EXPECT_FALSE(is_served("/before"));
  tick(3);
  EXPECT_EQ(errors("busy"), 4);
  files_.heal();
  tick();
  EXPECT_TRUE(cache_->is_disk_up());
  EXPECT_TRUE(is_served("/before"));
  EXPECT_EQ(store("/after"), Detail::None);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(lines_with(log, "another process uses it"), 1) << log;
  EXPECT_EQ(lines_with(log, "the disk cache works again"), 1) << log;
  reopen();
  EXPECT_TRUE(is_served("/before"));
  EXPECT_FALSE(is_served("/during"));
  EXPECT_TRUE(is_served("/after"));
}

TEST_F(DiskTroubleTest, EachKindIsCountedAndSaidOnce) {
  struct Row {
    errc::errc_t error;
    const char* kind;
  };
  const Row rows[] = {{errc::no_space_on_device, "no-space"},
                      {errc::read_only_file_system, "read-only"},
                      {errc::no_such_file_or_directory, "gone"},
                      {errc::not_a_directory, "gone"},
                      {errc::device_or_resource_busy, "busy"},
                      {errc::not_supported, "newer-version"},
                      {errc::file_exists, "other-seed"},
                      {errc::permission_denied, "permission"},
                      {errc::io_error, "io"},
                      {errc::too_many_files_open, "io"}};
  open();
  for (const Row& row : rows) {
    SCOPED_TRACE(row.kind);
    const double before = errors(row.kind);
    testing::internal::CaptureStderr();
    files_.fail_attach(row.error);
    tick(5);
    EXPECT_FALSE(cache_->is_disk_up());
    EXPECT_EQ(errors(row.kind), before + 5);
    files_.heal();
    tick();
    EXPECT_TRUE(cache_->is_disk_up());
    EXPECT_EQ(store("/a"), Detail::None);
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(lines_with(log, std::string("kind=") + row.kind), 1) << log;
    EXPECT_EQ(lines_with(log, "works again"), 1) << log;
  }
}

TEST_F(DiskTroubleTest, WhatWasRemovedWhileItWasAwayIsNeverServed) {
  open();
  for (const char* target : {"/kept", "/removed", "/queued"})
    EXPECT_EQ(store(target), Detail::None);
  cache_.reset();
  files_.fail_attach(errc::io_error);
  open();
  remove("/removed");
  cache_->drain();
  files_.heal();
  remove("/queued");
  cache_->try_disk_again();
  cache_->drain();
  EXPECT_TRUE(is_served("/kept"));
  EXPECT_FALSE(is_served("/removed"));
  EXPECT_FALSE(is_served("/queued"));
  reopen();
  EXPECT_TRUE(is_served("/kept"));
  EXPECT_FALSE(is_served("/removed"));
  EXPECT_FALSE(is_served("/queued"));
}

/// The variants of an unknown marker must not be found under one that is made while it is away.
TEST_F(DiskTroubleTest, VariantsFromBeforeAreNotFoundUnderAMarkerMadeWithoutTheDisk) {
  policy::FieldBlock request;
  request.add("Accept", "a");
  auto head = std::make_shared<ObjectHead>();
  head->facts.vary = {"accept"};
  head->times.response_received = WallTime{std::chrono::seconds{1'000}};
  const CacheKey primary = key_of("/varies");

  open();
  const Placement before = cache_->place(primary, nullptr, request, *head);
  cache_->persist_marker(before.marker);
  cache_->drain();
  for (const bool is_invalidated : {false, true}) {
    SCOPED_TRACE(is_invalidated);
    cache_.reset();
    files_.fail_attach(errc::io_error);
    open();
    if (is_invalidated) cache_->invalidate(primary, nullptr, WallTime{std::chrono::seconds{2'000}});
    const ObjectPtr known = cache_->find_in_memory(primary);
    EXPECT_EQ(known != nullptr, is_invalidated);
    const Placement during = cache_->place(primary, known, request, *head);
    EXPECT_NE(during.key.text(), before.key.text());
    files_.heal();
    tick();
    // A request that looked before the disk was open, and is answered after.
    const Placement after = cache_->place(primary, nullptr, request, *head);
    EXPECT_NE(after.key.text(), before.key.text());
  }
  reopen();  // the marker of the invalidation is on disk now
  const auto entry = cache_->find_on_disk(primary);
  ASSERT_TRUE(entry);
  const auto marker = cache_->open_object(primary, *entry, ReadMode::Blocking);
  ASSERT_TRUE(marker);
  EXPECT_EQ(marker->head->times.response_received, WallTime{std::chrono::seconds{2'000}});
}

TEST_F(DiskTroubleTest, MoreRemovalsThanAreRememberedGiveUpTheDisk) {
  open();
  EXPECT_EQ(store("/a"), Detail::None);
  cache_.reset();
  files_.fail_attach(errc::io_error);
  open();
  for (std::size_t i = 0; i <= StoreWriter::kOwedTombstonesMax; ++i) remove(std::to_string(i));
  cache_->drain();
  files_.heal();
  tick();
  EXPECT_FALSE(is_served("/a"));
  EXPECT_EQ(store("/c"), Detail::None);
  reopen();
  EXPECT_FALSE(is_served("/a"));
  EXPECT_TRUE(is_served("/c"));
}

TEST_F(DiskTroubleTest, ARemovalThatIsOwedComesBeforeWhatIsReplayed) {
  const log::ObjectLog::Options options{
      .capacity_bytes = kDiskBytes, .segment_bytes = 1_MiB, .seed_id = kSeed.id()};
  const auto a = object_of("/a"), b = object_of("/b");
  {
    const auto log = std::move(*log::ObjectLog::closed(files_, options));
    Index index;
    PurgeList purges(kSeed);
    StoreWriter writer(*log, index, nullptr, purges, 16_MiB, metrics_);
    EXPECT_EQ(writer.store(a), Detail::None);
    EXPECT_EQ(writer.store(b), Detail::None);
  }
  files_.fail_attach(errc::io_error);
  for (const bool is_restart : {false, true}) {
    const auto log = std::move(*log::ObjectLog::closed(files_, options));
    Index index;
    PurgeList purges(kSeed);
    StoreWriter writer(*log, index, nullptr, purges, 16_MiB, metrics_);
    EXPECT_EQ(writer.is_open(), is_restart);
    if (!is_restart) {
      writer.remove(a->key);
      writer.drain();
      files_.fail_changes(errc::read_only_file_system);  // it cannot be told to the disk yet
      files_.allow_attach();
      writer.try_disk_again();
      writer.drain();
      EXPECT_TRUE(writer.is_open());
      EXPECT_FALSE(index.find(a->key.fingerprint()));
      files_.heal();
      writer.try_disk_again();
      writer.drain();
    }
    EXPECT_FALSE(index.find(a->key.fingerprint()));
    EXPECT_TRUE(index.find(b->key.fingerprint()));
  }
}

/// The same where the disk was open, and then refused to be written to.
TEST_F(DiskTroubleTest, MoreRemovalsThanAReadOnlyDiskIsOwedGiveItUpWhenItCanBeWrittenTo) {
  const auto open_log = [this] {
    return std::move(*log::ObjectLog::closed(
        files_, {.capacity_bytes = kDiskBytes, .segment_bytes = 1_MiB, .seed_id = kSeed.id()}));
  };
  const auto object = object_of("/a");
  const auto& a = object->key.fingerprint();
  {
    const auto log = open_log();
    Index index;
    PurgeList purges(kSeed);
    StoreWriter writer(*log, index, nullptr, purges, 16_MiB, metrics_);
    EXPECT_EQ(writer.store(object), Detail::None);
    writer.drain();
    files_.fail_changes(errc::read_only_file_system);
    for (std::size_t i = 0; i <= StoreWriter::kOwedTombstonesMax; ++i)
      writer.remove(CacheKey::from_stored("x", {i, i}));
    writer.try_disk_again();
    writer.drain();
    EXPECT_TRUE(index.find(a));  // what is known here is right, and used
    EXPECT_EQ(writer.store(object_of("/b")), Detail::DiskError);
    files_.heal();
    for (int i = 0; i < 8; ++i) writer.try_disk_again(), writer.drain();
    EXPECT_FALSE(index.find(a));
    EXPECT_EQ(writer.store(object_of("/b")), Detail::None);
  }
  const auto log = open_log();
  Index index;
  PurgeList purges(kSeed);
  const StoreWriter writer(*log, index, nullptr, purges, 16_MiB, metrics_);
  EXPECT_TRUE(writer.is_open());
  EXPECT_FALSE(index.find(a));
  EXPECT_TRUE(index.find(key_of("/b").fingerprint()));
}

/// A marker that got lost would let the one on disk lead to what it outdates: nothing is served
/// then.
TEST_F(DiskTroubleTest, MoreMarkersThanAReadOnlyDiskIsOwedEndWhatItServes) {
  open();
  EXPECT_EQ(store("/a"), Detail::None);
  files_.fail_changes(errc::read_only_file_system);
  const ObjectPtr known = make_marker(key_of("/m"), {"accept"}, {}, {});
  for (std::size_t i = 0; i < StoreWriter::kOwedTombstonesMax; ++i)
    cache_->invalidate(key_of("/" + std::to_string(i)), known, WallTime{});
  cache_->drain();
  EXPECT_TRUE(is_served("/a"));
  cache_->invalidate(key_of("/m"), known, WallTime{});
  tick();
  EXPECT_FALSE(is_served("/a"));
  files_.heal();
  tick(8);
  EXPECT_FALSE(is_served("/a"));
  EXPECT_EQ(store("/b"), Detail::None);
  EXPECT_TRUE(is_served("/b"));
}

TEST_F(DiskTroubleTest, AnotherDirectoryIsUsedAndTheOldOneLetGo) {
  open();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(store("/" + std::to_string(i), 300'000), Detail::None);
  const auto old = files_.replace();
  EXPECT_TRUE(is_served("/3"));  // not noticed yet: still readable
  for (const std::string& name : *old->list()) EXPECT_TRUE(old->remove(name));
  EXPECT_GT(old->bytes_used(), 0U);
  EXPECT_EQ(errors("gone"), 0);
  tick();
  EXPECT_EQ(errors("gone"), 1) << "a lost cache is told, though it goes on at once";
  EXPECT_EQ(old->bytes_used(), 0U);
  EXPECT_FALSE(is_served("/3"));
  EXPECT_EQ(cache_->objects_on_disk(), 0U);
  EXPECT_EQ(store("/3"), Detail::None);
  EXPECT_TRUE(is_served("/3"));
  reopen();
  EXPECT_EQ(cache_->objects_on_disk(), 1U);
}

/// The mount returns: what is on it may have been removed since, so it is not used.
TEST_F(DiskTroubleTest, ADirectoryThatComesBackIsEmptied) {
  open();
  EXPECT_EQ(store("/a"), Detail::None);
  EXPECT_EQ(store("/b"), Detail::None);
  const auto old = files_.replace();
  tick();
  remove("/a");
  cache_->drain();
  files_.replace(old);
  tick();
  EXPECT_FALSE(is_served("/a"));
  EXPECT_FALSE(is_served("/b"));
  EXPECT_EQ(store("/c"), Detail::None);
  reopen();
  EXPECT_FALSE(is_served("/a"));
  EXPECT_TRUE(is_served("/c"));
}

TEST_F(DiskTroubleTest, ADirectoryIsMissedBetweenAndNothingIsWrittenToIt) {
  open();
  EXPECT_EQ(store("/a"), Detail::None);
  files_.fail_attach(errc::not_a_directory);
  tick();
  EXPECT_EQ(store("/b"), Detail::DiskError);
  EXPECT_TRUE(is_served("/a"));
  files_.heal();
  files_.replace();
  tick();
  EXPECT_FALSE(is_served("/a"));
  EXPECT_EQ(store("/b"), Detail::None);
}

TEST_F(DiskTroubleTest, WhatANewerVersionWroteIsLeftAloneAndTriedLessAndLess) {
  log::SegmentHeader header;
  header.version = log::kFormatVersion + 1;
  header.number = 7;
  header.segment_bytes = 4096;
  const auto bytes = log::encode_segment_header(header);
  EXPECT_TRUE(files_.disk()->create("00000007.segment"));
  files_.disk()->set_contents("00000007.segment", {bytes.begin(), bytes.end()});
  open();
  EXPECT_FALSE(cache_->is_disk_up());
  EXPECT_EQ(errors("newer-version"), 1);
  tick(100);
  EXPECT_GE(errors("newer-version"), 100 / 8);
  EXPECT_LE(errors("newer-version"), 100 / 8 + 8);
  EXPECT_EQ(files_.disk()->list()->size(), 1U);
  EXPECT_TRUE(files_.disk()->remove("00000007.segment"));
  tick(8);
  EXPECT_TRUE(cache_->is_disk_up());
  EXPECT_EQ(store("/a"), Detail::None);
  EXPECT_TRUE(is_served("/a"));
}

TEST_F(DiskTroubleTest, ADiskThatFailsWhileItIsReplayedIsReplayedAgain) {
  open();
  EXPECT_EQ(store("/a"), Detail::None);
  EXPECT_EQ(store("/b"), Detail::None);
  remove("/a");
  cache_.reset();
  files_.fail_reads(errc::io_error);
  open();
  EXPECT_EQ(errors("io"), 1);
  EXPECT_FALSE(is_served("/b"));
  files_.heal();
  tick();
  EXPECT_TRUE(is_served("/b"));
  EXPECT_FALSE(is_served("/a"));
}

TEST_F(DiskTroubleTest, AReadOnlyDiskIsReadOn) {
  open();
  EXPECT_EQ(store("/a"), Detail::None);
  testing::internal::CaptureStderr();
  files_.fail_changes(errc::read_only_file_system);
  EXPECT_EQ(store("/b"), Detail::None);  // taken, then lost
  EXPECT_FALSE(is_served("/b"));
  EXPECT_EQ(store("/b"), Detail::DiskError);
  for (int i = 0; i < 5; ++i) {
    tick();
    store("/b");
    EXPECT_TRUE(is_served("/a"));
  }
  EXPECT_EQ(errors("read-only"), 6);
  files_.heal();
  tick();
  EXPECT_EQ(store("/b"), Detail::None);
  EXPECT_TRUE(is_served("/b"));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(lines_with(log, "kind=read-only"), 1) << log;
  EXPECT_EQ(lines_with(log, "works again"), 1) << log;
}

TEST_F(DiskTroubleTest, ObjectsThatCannotBeReadAreOneLine) {
  open();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(store("/" + std::to_string(i)), Detail::None);
  testing::internal::CaptureStderr();
  files_.fail_reads(errc::io_error);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(is_served("/" + std::to_string(i)));
    tick();
  }
  EXPECT_EQ(errors("io"), 10);
  files_.heal();
  EXPECT_TRUE(is_served("/11"));
  tick();  // a second without
  files_.fail_reads(errc::io_error);
  EXPECT_FALSE(is_served("/12"));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(lines_with(log, "stored object dropped"), 2) << log;
}

/// Whoever asks while the disk is replayed finds nothing, or what is right; and nothing that was
/// removed before the answer.
TEST_F(DiskTroubleTest, ItIsOpenedUnderRequests) {
  constexpr int kObjects = 2'000;
  open();
  for (int i = 0; i < kObjects; ++i) {
    const auto object = object_of("/" + std::to_string(i), 100);
    const Sighting sighting = cache_->sight(object->key, 100);
    EXPECT_EQ(cache_->store(*sighting.admitted, object), Detail::None);
  }
  cache_.reset();
  files_.fail_attach(errc::io_error);
  open();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([this, t, &wrong] {
      for (int i = t; i < kObjects; i += 3) {
        const std::string target = "/" + std::to_string(i);
        is_served(target);
        if (i % 2 == 0) continue;
        remove(target);
        if (is_served(target)) ++wrong;
      }
    });
  }
  files_.heal();
  tick();
  for (std::thread& thread : threads) thread.join();
  cache_->drain();
  EXPECT_EQ(wrong, 0);
  for (const bool is_reopened : {false, true}) {
    if (is_reopened) reopen();
    for (int i = 0; i < kObjects; ++i)
      EXPECT_EQ(is_served("/" + std::to_string(i)), i % 2 == 0) << i;
  }
}

/// Many writers, a small disk, slow readers: the files never take more than cache.disk.
TEST_F(DiskTroubleTest, AFloodNeverTakesMoreThanIsAllowed) {
  open();
  constexpr int kThreads = 4;
  constexpr int kObjects = 400;  // of 50 KB: five times the disk
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      std::unique_ptr<log::ObjectReader> held;
      for (int i = 0; i < kObjects; ++i) {
        const auto object = object_of("/" + std::to_string(t) + "/" + std::to_string(i), 50'000);
        const Sighting sighting = cache_->sight(object->key, 50'000);
        while (cache_->store(*sighting.admitted, object) == Detail::QueueFull) cache_->drain();
        if (i % 40 != 0) continue;
        cache_->drain();
        const auto entry = cache_->find_on_disk(object->key);
        if (!entry) continue;
        auto found = cache_->open_object(object->key, *entry, ReadMode::Blocking);
        if (found) held = std::move(found->body);  // holds its segment until the next
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  cache_->drain();
  EXPECT_GT(cache_->log_counters().segments_reclaimed, 32U);
  EXPECT_LE(files_.disk()->bytes_used_peak(), kDiskBytes);
  EXPECT_LE(cache_->disk_bytes(), kDiskBytes);
  EXPECT_TRUE(cache_->is_disk_up());
}

}  // namespace
}  // namespace secondsight::cache
