#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"

namespace secondsight::admission {

/// How often the proxy calls AdmissionPolicy::maintain().
inline constexpr std::chrono::milliseconds kMaintenanceInterval{20};

/// Multiples of the planned keys that a report tells about.
inline constexpr double kReportedTraffic[] = {2, 10};

/// What the two-generation filter of these settings costs and does, a sentence a line: memory, bits
/// per key, rates, what happens at each multiple of the planned keys (above 1), what is to spare.
/// `label` stands before the first line, as many spaces before the others. All figures by
/// bloom_math.h. Only for settings that explain_bad_size() accepts.
std::string describe_filter(const AdmissionSettings& settings, std::string_view label,
                            std::span<const double> traffic = kReportedTraffic);

/// The same in one line: memory, keys and rates.
std::string summarise_filter(const AdmissionSettings& settings);

/// Why the proxy cannot keep this window, and what would be right; empty when all is well.
std::optional<std::string> explain_bad_window(std::chrono::milliseconds window);

/// What a filter stands beside, in bytes.
struct FilterSurroundings {
  std::uint64_t machine_bytes = 0;  // memory of the machine, or what its container may take
  std::uint64_t memory_bytes = 0;   // the memory tier
  std::uint64_t disk_bytes = 0;
};

/// What is possible, and hardly meant: a sentence each, with what to change. Settings as for
/// describe_filter().
std::vector<std::string> warn_of_filter(const AdmissionSettings& settings,
                                        const FilterSurroundings& around);

}  // namespace secondsight::admission
