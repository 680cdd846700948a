// Meant to run under ThreadSanitizer as well.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "admission/nth_sighting.h"
#include "tests/admission/keys.h"

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;
using test::Keys;

/// Each thread sights keys of its own three times, while the filters are swept all the time: a
/// generation is so long in keys that no sighting is older than one.
TEST(NthSightingRace, TheThirdSightingIsAdmittedWhileFiltersRotate) {
  constexpr unsigned kThreads = 3;
  constexpr std::uint64_t kKeysEach = 40'000;
  constexpr FilterSize kSize{.line_count = 1U << 14U, .keys_per_generation = 30'000};
  NthSighting policy(kSize, 1h, SteadyTime{1h}, 3);
  std::vector<std::uint64_t> refused(kThreads);
  std::atomic<unsigned> running{kThreads};
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kThreads; ++t)
      threads.emplace_back([&policy, &running, &lost = refused[t], t] {
        Keys keys(700 + t);
        for (std::uint64_t i = 0; i < kKeysEach; ++i) {
          const Fingerprint key = keys.next();
          policy.sight(key, std::nullopt);
          policy.sight(key, std::nullopt);
          lost += policy.sight(key, std::nullopt) == Verdict::Repeat ? 0U : 1U;
        }
        running.fetch_sub(1);
      });
    while (running.load() > 0) policy.maintain(SteadyTime{1h});
  }
  for (const std::uint64_t lost : refused) EXPECT_EQ(lost, 0U);
  EXPECT_GT(policy.status(SteadyTime{1h}).rotations_by_fill, 2U);
}

}  // namespace
}  // namespace secondsight::admission
