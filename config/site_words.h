#pragma once
#include "config/setting_reader.h"

namespace secondsight {

// The words that the keys of [[site]] list.

/// A host in lower case without its port: a name, "*.name", an address, "[address]" or "*".
extern const WordKind kSiteHost;
/// A query parameter's name as a URL spells it; a "*" at its end stands for any rest.
extern const WordKind kParamName;
/// A request field whose value may be part of a key; put into lower case.
extern const WordKind kKeyHeader;
/// A cookie's name; case matters (RFC 6265 4.1.1, RFC 9110 5.6.2).
extern const WordKind kKeyCookie;

}  // namespace secondsight
