#pragma once
#include <span>
#include <string_view>

#include "config/settings.h"

namespace secondsight {

class SettingReader;

/// One key of the configuration file: where it stands, and how its value is read into Settings.
struct SettingKey {
  std::string_view table;
  std::string_view name;
  void (*read)(SettingReader&, Settings&);
};

/// Every key there is, table by table. The parser, the suggestions for unknown keys and the check
/// of the manual (docs/operations.md) all go by this list.
std::span<const SettingKey> setting_keys() noexcept;

}  // namespace secondsight
