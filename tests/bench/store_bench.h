#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

namespace secondsight::bench {

/// Appends and reads of objects of several sizes, against plain pwrite and pread of the same sizes.
boost::json::object measure_rates(const std::string& directory, unsigned rounds);

/// Memory and restart time against the number of objects. `keeps_last`: leaves the last directory.
boost::json::object measure_scale(const std::string& directory,
                                  const std::vector<std::uint64_t>& counts, bool keeps_last);

}  // namespace secondsight::bench
