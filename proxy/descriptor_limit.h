#pragma once
#include <cstdint>

#include "config/settings.h"

namespace secondsight::proxy {

/// Files and sockets that these settings may have open at once: connections of clients and to
/// origins, every segment of the disk cache, and what a process needs besides.
std::uint64_t descriptors_wanted(const Settings& settings, unsigned workers) noexcept;

/// Raises the process's limit of open files (RLIMIT_NOFILE) to what the settings may need, as far
/// as the hard limit allows; a line says so where it does not.
void raise_descriptor_limit(const Settings& settings) noexcept;

}  // namespace secondsight::proxy
