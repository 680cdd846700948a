#pragma once
#include <span>
#include <string>
#include <string_view>

#include "config/settings.h"

namespace secondsight {

class SettingReader;

/// The table of which a file may hold many, each below a [[site]] line of its own.
inline constexpr std::string_view kSiteTable = "site";

/// One key of the configuration file: where it stands, and how its value is read into Settings.
struct SettingKey {
  std::string_view table;
  std::string_view name;
  /// A key of [[site]] goes to the last of Settings::sites.
  void (*read)(SettingReader&, Settings&);
};

/// A key of [admission] that one policy alone reads; beside any other it is a fault.
struct PolicyKey {
  std::string_view name;
  PolicyName policy;
};

/// How a file opens that table: "[cache]", "[[site]]". For what a file calls a table, escaped.
std::string heading(std::string_view table);

/// Every key there is, table by table. The parser, the suggestions for unknown keys and the check
/// of the manual (docs/operations.md) all go by this list.
std::span<const SettingKey> setting_keys() noexcept;

std::span<const PolicyKey> policy_keys() noexcept;

}  // namespace secondsight
