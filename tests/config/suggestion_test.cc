#include "config/suggestion.h"

#include <array>

#include <gtest/gtest.h>

namespace secondsight {
namespace {

constexpr std::array<std::string_view, 5> kKnown{"listen", "memory", "max_header", "window", "url"};

TEST(NearestWord, FindsSlipsOfTheFinger) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
      {"memroy", "memory"},   // two letters swapped
      {"memry", "memory"},    // one missing
      {"memoryy", "memory"},  // one too many
      {"nemory", "memory"},   // one changed
      {"max_haeders", "max_header"}, {"windows", "window"}, {"ulr", "url"}, {"ur", "url"},
  };
  for (const auto& [word, nearest] : cases) EXPECT_EQ(nearest_word(word, kKnown), nearest) << word;
}

TEST(NearestWord, IsSilentWhenNothingIsClose) {
  for (const std::string_view word : {"", "x", "disk", "timeout", "min_headings"}) {
    EXPECT_EQ(nearest_word(word, kKnown), "") << word;
  }
  EXPECT_EQ(nearest_word(std::string(100'000, 'm'), kKnown), "");
  EXPECT_EQ(nearest_word("memory", {}), "");
}

}  // namespace
}  // namespace secondsight
