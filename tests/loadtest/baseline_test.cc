#include "loadtest/baseline.h"

#include <algorithm>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace secondsight::loadtest {
namespace {

/// Requests as letters: 'a' is object 0.
struct Letters {
  Letters(std::string_view letters, std::vector<std::uint64_t> bytes) {
    for (const char letter : letters) requests.push_back(static_cast<std::uint32_t>(letter - 'a'));
    trace.requests = requests;
    trace.body_bytes = bytes;
    trace.charged_bytes = std::move(bytes);
  }
  Letters(const Letters&) = delete;
  Letters& operator=(const Letters&) = delete;

  std::vector<std::uint32_t> requests;
  ModelTrace trace;
};

std::uint64_t hits_of(const ModelTrace& trace, std::uint64_t capacity, Eviction eviction) {
  return simulate_model(trace, capacity, eviction).hits;
}

TEST(Baseline, TheModelsByHand) {
  const Letters equal("abacba", {1, 1, 1});
  // LRU: only the second a (c evicts b, b evicts a). FIFO: that, and the second b (c evicts a).
  EXPECT_EQ(hits_of(equal.trace, 2, Eviction::LeastRecentlyUsed), 1u);
  EXPECT_EQ(hits_of(equal.trace, 2, Eviction::FirstIn), 2u);
  // c is not kept, so that a and b stay.
  EXPECT_EQ(simulate_clairvoyant(equal.trace, 2).hits, 3u);
  EXPECT_EQ(hits_bound(equal.trace, 2), 3u);
  // In one place: a stays throughout. The bound: 2 and 3 of the 6 places there are, not 3 more.
  EXPECT_EQ(hits_of(equal.trace, 1, Eviction::LeastRecentlyUsed), 0u);
  EXPECT_EQ(simulate_clairvoyant(equal.trace, 1).hits, 2u);
  EXPECT_EQ(hits_bound(equal.trace, 1), 2u);
}

TEST(Baseline, BytesOfHitsAndOfWhatWasAdmitted) {
  const Letters mixed("abab", {3, 5});
  const ModelResult fits = simulate_model(mixed.trace, 8, Eviction::LeastRecentlyUsed);
  EXPECT_EQ(fits.hits, 2u);
  EXPECT_EQ(fits.hit_bytes, 8u);
  EXPECT_EQ(fits.admitted_bytes, 8u);
  const ModelResult thrashes = simulate_model(mixed.trace, 7, Eviction::LeastRecentlyUsed);
  EXPECT_EQ(thrashes.hits, 0u);
  EXPECT_EQ(thrashes.admitted_bytes, 16u);
  const ModelResult foresees = simulate_clairvoyant(mixed.trace, 7);
  EXPECT_EQ(foresees.hit_bytes, 3u) << "a, which costs less for as long";
  EXPECT_EQ(foresees.admitted_bytes, 3u);
}

TEST(Baseline, ALargeObjectMakesRoomForSmallOnes) {
  const Letters mixed("abcabc", {10, 1, 1});
  EXPECT_EQ(simulate_clairvoyant(mixed.trace, 10).hits, 2u);
  EXPECT_EQ(hits_bound(mixed.trace, 10), 3u) << "not reached: a bound";
}

TEST(Baseline, WhatIsNotAdmittedOrTooLargeIsPassedOn) {
  Letters one("aaaa", {4});
  one.trace.admitted = {false, true, true, true};
  EXPECT_EQ(hits_of(one.trace, 4, Eviction::LeastRecentlyUsed), 2u);
  EXPECT_EQ(hits_of(one.trace, 3, Eviction::LeastRecentlyUsed), 0u);
  EXPECT_EQ(simulate_clairvoyant(one.trace, 3).hits, 0u);
  EXPECT_EQ(hits_bound(one.trace, 3), 0u);
  EXPECT_EQ(simulate_model(one.trace, 8, Eviction::FirstIn, 4).hits, 2u);
  EXPECT_EQ(simulate_model(one.trace, 8, Eviction::FirstIn, 3).hits, 0u);
}

/// The most hits that any choice of what to keep can have: every choice is tried.
std::uint64_t best_hits(const ModelTrace& trace, std::uint64_t capacity) {
  constexpr int kImpossible = -1;
  const std::size_t sets = std::size_t{1} << trace.body_bytes.size();
  const auto bytes_of = [&](std::size_t set) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < trace.charged_bytes.size(); ++i)
      if ((set >> i & 1) != 0) bytes += trace.charged_bytes[i];
    return bytes;
  };
  std::vector<int> best(sets, kImpossible);
  best[0] = 0;
  for (const std::uint32_t object : trace.requests) {
    std::vector<int> next(sets, kImpossible);
    for (std::size_t held = 0; held < sets; ++held) {
      if (best[held] == kImpossible) continue;
      const int hits = best[held] + static_cast<int>(held >> object & 1);
      const std::size_t at_hand = held | std::size_t{1} << object;
      for (std::size_t kept = 0; kept < sets; ++kept)
        if ((kept & ~at_hand) == 0 && bytes_of(kept) <= capacity)
          next[kept] = std::max(next[kept], hits);
    }
    best = std::move(next);
  }
  return static_cast<std::uint64_t>(*std::max_element(best.begin(), best.end()));
}

TEST(Baseline, ClairvoyantIsTheBestForEqualSizesAndNeverAboveTheBound) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const bool has_equal_sizes = seed % 2 == 0;
    std::vector<std::uint64_t> bytes(5);
    for (auto& size : bytes) size = has_equal_sizes ? 2 : 1 + random() % 4;
    std::string letters(12, ' ');
    for (char& letter : letters)
      letter = static_cast<char>('a' + static_cast<int>(random() % bytes.size()));
    const Letters tiny(letters, bytes);
    const std::uint64_t capacity = 2 + random() % 7;
    const std::uint64_t best = best_hits(tiny.trace, capacity);
    const std::uint64_t clairvoyant = simulate_clairvoyant(tiny.trace, capacity).hits;
    if (has_equal_sizes) {
      EXPECT_EQ(clairvoyant, best);
    } else {
      EXPECT_LE(clairvoyant, best);
    }
    EXPECT_LE(best, hits_bound(tiny.trace, capacity));
    EXPECT_LE(hits_of(tiny.trace, capacity, Eviction::LeastRecentlyUsed), best);
    EXPECT_LE(hits_of(tiny.trace, capacity, Eviction::FirstIn), best);
  }
}

}  // namespace
}  // namespace secondsight::loadtest
