#pragma once
#include <string>

#include "config/settings.h"

namespace secondsight::proxy {

/// What a configuration means, for `--check`: addresses, sizes, what the filter costs and how it
/// behaves beyond the planned traffic.
std::string describe(const Settings& settings);

}  // namespace secondsight::proxy
