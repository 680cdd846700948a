#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/clock.h"
#include "loadtest/body.h"

namespace secondsight::loadtest {

/// The parts of a request that the origin answers by. Views last as long as the request's buffer.
struct OriginRequestHead {
  std::string_view method;
  std::string_view target;
  std::string_view if_none_match;
  std::string_view range;
  std::string_view if_range;
  bool keep_alive = true;
};

/// An answer: its head as ready bytes, and which bytes of which body follow (none where first ==
/// end).
struct OriginResponse {
  int status = 0;
  std::string head;
  std::optional<Body> body;
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

/// "bytes=2-5", "bytes=7-", "bytes=-3" against a body of `size_bytes`. RFC 9110 14.1.2.
struct ByteRange {
  enum class Kind : std::uint8_t { Ignored, Satisfiable, Unsatisfiable } kind = Kind::Ignored;
  std::uint64_t first = 0;
  std::uint64_t end = 0;  // one past the last
};
ByteRange read_range(std::string_view field, std::uint64_t size_bytes);

/// The answer to one request: a pure function. RFC 9110 9.3, 13.1, 14.
OriginResponse answer(const OriginRequestHead& request, std::chrono::seconds max_age, WallTime now);

}  // namespace secondsight::loadtest
