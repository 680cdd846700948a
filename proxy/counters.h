#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "config/metrics.h"

namespace secondsight::proxy {

/// How a request ended: one counter and one access-log word each.
enum class Outcome : std::uint8_t {
  Hit,          // answered from the cache, nothing asked
  StaleHit,     // answered stale, as the response's own directives allow
  Revalidated,  // answered from the cache after the origin said 304
  Miss,         // fetched, alone or with others
  Bypass,       // passed on without asking the cache: unsafe and unknown methods
  Error,        // 502, 504 and the like made by us
};
inline constexpr std::size_t kOutcomeCount = 6;
std::string_view to_string(Outcome o) noexcept;

/// The request path's own counters. Thread-safe.
struct ProxyCounters {
  explicit ProxyCounters(Metrics& metrics);
  void count(Outcome outcome) noexcept { requests[static_cast<std::size_t>(outcome)]->add(); }
  std::array<Counter*, kOutcomeCount> requests;
  Counter& collapsed;  // requests that shared another's fetch
  Counter&
      continued_bodies;  // stored bodies that were lost under a reader and went on from the origin
  Counter& cut_bodies;   // responses cut because the rest of the body could not be had
  Counter& sent_bytes;   // body bytes to clients
};

}  // namespace secondsight::proxy
