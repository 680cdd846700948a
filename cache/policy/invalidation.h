#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cache/policy/fields.h"

namespace secondsight::cache::policy {

/// What of an origin's resources a non-error answer to an unsafe request makes doubtful besides the
/// request's own target: those that Location and Content-Location of the response name, as targets
/// in origin-form, where they lie at the same origin (scheme, host and port). `scheme` and `host`
/// (with its port, if it has one) are those of the request. References are resolved against the
/// request's target. RFC 9111 4.4, RFC 9110 4.3.1, RFC 3986 5.2.
std::vector<std::string> also_invalidated(std::string_view scheme, std::string_view host,
                                          std::string_view target, const FieldBlock& response);

}  // namespace secondsight::cache::policy
