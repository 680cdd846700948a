#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "cache/index.h"
#include "cache/log/object_log.h"
#include "tests/cache/log/file_system_fixture.h"

namespace secondsight::cache::log {
namespace {

namespace errc = boost::system::errc;
using test::ignore_recovered;
using test::open_log;
using test::read_all;
using test::TestRecord;
using test::version_read;

class ObjectLogRace : public test::OnEveryFileSystem {};
INSTANTIATE_ON_EVERY_FILE_SYSTEM(ObjectLogRace);

TEST_P(ObjectLogRace, ReadersWhileTheWriterReclaims) {
  constexpr std::uint32_t kSegmentBytes = 1'048'576;
  constexpr std::uint64_t kKeys = 60;
  constexpr int kAppends = 600;
  auto log = open_log(files(), kSegmentBytes, 8, ignore_recovered);
  ASSERT_TRUE(log);
  Index index;
  std::atomic<bool> is_done{false};
  std::atomic<std::uint64_t> hits{0}, wrong{0};

  const auto read = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    while (!is_done.load()) {
      const std::uint64_t key = random() % kKeys;
      const auto entry = index.find(test::fingerprint_of(key));
      if (!entry) continue;
      const auto mode = random() % 2 == 0 ? ReadMode::Blocking : ReadMode::PageCacheOnly;
      const auto got = read_all(**log, entry->location, mode);
      if (got) {
        ++hits;
        if (version_read(*got, key) <= 0) ++wrong;
      } else if (got.error() != errc::no_such_file_or_directory &&
                 got.error() != errc::resource_unavailable_try_again) {
        ++wrong;
      }
      static_cast<void>((*log)->bytes_on_disk() + (*log)->counters().records);
    }
  };
  std::vector<std::thread> readers;
  for (std::uint64_t i = 0; i < 3; ++i) readers.emplace_back(read, i);

  std::mt19937_64 random(99);
  std::uint64_t stored = 0;
  for (int i = 1; i <= kAppends; ++i) {
    const std::uint64_t key = random() % kKeys;
    const TestRecord record(key, static_cast<std::uint64_t>(i), random() % 200'000);
    const auto place = (*log)->append(
        record.view, [&](const admission::Fingerprint& fingerprint, const Location& location) {
          index.erase_at(fingerprint, location);
        });
    // Busy while readers happen to be inside every segment: as for a client, no error.
    EXPECT_TRUE(place || place.error() == errc::device_or_resource_busy);
    if (place) {
      ++stored;
      index.insert(record.view.fingerprint, {*place, RecordKind::Object});
    }
    EXPECT_LE((*log)->bytes_on_disk(), 8 * kSegmentBytes);
  }
  while (hits.load() == 0) std::this_thread::yield();
  is_done = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong.load(), 0U);
  EXPECT_GT(stored, kAppends / 2U);
  EXPECT_GT((*log)->counters().segments_reclaimed, 10U);
}

TEST_P(ObjectLogRace, AReaderMayOutliveTheLog) {
  auto log = open_log(files(), 1'048'576, 4, ignore_recovered);
  ASSERT_TRUE(log);
  const TestRecord record(1, 1, 250'000);
  const auto place = (*log)->append(record.view, test::ignore_reclaimed);
  ASSERT_TRUE(place);
  auto reader = (*log)->open_object(*place, ReadMode::Blocking);
  ASSERT_TRUE(reader);
  std::thread thread([reader = std::move(*reader), &record] {
    std::vector<std::byte> body(250'000);
    EXPECT_OK(reader->read_body(0, body, ReadMode::Blocking));
    EXPECT_EQ(body, record.body);
  });
  log->reset();
  thread.join();
}

}  // namespace
}  // namespace secondsight::cache::log
