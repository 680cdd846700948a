#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/clock.h"

namespace secondsight::admission {

/// One request as an access log tells it.
struct LoggedRequest {
  WallTime time;
  std::string method;  // empty: what came was no request (a port scan, a timeout); no target either
  std::string host;    // with its port, if any, as logged; empty: the line has none
  std::string target;  // as received, escapes of the log undone
  int status = 0;      // 0: the client got no head
  std::optional<std::uint64_t> body_bytes;
};

/// Reads one line, without its end, in any of these formats; which one, the line itself tells:
///
/// - Common and Combined, as Apache and nginx write them: host ident user [time] "request" status
///   bytes, whatever follows; also with the virtual host in front (Apache's vhost_combined). Its
///   ports 80 and 443 are left out, as clients do.
/// - JSON: the proxy's own access log (time, method, host, target, status, body_bytes); nginx's,
///   written with escape=json, by the names of its variables: time_iso8601, msec or time_local;
///   request_method and request_uri, or request; http_host or host; status; body_bytes_sent or
///   bytes_sent. Numbers may stand in quotes. Other names are ignored.
///
/// Returns why the line is none, as a few words, and leaves `request` unspecified; empty: all is
/// well. Pure; allocates for the parts alone (JSON: for the whole line).
std::string_view parse_access_line(std::string_view line, LoggedRequest& request);

/// "2026-11-30T21:03:29Z", with a fraction (what is finer than milliseconds is cut off), "+01:00"
/// or
/// "+0100" for "Z". ISO 8601 as RFC 3339 has it. Empty: it is none.
std::optional<WallTime> parse_iso_time(std::string_view text);
/// "30/Nov/2026:21:03:29 +0100". Empty: it is none.
std::optional<WallTime> parse_log_time(std::string_view text);

}  // namespace secondsight::admission
