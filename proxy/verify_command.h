#pragma once
#include <chrono>
#include <iosfwd>
#include <string>

#include "cache/log/verify.h"

namespace secondsight::proxy {

/// A report for people, a fact a line; its last line says whether all is well.
std::string to_text(const cache::log::VerifyReport& report, std::chrono::duration<double> elapsed);
/// The same as one JSON object. Segments are numbers, offsets and lengths bytes.
std::string to_json(const cache::log::VerifyReport& report, std::chrono::duration<double> elapsed);

/// secondsight verify --config FILE [--json]: reads every record of the disk cache while no proxy
/// uses it, and changes nothing. `arguments[0]` is "verify". The exit code: 0: all is well; 1: a
/// damaged place, or one that cannot be read; 2: bad usage or configuration.
int run_verify(int count, const char* const* arguments, std::ostream& out, std::ostream& error);

}  // namespace secondsight::proxy
