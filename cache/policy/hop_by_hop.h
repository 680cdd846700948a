#pragma once
#include <string_view>

#include "cache/policy/fields.h"

namespace secondsight::cache::policy {

/// Whether a field of this name belongs to one connection: Connection, Keep-Alive, Proxy-Connection,
/// Proxy-Authentication-Info, Proxy-Authenticate, Proxy-Authorization, TE, Trailer, Transfer-Encoding,
/// Upgrade. RFC 9110 7.6.1, RFC 9111 3.1.
bool is_hop_by_hop(std::string_view name) noexcept;

/// The fields that may cross a proxy or be stored: without hop-by-hop fields and those that Connection
/// names (which never removes Host, Content-Length, Cache-Control, Age, Date, ETag and other fields
/// whose loss would change meaning).
FieldBlock end_to_end(const FieldBlock& received);

}  // namespace secondsight::cache::policy
