// All of a cache's threads at once, on a disk so small that it turns over all the time: what is
// read is always a whole object as it was stored.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cache/cache_fixture.h"

namespace secondsight::cache {
namespace {

constexpr std::uint64_t kKeys = 40;
constexpr int kStores = 1'500;  // by each writer
constexpr std::size_t kPatternBytes = 200'000;

std::string target_of(std::uint64_t key) {
  return "/" + std::to_string(key);
}

/// Bytes that say which key and version they belong to, wherever one looks.
ChunkPtr body_of(std::uint64_t key, std::uint64_t version, std::size_t bytes) {
  auto chunk = std::make_shared<Chunk>(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    (*chunk)[i] = static_cast<std::byte>((key * 131 + version * 31 + i * 7 + (i >> 8)) & 0xFF);
  return chunk;
}

std::uint64_t version_in(const ObjectHead& head) {
  const auto text = head.fields.joined("X-Value");
  std::uint64_t version = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), version);
  return version;
}

class StoreRace : public ::testing::Test {
 protected:
  StoreRace() {
    AdmissionSettings admission;
    admission.policy = PolicyName::Always;
    policy_ = admission::make_policy(admission, SteadyTime{std::chrono::hours{1}});
    settings_.memory_bytes = 1_MiB;
    settings_.disk_bytes = 2_MiB;
    settings_.write_queue = 512_KiB;
    settings_.scrub_bytes = 1_GiB;
    cache_ = *Cache::open(settings_, disk_.files.get(), *policy_, kSeed, metrics_);
  }

  void store(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < kStores; ++i) {
      const std::uint64_t key = random() % kKeys;
      const auto dice = random() % 10;
      if (dice == 0) {
        remove(key);
      } else if (dice == 1) {
        refresh(key);
      } else {
        put(key, random() % (dice == 2 ? kPatternBytes : 6'000), dice % 2 == 0);
      }
    }
  }

  void put(std::uint64_t key, std::size_t bytes, bool is_kept) {
    const std::uint64_t version = ++last_version_;
    std::vector<ChunkPtr> body;
    if (bytes > 0) body.push_back(body_of(key, version, bytes));
    const auto object =
        make_object(key_of(target_of(key)), head_of(std::to_string(version)), std::move(body));
    if (is_kept) cache_->keep(object, Newcomer::First);
    const auto sighting = cache_->sight(object->key, bytes);
    if (sighting.admitted && cache_->store(*sighting.admitted, object) == Detail::QueueFull)
      cache_->drain();
  }

  void remove(std::uint64_t key) {
    cache_->invalidate(key_of(target_of(key)), nullptr, WallTime{});
  }

  void refresh(std::uint64_t key) {
    const CacheKey cache_key = key_of(target_of(key));
    const auto entry = cache_->find_on_disk(cache_key);
    if (!entry) return;
    auto found = cache_->open_object(cache_key, *entry, ReadMode::Blocking);
    if (!found) return;
    auto head = std::make_shared<ObjectHead>(*found->head);
    cache_->refresh(cache_key, *entry, body_parts(*found), head, std::chrono::hours{1},
                    found->purges_seen);
  }

  void check(std::uint64_t key, const ObjectHead& head, std::span<const std::byte> body) {
    const std::uint64_t version = version_in(head);
    const ChunkPtr right = body_of(key, version, body.size());
    if (!std::equal(body.begin(), body.end(), right->begin())) ++wrong_;
  }

  void read(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    while (!is_done_.load()) {
      const std::uint64_t key = random() % kKeys;
      const CacheKey cache_key = key_of(target_of(key));
      if (const ObjectPtr object = cache_->find_in_memory(cache_key)) {
        if (object->body.empty()) continue;
        check(key, *object->head, *object->body.front());
        cache_->promote(object);
        ++memory_hits_;
        continue;
      }
      const auto entry = cache_->find_on_disk(cache_key);
      if (!entry) continue;
      const auto found = cache_->open_object(cache_key, *entry, ReadMode::Blocking);
      if (!found) continue;
      std::vector<std::byte> body(found->body_bytes);
      if (!found->body->read_body(0, body, ReadMode::Blocking)) continue;
      check(key, *found->head, body);
      cache_->note_disk_hit(cache_key);
      ++disk_hits_;
    }
  }

  /// A restart finds the heads of large objects whose parts are gone; they cannot be opened.
  bool can_be_read(std::uint64_t key) {
    const CacheKey cache_key = key_of(target_of(key));
    const auto entry = cache_->find_on_disk(cache_key);
    return entry && cache_->open_object(cache_key, *entry, ReadMode::Blocking);
  }

  void look_after() {
    while (!is_done_.load()) {
      cache_->try_disk_again();
      if (cache_->disk_bytes() > settings_.disk_bytes) ++wrong_;
      if (cache_->memory_bytes() > settings_.memory_bytes) ++wrong_;
      static_cast<void>(metrics_.expose());
      std::this_thread::yield();
    }
  }

  TestDisk disk_;
  Metrics metrics_;
  CacheSettings settings_;
  std::unique_ptr<admission::AdmissionPolicy> policy_;
  std::unique_ptr<Cache> cache_;
  std::atomic<bool> is_done_{false};
  std::atomic<std::uint64_t> last_version_{0}, memory_hits_{0}, disk_hits_{0}, wrong_{0};
};

TEST_F(StoreRace, EverythingAtOnce) {
  std::vector<std::thread> readers;
  for (std::uint64_t i = 0; i < 2; ++i) readers.emplace_back([this, i] { read(i); });
  readers.emplace_back([this] { look_after(); });
  std::vector<std::thread> writers;
  for (std::uint64_t i = 0; i < 2; ++i) writers.emplace_back([this, i] { store(100 + i); });
  for (auto& thread : writers) thread.join();
  cache_->drain();
  while (disk_hits_.load() == 0 || memory_hits_.load() == 0) std::this_thread::yield();
  is_done_ = true;
  for (auto& thread : readers) thread.join();
  EXPECT_EQ(wrong_.load(), 0U);
  EXPECT_GT(cache_->log_counters().segments_reclaimed, 5U);

  // Quiet now: what is removed stays away, through the queue, the index and a restart.
  for (std::uint64_t key = 0; key < kKeys; key += 2)
    cache_->invalidate(key_of(target_of(key)), nullptr, WallTime{});
  cache_->drain();
  for (int turn = 0; turn < 2; ++turn) {
    for (std::uint64_t key = 0; key < kKeys; key += 2) {
      EXPECT_FALSE(cache_->find_in_memory(key_of(target_of(key))));
      EXPECT_FALSE(can_be_read(key)) << key << (turn == 0 ? "" : ", after a restart");
    }
    EXPECT_GT(cache_->objects_on_disk(), 0U);
    cache_.reset();
    cache_ = *Cache::open(settings_, disk_.files.get(), *policy_, kSeed, metrics_);
  }
}

}  // namespace
}  // namespace secondsight::cache
