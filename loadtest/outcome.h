#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace secondsight::loadtest {

/// How one request ended. The order is that of the table below.
enum class Outcome : std::uint8_t {
  Ok,
  ConnectFailed,
  Disconnected,  // closed before the whole response came
  TimedOut,
  Malformed,    // not HTTP, or bytes after the response
  WrongStatus,  // not 200
  WrongLength,  // a whole response, but of another length
  WrongBytes,
};
inline constexpr std::size_t kOutcomes = 8;

/// Its word in reports, and what it counts as.
struct OutcomeFacts {
  std::string_view word;
  bool error = false;    // the client did not get its response
  bool corrupt = false;  // the client got a response that was not the object
};
constexpr OutcomeFacts facts_of(Outcome outcome) noexcept {
  constexpr std::array<OutcomeFacts, kOutcomes> kTable{{{"ok", false, false},
                                                        {"connect-failed", true, false},
                                                        {"disconnected", true, false},
                                                        {"timed-out", true, false},
                                                        {"malformed", true, false},
                                                        {"wrong-status", true, false},
                                                        {"wrong-length", false, true},
                                                        {"wrong-bytes", false, true}}};
  return kTable[static_cast<std::size_t>(outcome)];
}

}  // namespace secondsight::loadtest
