#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "cache/memory_tier.h"
#include "config/units.h"

namespace secondsight::cache {
namespace {

/// Every body says whose it is in each byte, so that a torn or foreign object shows.
TEST(MemoryTierRace, ThreadsNeverSeeAnotherKeysObject) {
  const admission::FingerprintSeed seed{admission::FingerprintSeed::Bytes{}};
  constexpr std::uint64_t kKeys = 200;
  std::vector<CacheKey> keys;
  for (std::uint64_t i = 0; i < kKeys; ++i)
    keys.push_back(CacheKey::primary("http", "test", "/" + std::to_string(i), seed));

  for (const std::uint64_t capacity_bytes : {std::uint64_t{200'000}, 34_MiB}) {
    MemoryTier tier(capacity_bytes);
    std::atomic<std::uint64_t> faults{0};
    const auto work = [&](unsigned number) {
      std::mt19937 random(number);
      for (int step = 0; step < 8000; ++step) {
        const std::size_t i = random() % kKeys;
        const auto mark = static_cast<std::byte>(i);
        switch (random() % 8) {
          case 0:
            tier.erase(keys[i]);
            break;
          case 1:
          case 2: {
            auto stored_head = std::make_shared<ObjectHead>();
            const std::size_t size = 1 + random() % 5000;
            tier.insert(
                make_object(keys[i], std::move(stored_head), {std::make_shared<Chunk>(size, mark)}),
                random() % 2 == 0 ? Newcomer::First : Newcomer::SeenBefore);
            break;
          }
          case 3:
            if (tier.bytes() > capacity_bytes) ++faults;
            break;
          default:
            if (const ObjectPtr object =
                    random() % 4 == 0 ? tier.peek(keys[i]) : tier.find(keys[i])) {
              object->on_disk.store(true, std::memory_order_relaxed);
              const Chunk& body = *object->body.front();
              const bool is_right = object->key.text() == keys[i].text() && body.front() == mark &&
                                    body.back() == mark;
              if (!is_right) ++faults;
            }
        }
      }
    };
    std::vector<std::thread> threads;
    for (unsigned number = 1; number <= 4; ++number) threads.emplace_back(work, number);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(faults.load(), 0u);
    EXPECT_LE(tier.bytes(), capacity_bytes);
    EXPECT_GT(tier.objects(), 0u);
  }
}

}  // namespace
}  // namespace secondsight::cache
