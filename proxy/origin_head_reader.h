#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proxy/origin.h"

namespace secondsight::proxy {

/// Reads response heads line by line and accepts only what has one meaning: framing that two
/// readers could understand differently is how responses get attributed to the wrong request.
/// Interim (1xx) heads and trailers count against the head's limit. Pure; one thread.
/// RFC 9112 2.2, 4, 5, 6; RFC 9110 15.2.
class OriginHeadReader {
 public:
  enum class Step : std::uint8_t {
    More,       // not yet, or a line that does not matter
    Interim,    // this was the empty line that ends an interim (1xx) head: release() it
    Complete,   // this was the empty line that ends the final head
    Trailer,    // this is a field behind the body: trailer()
    Malformed,  // the response must not be used
  };
  enum class Http2 : std::uint8_t { Refused, Accepted };
  /// Whether 101 was asked for; then it comes as an interim head, and is the last.
  enum class Switching : std::uint8_t { Refused, Accepted };

  /// Starts with the next response. `max_bytes` bounds all heads and trailers of it together.
  void reset(std::size_t max_bytes, Http2 http2, Switching switching = Switching::Refused);
  /// One line with its line end. After Malformed only reset() may follow.
  Step take(std::string_view line);

  bool complete() const noexcept { return state_ == State::Trailers; }
  /// After Trailer; views of the line that was taken.
  cache::policy::FieldLine trailer() const noexcept { return trailer_; }
  /// The head, when take() said Interim or Complete; once.
  OriginHead release() noexcept { return std::move(head_); }

 private:
  enum class State : std::uint8_t { StatusLine, Fields, Trailers };
  bool take_status_line(std::string_view line);
  bool take_field(std::string_view line);
  Step take_trailer(std::string_view line);
  bool take_framing(std::string_view name, std::string_view value);

  OriginHead head_;
  cache::policy::FieldLine trailer_;
  std::size_t max_bytes_ = 0;
  std::size_t bytes_ = 0;
  State state_ = State::StatusLine;
  Http2 http2_ = Http2::Refused;
  Switching switching_ = Switching::Refused;
  bool is_coded_ = false;  // framed by its transfer coding
};

}  // namespace secondsight::proxy
