#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/detail.h"
#include "cache/object.h"
#include "cache/policy/fields.h"
#include "config/clock.h"
#include "proxy/origin.h"

namespace secondsight::proxy {

/// What of an origin's head is kept and passed on: end-to-end fields without Age and
/// Content-Length, with a Date (RFC 9110 6.6.1) and our Via; the facts read from it.
std::shared_ptr<cache::ObjectHead> make_object_head(const OriginHead& head,
                                                    const cache::policy::ExchangeTimes& times);

/// The stored head after `told` (make_object_head() of a 304, or of a 200 to HEAD) freshened it.
/// RFC 9111 4.3.4, 4.3.5.
std::shared_ptr<const cache::ObjectHead> freshened_head(const cache::ObjectHead& stored,
                                                        const cache::ObjectHead& told);

/// Interim heads of one response that are passed on; more are dropped.
inline constexpr std::size_t kInterimHeadsMax = 16;

/// What of an interim head is passed on: status line, end-to-end fields without Content-Length, our
/// Via. RFC 9110 7.6, 15.2.
std::string interim_head(const OriginHead& head);

/// The names in Trailer of fields that may follow a body, as a list; mostly empty. RFC 9110 6.6.2.
std::string announced_trailers(const OriginHead& head);

/// The names in Connection: what bears one of them, trailers included, is not passed on. RFC 9110
/// 7.6.1.
std::vector<std::string> connection_options(const OriginHead& head);

/// "HTTP/1.1 200 OK\r\n"
std::string status_line(int status, std::string_view reason);

/// How the request was answered, in the words of RFC 9211.
enum class Forward : std::uint8_t {
  Hit,   // not forwarded
  None,  // neither a hit nor forwarded: refused
  UriMiss,
  VaryMiss,
  Stale,
  Request,
  Bypass,
  Method,
  Partial,
};
std::string_view to_string(Forward f) noexcept;

struct CacheStatus {
  Forward forward = Forward::Hit;
  int forward_status = 0;      // the origin's, where it is not the one that is sent; 0: it is
  std::optional<Seconds> ttl;  // freshness left; negative: stale
  bool stored = false;
  std::optional<bool> collapsed;  // true: shared another's fetch; false: waited for one in vain
  std::string_view detail;        // an admission word, a storability word, or empty
};
/// "Cache-Status: secondsight; fwd=uri-miss; stored; detail=first-sighting\r\n": one line behind
/// those of the caches nearer the origin, which are among the response's own fields. RFC 9211 2.
void append_cache_status(std::string& out, const CacheStatus& status);
/// "Age: 12\r\n"
void append_age(std::string& out, Seconds age);

}  // namespace secondsight::proxy
