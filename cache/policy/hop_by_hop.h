#pragma once
#include <string_view>

#include "cache/policy/fields.h"

namespace secondsight::cache::policy {

/// Whether a field of this name belongs to one connection: Connection, Keep-Alive,
/// Proxy-Connection, Proxy-Authentication-Info, Proxy-Authenticate, Proxy-Authorization, TE,
/// Trailer, Transfer-Encoding, Upgrade. RFC 9110 7.6.1, RFC 9111 3.1.
bool is_hop_by_hop(std::string_view name) noexcept;

/// Whether a field of this name may be passed on behind a body: nothing that framing, routing,
/// credentials, caching or the reading of the body depend on. RFC 9110 6.5.1.
bool may_be_trailer(std::string_view name) noexcept;

/// Whether end_to_end() removes a field of this name because a Connection of the same message lists
/// it. RFC 9110 7.6.1.
bool is_named_by_connection(const FieldBlock& received, std::string_view name) noexcept;

/// The fields that may cross a proxy: without hop-by-hop fields and those that Connection names
/// (which never removes Host, Content-Length, Cache-Control, Age, Date, ETag and other fields whose
/// loss would change the message's meaning for everyone behind us).
FieldBlock end_to_end(const FieldBlock& received);

/// The fields to store: end_to_end() without Age (see fold_age()) and Content-Length (the stored
/// body has its own length). RFC 9111 3.1, 3.2.
FieldBlock storable_fields(const FieldBlock& received);

}  // namespace secondsight::cache::policy
