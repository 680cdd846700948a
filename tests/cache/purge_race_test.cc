// Threads that store, look up, purge and sweep at once: nothing older than a purge is found after
// it.
#include <atomic>
#include <charconv>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "cache/cache.h"
#include "tests/cache/cache_fixture.h"

namespace secondsight::cache {
namespace {

constexpr int kKeys = 4;
constexpr int kPurges = 300;

ObjectPtr version_of(int key, int version, std::uint64_t seen) {
  auto head = std::make_shared<ObjectHead>();
  head->status = 200;
  head->reason = "OK";
  head->fields.add("Surrogate-Key", "t");
  head->fields.add("X-Value", std::to_string(version));
  auto object = make_object(key_of("/" + std::to_string(key)), head, {chunk_of(1'000)});
  object->purges_seen = seen;
  return object;
}

int version_in(const ObjectHead& head) {
  const auto text = *head.fields.find("X-Value");
  int version = -1;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

std::shared_ptr<const ObjectHead> find(Cache& cache, const CacheKey& key) {
  if (const auto object = cache.find_in_memory(key)) return object->head;
  const auto entry = cache.find_on_disk(key);
  if (!entry) return nullptr;
  const auto opened = cache.open_object(key, *entry, ReadMode::Blocking);
  return opened ? opened->head : nullptr;
}

TEST(PurgeRace, NothingOlderIsFoundOnceAPurgeWasMade) {
  TestDisk disk;
  Metrics metrics;
  AdmissionSettings admission;
  admission.policy = PolicyName::Always;
  const auto policy = admission::make_policy(admission, SteadyTime{std::chrono::hours{1}});
  CacheSettings settings;
  settings.disk_bytes = 16_MiB;
  settings.memory_bytes = 4_MiB;
  const auto cache = std::move(*Cache::open(settings, disk.files.get(), *policy, kSeed, metrics));

  std::atomic<int> version{0};    // what the origin has
  std::atomic<int> purged_to{0};  // no older one may be found
  std::atomic<bool> is_over{false};
  std::atomic<int> too_old{0};
  std::atomic<int> found{0};

  const auto store = [&](int key) {
    while (!is_over) {
      const std::uint64_t seen = cache->purges();
      const auto object = version_of(key, version, seen);
      if (const auto sighting = cache->sight(object->key, object->body_bytes); sighting.admitted)
        cache->store(*sighting.admitted, object);
      cache->keep(object, Newcomer::SeenBefore);
      std::this_thread::yield();
    }
  };
  const auto look = [&](int first) {
    for (int i = first; !is_over; ++i) {
      const int oldest = purged_to;
      const auto head = find(*cache, key_of("/" + std::to_string(i % kKeys)));
      if (!head) continue;
      ++found;
      if (version_in(*head) < oldest && !head->facts.stale_since) ++too_old;
    }
  };
  const auto sweep = [&] {
    SteadyTime now{std::chrono::hours{1}};
    while (!is_over) {
      cache->sweep_purged(now += PurgeSweep::kInterval / 4);
      std::this_thread::yield();
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(store, 0);
  threads.emplace_back(store, 1);
  threads.emplace_back(look, 0);
  threads.emplace_back(look, 1);
  threads.emplace_back(sweep);
  for (int i = 0; i < kPurges; ++i) {
    ++version;
    Purge purge{PurgeScope::Tag, PurgeKind::Hard, "t"};
    if (i % 4 == 1) purge = {PurgeScope::Everything, PurgeKind::Hard, {}};
    if (i % 4 == 2) purge = {PurgeScope::Prefix, PurgeKind::Hard, "http://test/"};
    if (i % 4 == 3) purge = {PurgeScope::Tag, PurgeKind::Soft, "t"};
    std::atomic<bool> is_told{false};
    cache->purge({purge}, WallTime{std::chrono::seconds{i}}, [&](const auto&) { is_told = true; });
    purged_to = version.load();
    while (!is_told) std::this_thread::yield();
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(too_old, 0);
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace secondsight::cache
