#include "admission/chance.h"

#include <cmath>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "config/units.h"
#include "tests/admission/keys.h"

namespace secondsight::admission {
namespace {

using test::Keys;
using test::test_seed;

constexpr Fingerprint kKey{1, 2};

/// Of `count` draws with this chance, within five standard errors.
void expect_share(std::uint64_t admitted, std::uint64_t count, double chance) {
  const auto n = static_cast<double>(count);
  EXPECT_NEAR(static_cast<double>(admitted) / n, chance, 5 * std::sqrt(chance * (1 - chance) / n))
      << "seed " << test_seed();
}

TEST(Draws, AreADrawEachWithTheChanceThatIsAskedFor) {
  for (const double chance : {0.001, 0.1, 0.37, 0.5, 0.999}) {
    Draws draws(test_seed());
    constexpr std::uint64_t kCount = 1'000'000;
    std::uint64_t drawn = 0;
    for (std::uint64_t i = 0; i < kCount; ++i) drawn += draws.draw(chance) ? 1U : 0U;
    expect_share(drawn, kCount, chance);
  }
}

TEST(Draws, OneSaysNothingOfTheNext) {
  Draws draws(test_seed());
  constexpr std::uint64_t kCount = 1'000'000;
  std::uint64_t both = 0;
  bool last = draws.draw(0.5);
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const bool now = draws.draw(0.5);
    both += last && now ? 1U : 0U;
    last = now;
  }
  // Neighbouring pairs share a draw, which makes them a little less even than independent ones:
  // the variance of their count is 5/16 n, not 3/16 n.
  EXPECT_NEAR(static_cast<double>(both), kCount / 4.0, 5 * std::sqrt(5.0 / 16 * kCount))
      << "seed " << test_seed();
}

TEST(Draws, TheSameSeedDrawsTheSame) {
  Draws one(7);
  Draws two(7);
  Draws other(8);
  unsigned differ = 0;
  for (int i = 0; i < 1000; ++i) {
    const bool drawn = one.draw(0.5);
    EXPECT_EQ(drawn, two.draw(0.5));
    differ += drawn != other.draw(0.5) ? 1U : 0U;
  }
  EXPECT_GT(differ, 0U);
}

TEST(Draws, ThreadsTogetherDrawWhatOneWould) {
  constexpr int kThreads = 4;
  constexpr int kEach = 50'000;
  Draws shared(3);
  std::vector<int> drawn(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&shared, &own = drawn[static_cast<std::size_t>(t)]] {
        for (int i = 0; i < kEach; ++i) own += shared.draw(0.3) ? 1 : 0;
      });
  }
  Draws alone(3);
  int expected = 0;
  for (int i = 0; i < kThreads * kEach; ++i) expected += alone.draw(0.3) ? 1 : 0;
  int sum = 0;
  for (const int own : drawn) sum += own;
  EXPECT_EQ(sum, expected) << "no draw twice, none left out";
}

TEST(FixedChance, AdmitsSoManyWhateverTheKeyAndItsLength) {
  FixedChance policy(0.2, test_seed());
  Keys keys(9);
  constexpr std::uint64_t kCount = 200'000;
  std::uint64_t admitted = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const Verdict verdict = policy.sight(i % 2 == 0 ? kKey : keys.next(), i);
    ASSERT_TRUE(verdict == Verdict::Chance || verdict == Verdict::NotChosen);
    admitted += admits(verdict) ? 1U : 0U;
  }
  expect_share(admitted, kCount, 0.2);
  EXPECT_EQ(policy.peek(kKey, 5), Verdict::Undecided);
  EXPECT_EQ(policy.chance(std::nullopt), 0.2);
}

TEST(FixedChance, OfOneIsCertain) {
  FixedChance policy(1, test_seed());
  EXPECT_EQ(policy.peek(kKey, std::nullopt), Verdict::Chance);
  for (int i = 0; i < 100'000; ++i)
    ASSERT_EQ(policy.sight(kKey, std::nullopt), Verdict::Chance) << "seed " << test_seed();
}

TEST(SizedChance, FallsWithTheBodyAsTheFormulaSays) {
  SizedChance policy(64_KiB, test_seed());
  struct Row {
    std::optional<std::uint64_t> body_bytes;
    double chance;
  };
  for (const Row& row : {Row{1_KiB, std::exp(-1.0 / 64)}, Row{64_KiB, std::exp(-1.0)},
                         Row{std::nullopt, std::exp(-1.0)}, Row{128_KiB, std::exp(-2.0)},
                         Row{512_KiB, std::exp(-8.0)}}) {
    EXPECT_DOUBLE_EQ(policy.chance(row.body_bytes), row.chance);
    EXPECT_EQ(policy.peek(kKey, row.body_bytes), Verdict::Undecided);
    constexpr std::uint64_t kCount = 400'000;
    std::uint64_t admitted = 0;
    for (std::uint64_t i = 0; i < kCount; ++i)
      admitted += admits(policy.sight(kKey, row.body_bytes)) ? 1U : 0U;
    expect_share(admitted, kCount, row.chance);
  }
}

TEST(SizedChance, IsCertainAtTheEnds) {
  SizedChance policy(1_KiB, test_seed());
  EXPECT_EQ(policy.peek(kKey, 0), Verdict::Chance);
  EXPECT_EQ(policy.peek(kKey, 1_GiB), Verdict::NotChosen);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(policy.sight(kKey, 0), Verdict::Chance);
    EXPECT_EQ(policy.sight(kKey, 1_GiB), Verdict::NotChosen);
  }
}

}  // namespace
}  // namespace secondsight::admission
