#pragma once
#include <optional>
#include <string_view>

#include "cache/policy/facts.h"

namespace secondsight::cache::policy {

/// What a CDN-Cache-Control field (all its lines joined) tells us in place of Cache-Control and
/// Expires; empty when the field is empty or not a valid Dictionary, and so must be ignored as if
/// it had not been sent. RFC 9213 2.1, 2.2.
///
/// A strict parser, unlike Cache-Control's: keys in lower case, of equal keys the last. A directive
/// whose value has a type that it cannot have is no permission, but still a restriction; freshness
/// of a wrong type, or negative, is 0. A restriction that is ?0 is not there.
std::optional<ResponseDirectives> read_cdn_cache_control(std::string_view field_value);

/// What a Surrogate-Control field (all its lines joined) tells this surrogate in place of
/// Cache-Control and Expires; empty when no caching directive in it is for us (content="ESI/1.0"
/// alone decides nothing about caching). W3C Edge Architecture Specification 2.2, 2.3.
///
/// Read as leniently as Cache-Control and with its directives, too. max-age=600+60 adds 60 seconds
/// of stale-while-revalidate. ;secondsight behind a directive means us, goes before the same
/// directive without a target, and another's name means another. no-store-remote is no-store.
std::optional<ResponseDirectives> read_surrogate_control(std::string_view field_value);

}  // namespace secondsight::cache::policy
