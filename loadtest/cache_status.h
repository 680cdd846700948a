#pragma once
#include <cstdint>
#include <string_view>

namespace secondsight::loadtest {

/// What one cache says about one response in its member of the Cache-Status field. RFC 9211. The
/// views point into the field's text.
struct CacheStatus {
  bool found = false;  // the cache has a member
  bool hit = false;
  bool stored = false;
  bool collapsed = false;
  std::string_view forward;  // fwd: why it went on; empty for a hit
  std::string_view detail;   // token or string without its quotes
};

/// Reads the member of `cache` from a field value (a structured-field list; RFC 8941). The last one
/// counts when there are several. Unknown parameters are passed over; text that is no list is not
/// found.
CacheStatus read_cache_status(std::string_view field, std::string_view cache);

}  // namespace secondsight::loadtest
