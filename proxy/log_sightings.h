#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "admission/access_log.h"
#include "admission/fingerprint.h"
#include "admission/two_generation_filter.h"
#include "cache/sites.h"
#include "config/clock.h"
#include "config/settings.h"
#include "proxy/request.h"
#include "proxy/request_parser.h"

namespace secondsight::proxy {

/// Lets a filter see the requests of a log at the log's own times, so that it ends up knowing what
/// a proxy would that had served them: every GET answered with 2xx or 304 is a sighting of the key
/// that the proxy makes of it. What a log does not tell, nobody knows: fields and cookies that a
/// [[site]] or Vary makes part of a key count as missing, and whether the response was storable.
///
/// Rotations fall due as in a proxy, by age and by fill, and are done at once. Lines that are a
/// little late (a log is written when a response ends) count at the time of the one before. One
/// thread.
class LogSightings {
 public:
  /// `filter` is empty and this object's alone until finish(). `host`: of lines that name none;
  /// empty: those are refused. All outlive it. `now`: no line is later.
  LogSightings(const Settings& settings, const admission::FingerprintSeed& seed,
               admission::TwoGenerationFilter& filter, std::string host, WallTime now);

  /// Returns why the proxy would have no key for that request; else empty, whether it is a sighting
  /// or not. Call in the order of the requests' times.
  std::string_view add(const admission::LoggedRequest& request);
  /// All is in the filter, as it would be now.
  void finish();

  std::uint64_t sightings() const noexcept { return sightings_; }
  /// A filter's time for a time of the log.
  static SteadyTime steady(WallTime time) noexcept { return SteadyTime(time.time_since_epoch()); }

 private:
  void go_on_to(SteadyTime time);
  void flush();

  const SteadyTime::duration window_;
  const WallTime now_;
  const std::string host_;
  const cache::Sites sites_;
  admission::TwoGenerationFilter& filter_;
  RequestParser parser_;
  Request request_;                   // for reuse, as the next
  std::string head_;                  // a request as the proxy would receive it
  std::vector<std::uint64_t> marks_;  // not yet in the filter
  SteadyTime marks_since_{};
  SteadyTime time_{};  // of the last line
  bool has_begun_ = false;
  std::uint64_t sightings_ = 0;
};

}  // namespace secondsight::proxy
