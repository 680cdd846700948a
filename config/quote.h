#pragma once
#include <string>
#include <string_view>

namespace secondsight {

/// Appends `text` with control bytes, quotes, backslashes and bytes beyond ASCII escaped (\n, \",
/// \x1b), so that what a client or a file says can neither forge a line nor steer a terminal.
void append_escaped(std::string& to, std::string_view text);

/// `text` escaped and between double quotes, as messages show what somebody else wrote.
std::string quoted(std::string_view text);

}  // namespace secondsight
