#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/clock.h"

namespace secondsight::cache::policy {

/// Cache-Control of a response (RFC 9111 5.2.2, RFC 5861). Parsing is lenient, meaning is strict:
/// an unreadable delta-seconds is 0 (stale), never "absent"; overflow is 2^31 (1.2.2).
struct ResponseDirectives {
  std::optional<Seconds> max_age, s_maxage, stale_while_revalidate, stale_if_error;
  bool no_store = false, no_cache = false, is_private = false, is_public = false;
  bool must_revalidate = false, proxy_revalidate = false, must_understand = false;
  friend bool operator==(const ResponseDirectives&, const ResponseDirectives&) = default;
};

/// The field that the directives came from: the first of CDN-Cache-Control, Surrogate-Control and
/// Cache-Control that says anything to us decides alone. RFC 9213 2.2.
enum class DirectiveSource : std::uint8_t { CacheControl, SurrogateControl, CdnCacheControl };

/// Everything caching asks of a response head, parsed once by read_facts(); the rules never see
/// header text.
struct ResponseFacts {
  int status = 0;
  ResponseDirectives directives;
  DirectiveSource source = DirectiveSource::CacheControl;
  std::optional<Seconds> age;  // unreadable: none (RFC 9111 5.1)
  std::optional<WallTime> date, last_modified;
  std::optional<WallTime> expires;  // the epoch when invalid; none beside a targeted field
  std::vector<std::string> vary;    // lower-case names, sorted, once each; {"*"} matches nothing
  std::string etag;  // as received, quotes and W/ included; empty: none, or several that differ
  bool has_set_cookie = false;
  /// When a purge made it stale, however long it might have been fresh. Not of the head: told by
  /// whoever found it.
  std::optional<WallTime> stale_since{};
};

/// A response that varies with more fields than this is as good as Vary: *. Keys hold every name.
inline constexpr std::size_t kVaryNamesMax = 32;

enum class Method : std::uint8_t { Get, Head, Safe /* OPTIONS, TRACE */, Unsafe /* and unknown */ };

/// Everything caching asks of a request head. RFC 9111 5.2.1; Pragma: 5.4.
struct RequestFacts {
  Method method = Method::Get;
  std::optional<Seconds> max_age, min_fresh, max_stale;  // max_stale without a value: 2^31
  std::optional<Seconds> stale_if_error;                 // RFC 5861 4
  bool no_store = false, no_cache = false, only_if_cached = false;
  bool has_authorization = false;
  bool has_range = false;
  bool has_conditions = false;  // any If-* field but If-Range, which is part of the Range
};

struct ExchangeTimes {
  WallTime request_sent, response_received;
};

struct HeuristicLimits {
  int last_modified_percent = 10;  // RFC 9111 4.2.2
  Seconds lifetime_max{std::chrono::hours{24}};
};

}  // namespace secondsight::cache::policy
