#pragma once
#include <string>
#include <string_view>

namespace secondsight::proxy {

/// Writes "host[:port]" in lower case to `out`, an empty port's colon removed. False for what is no
/// authority of an http URI: no host, user information, bytes outside uri-host, a port above 65535.
/// RFC 9110 4.2, RFC 3986 3.2.2.
bool normalize_authority(std::string_view text, std::string& out);

}  // namespace secondsight::proxy
