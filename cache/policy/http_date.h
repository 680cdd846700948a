#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "config/clock.h"

namespace secondsight::cache::policy {

/// All three forms of RFC 9110 5.6.7, exactly, but in any case (RFC 9111 4.2). Two-digit years by
/// its rule (more than 50 years ahead of `now` is past). A weekday must be a weekday's name;
/// whether it is the date's is not checked. Second 60 is the next minute's first.
std::optional<WallTime> parse_http_date(std::string_view text, WallTime now);

/// IMF-fixdate: "Sun, 06 Nov 1994 08:49:37 GMT".
std::string format_http_date(WallTime time);

}  // namespace secondsight::cache::policy
