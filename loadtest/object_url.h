#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace secondsight::loadtest {

/// "/o/KEY/SIZE" with the key percent-encoded: every byte that is not unreserved (RFC 3986 2.3) as
/// upper-case hex, so that no cache's normalisation changes it.
std::string object_target(std::string_view key, std::uint64_t size_bytes);

/// What a target of that form names. `name` is the key as encoded: what body bytes are made from.
struct ObjectName {
  std::string_view name;
  std::uint64_t size_bytes = 0;
};
/// Empty for anything else; a query is not part of it.
std::optional<ObjectName> parse_object_target(std::string_view target);

}  // namespace secondsight::loadtest
