#pragma once
#include <span>
#include <string_view>

namespace secondsight {

/// The one of `known` that `word` was probably meant to be: the fewest inserted, deleted, changed
/// or swapped letters, and no more than a third of the word. Empty when nothing is that close.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known);

}  // namespace secondsight
