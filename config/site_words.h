#pragma once
#include <string>

#include "config/setting_reader.h"

namespace secondsight {

// The words that the keys of [[site]] list: what reads one, as WordKind::read, and its kind.

std::string read_site_host(std::string& word);
std::string read_param_name(std::string& word);
std::string read_key_header(std::string& word);
std::string read_key_cookie(std::string& word);

/// A host in lower case without its port: a name, "*.name", an address, "[address]" or "*".
inline constexpr WordKind kSiteHost{"a host, such as \"example.com\",", read_site_host};
/// A query parameter's name as a URL spells it; a "*" at its end stands for any rest.
inline constexpr WordKind kParamName{"a parameter, such as \"page\" or \"utm_*\",",
                                     read_param_name};
/// A request field whose value may be part of a key; put into lower case.
inline constexpr WordKind kKeyHeader{"a field name, such as \"X-Tenant\",", read_key_header};
/// A cookie's name; case matters (RFC 6265 4.1.1, RFC 9110 5.6.2).
inline constexpr WordKind kKeyCookie{"a cookie's name, such as \"lang\",", read_key_cookie};

}  // namespace secondsight
