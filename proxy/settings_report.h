#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "config/settings.h"

namespace secondsight::proxy {

/// What a configuration means, for `--check`: addresses, sizes, what the filter costs and how it
/// behaves beyond the planned traffic.
std::string describe(const Settings& settings);

/// A setting that the admission filter cannot work with, and why.
struct BadFilterSetting {
  std::string_view key;  // such as "admission.expected_keys"
  std::string reason;
};
/// Whether the filter can be what the settings want on this machine; empty when all is well.
std::optional<BadFilterSetting> find_bad_filter_setting(const AdmissionSettings& settings);

}  // namespace secondsight::proxy
