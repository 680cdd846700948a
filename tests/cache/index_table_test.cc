#include "cache/index_table.h"

#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace secondsight::cache {
namespace {

/// How tags are spread: evenly as hashes are, or as no hash would be.
enum class Spread { Even, AtTheStart, AtTheEnd, Clustered, FewValues };

std::uint64_t draw(Spread spread, std::mt19937_64& random) {
  switch (spread) {
    case Spread::Even:
      return random();
    case Spread::AtTheStart:
      return random() % 1'000;
    case Spread::AtTheEnd:
      return ~(random() % 1'000);
    case Spread::Clustered:
      return (random() % 8) << 61 | random() % 100;
    case Spread::FewValues:
      return random() % 8;
  }
  return 0;
}

class IndexTableModel : public ::testing::TestWithParam<Spread> {};

TEST_P(IndexTableModel, IsAMap) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    IndexTable table;
    std::map<std::uint64_t, std::uint32_t> model;
    // Phases in which inserts, then erases prevail: it grows, thins out and grows again.
    for (std::uint32_t step = 0; step < 6'000; ++step) {
      const std::uint64_t tag = draw(GetParam(), random);
      const std::uint64_t key = tag == 0 ? 1 : tag;  // 0 and 1 share an entry
      const bool growing = step / 1'500 % 2 == 0;
      const std::uint64_t choice = random() % 100;
      if (choice < (growing ? 60U : 20U)) {
        table.insert(tag, {step, ~step, step});
        model[key] = step;
      } else if (choice < 80) {
        EXPECT_EQ(table.erase(tag), model.erase(key) == 1);
      } else if (choice == 99) {
        random() % 2 == 0 ? table.fit() : table.reserve(random() % 2'000);
      }
      const std::uint64_t asked = draw(GetParam(), random);
      const auto expected = model.find(asked == 0 ? 1 : asked);
      const auto* const found = table.find(asked);
      ASSERT_EQ(found != nullptr, expected != model.end()) << asked;
      if (found != nullptr) {
        ASSERT_EQ(found->segment, expected->second);
        ASSERT_EQ(found->low, ~expected->second);
      }
    }
    ASSERT_EQ(table.size(), model.size());
    for (const auto& [tag, step] : model) {
      ASSERT_NE(table.find(tag), nullptr) << tag;
      ASSERT_EQ(table.find(tag)->segment, step);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, IndexTableModel,
                         ::testing::Values(Spread::Even, Spread::AtTheStart, Spread::AtTheEnd,
                                           Spread::Clustered, Spread::FewValues));

TEST(IndexTable, HasNothingBeforeTheFirstInsert) {
  IndexTable table;
  EXPECT_EQ(table.find(1), nullptr);
  EXPECT_FALSE(table.erase(1));
  EXPECT_EQ(table.size(), 0U);
  EXPECT_EQ(table.memory_bytes(), 0U);
  table.prefetch(1);
  table.fit();
}

TEST(IndexTable, DoesNotGrowWithinItsReservation) {
  IndexTable table;
  table.reserve(10'000);
  const auto bytes = table.memory_bytes();
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) table.insert(random(), {});
  EXPECT_EQ(table.memory_bytes(), bytes);
  EXPECT_LE(bytes, 10'000U * 26);
}

}  // namespace
}  // namespace secondsight::cache
