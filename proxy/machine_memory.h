#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace secondsight::proxy {

/// The memory that this process may come to: the machine's, or less where a control group (a
/// container) has a limit.
std::uint64_t machine_memory_bytes();

/// What a `memory.max` file of cgroup v2 says; empty for "max" and for anything that is no number.
std::optional<std::uint64_t> read_memory_max(std::string_view text);

}  // namespace secondsight::proxy
