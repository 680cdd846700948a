#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "config/settings.h"

namespace secondsight::proxy {

/// What an operator's words cannot be read as, for people.
struct BadUsage {
  std::string reason;
};

/// Where the admin listener of a proxy with these settings is, unless `given` (--admin) says where.
std::variant<ListenAddress, BadUsage> find_admin(const std::optional<std::string>& given,
                                                 const AdminSettings& settings);

/// What a running proxy said.
struct AdminAnswer {
  long status = 0;
  std::string body;     // at most 1 MiB
  std::string failure;  // why there is none; else empty
};

/// Posts to a proxy's admin listener and waits for the answer. Blocks.
AdminAnswer post_to_admin(const ListenAddress& address, std::string_view path,
                          std::string_view content_type, const std::string& body,
                          std::chrono::seconds patience);

}  // namespace secondsight::proxy
