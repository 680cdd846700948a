#include <cstdlib>
#include <map>
#include <random>

#include "cache/log/object_log.h"
#include "tests/cache/log/file_system_fixture.h"

// Random histories against a std::map of what must be found.
namespace secondsight::cache::log {
namespace {

using test::open_log;
using test::read_all;
using test::TestIndex;
using test::TestRecord;
using test::version_read;

constexpr std::uint64_t kKeys = 40;

/// SECONDSIGHT_TEST_SEED repeats a run that failed.
std::uint64_t run_seed() {
  const char* given = std::getenv("SECONDSIGHT_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

class Model {
 public:
  Model(FileSystem& files, std::uint64_t seed) : files_(files), random_(seed) {
    segment_bytes_ = static_cast<std::uint32_t>(8'192 + random_() % 8 * 4'096);
    segments_ = static_cast<std::uint32_t>(4 + random_() % 6);
    open();
  }

  void step() {
    const auto dice = random_() % 100;
    if (dice < 60)
      put();
    else if (dice < 75)
      remove();
    else if (dice < 80)
      EXPECT_OK(log_->sync());
    else if (dice < 83)
      reopen();
    else
      check(random_() % kKeys);
  }

  void check_all() {
    for (std::uint64_t key = 0; key < kKeys; ++key) check(key);
    ASSERT_EQ(index_.places.size(), expected_.size());
  }

  void reopen() {
    if (random_() % 2 == 0) EXPECT_OK(log_->close());
    open();
    check_all();
  }

 private:
  struct Expected {
    std::int64_t version = 0;
    std::size_t bytes = 0;
    Location place;
  };

  void open() {
    log_.reset();
    index_ = {};
    auto opened = open_log(files_, segment_bytes_, segments_, index_.recorder());
    ASSERT_TRUE(opened) << opened.error().message();
    log_ = std::move(*opened);
  }

  Location append(const TestRecord& record) {
    const auto reclaimed = [&](const admission::Fingerprint& fingerprint, const Location& place) {
      index_.reclaimer()(fingerprint, place);
      std::erase_if(expected_, [&](const auto& entry) { return entry.second.place == place; });
    };
    const auto place = log_->append(record.view, reclaimed);
    EXPECT_OK(place);
    index_.put(record.view.fingerprint, record.view.kind, *place);
    EXPECT_LE(log_->bytes_on_disk(), std::uint64_t{segment_bytes_} * segments_);
    return *place;
  }

  void put() {
    const std::uint64_t key = random_() % kKeys;
    const std::size_t bytes = random_() % (log_->part_body_bytes_max() + 1);
    const auto version = ++last_version_;
    const auto place = append(TestRecord(key, static_cast<std::uint64_t>(version), bytes));
    expected_[key] = {version, bytes, place};
  }

  void remove() {
    const std::uint64_t key = random_() % kKeys;
    append(TestRecord(key, 0, 0, RecordKind::Tombstone));
    expected_.erase(key);
  }

  void check(std::uint64_t key) {
    const auto expected = expected_.find(key);
    const auto place = index_.find(key);
    ASSERT_EQ(place.has_value(), expected != expected_.end()) << "key " << key;
    if (!place) return;
    ASSERT_EQ(*place, expected->second.place);
    const auto read = read_all(*log_, *place);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(version_read(*read, key), expected->second.version);
    EXPECT_EQ(read->body.size(), expected->second.bytes);
  }

  FileSystem& files_;
  std::mt19937_64 random_;
  std::uint32_t segment_bytes_ = 0;
  std::uint32_t segments_ = 0;
  std::unique_ptr<ObjectLog> log_;
  TestIndex index_;
  std::map<std::uint64_t, Expected> expected_;
  std::int64_t last_version_ = 0;
};

class ObjectLogModel : public test::OnEveryFileSystem {};
INSTANTIATE_ON_EVERY_FILE_SYSTEM(ObjectLogModel);
INSTANTIATE_ON_SPARSE_FILES(ObjectLogModel);

TEST_P(ObjectLogModel, AgreesWithAMap) {
  const std::uint64_t seed = run_seed();
  SCOPED_TRACE("SECONDSIGHT_TEST_SEED=" + std::to_string(seed));
  RecordProperty("seed", std::to_string(seed));
  Model model(files(), seed);
  for (int i = 0; i < 2'000 && !HasFatalFailure(); ++i) model.step();
  model.check_all();
  model.reopen();
}

}  // namespace
}  // namespace secondsight::cache::log
