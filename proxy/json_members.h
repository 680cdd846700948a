#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace secondsight::proxy {

/// The names that stand more than once in the outermost object of a JSON text, each once, in their
/// order. A parser keeps only the last of them (RFC 8259 4 leaves it open), and so would do less
/// than was asked. A text that is no JSON has none.
std::vector<std::string> repeated_members(std::string_view json);

}  // namespace secondsight::proxy
