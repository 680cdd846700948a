#pragma once
#include <string_view>
#include <utility>
#include <vector>

#include "cache/policy/facts.h"
#include "cache/policy/fields.h"
#include "cache/policy/read_facts.h"

namespace secondsight::cache::policy {

using HeadLines = std::vector<std::pair<std::string_view, std::string_view>>;

inline FieldBlock head(const HeadLines& lines) {
  FieldBlock fields;
  for (const auto& [name, value] : lines) fields.add(name, value);
  return fields;
}

/// The moment at which the tests' responses are received: Sun, 06 Nov 1994 08:49:37 GMT.
inline constexpr WallTime kReceived{Seconds{784111777}};
inline constexpr std::string_view kReceivedText = "Sun, 06 Nov 1994 08:49:37 GMT";

/// A response that came without delay at kReceived.
inline constexpr ExchangeTimes kAtOnce{.request_sent = kReceived, .response_received = kReceived};

inline ResponseFacts response_facts(int status, const HeadLines& lines) {
  return read_facts(status, head(lines), kReceived);
}
inline RequestFacts get_facts(const HeadLines& lines) {
  return read_facts("GET", head(lines));
}

}  // namespace secondsight::cache::policy
