#pragma once
#include <iosfwd>

namespace secondsight::proxy {

/// secondsight sightings export --config FILE [--out FILE] [--force]: what the proxy that uses the
/// cache directory remembers, or the next one would, as a snapshot for another.
/// secondsight sightings import --config FILE [--host NAME] [--admin ADDRESS] WHAT...: adds
/// snapshots, and what access logs tell, to what it remembers, whether it is running or not.
/// docs/sightings.md. `arguments[0]` is "sightings". The exit code: 0, also where nothing was new;
/// 1: failed, or something was refused as a whole; 2: bad usage or configuration.
int run_sightings(int count, const char* const* arguments, std::ostream& out, std::ostream& error);

}  // namespace secondsight::proxy
