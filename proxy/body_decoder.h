#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "proxy/request_fault.h"

namespace secondsight::proxy {

/// Takes the framing off one request body, in pieces of any size. Chunk extensions and trailers are
/// read, bounded and dropped. Strict where leniency has been used to smuggle: a chunk size is 1 to
/// 16 hexadecimal digits, directly followed by ";" or CRLF; no bare CR or LF; no folded trailer.
/// Source: RFC 9112 6.3, 7.1.
class BodyDecoder {
 public:
  enum class Outcome : std::uint8_t { NeedMore, Data, End, Failed };
  struct Step {
    Outcome outcome = Outcome::NeedMore;
    std::size_t taken = 0;            // bytes that are done with once `data` is
    std::span<const std::byte> data;  // part of the input; for Data only, never empty then
  };

  void start_length(std::uint64_t body_bytes) noexcept;
  void start_chunked(std::uint64_t body_bytes_max, std::uint64_t trailer_bytes_max) noexcept;

  /// Goes on with `bytes`, which begin where the last step's taken bytes ended.
  Step next(std::span<const std::byte> bytes) noexcept;

  bool done() const noexcept { return state_ == State::Done; }
  /// Body bytes still to come, where the framing tells.
  std::optional<std::uint64_t> remaining() const noexcept;
  /// After Failed.
  RequestFault fault() const noexcept { return fault_; }

 private:
  enum class State : std::uint8_t {
    Length,
    SizeFirst,  // a chunk size's first digit
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerBegin,  // a trailer line, or the empty line that ends all
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
    Done,
    Failed,
  };
  Step take_data(std::span<const std::byte> bytes, std::size_t at, State after) noexcept;
  State after_byte(char c) noexcept;
  State after_size_byte(char c) noexcept;
  State after_trailer_byte(char c) noexcept;
  State fail(RequestFault fault) noexcept;

  State state_ = State::Done;
  RequestFault fault_ = RequestFault::Chunk;
  unsigned digits_ = 0;                // of the chunk size so far
  std::uint64_t left_ = 0;             // of the body or of the chunk
  std::uint64_t body_bytes_left_ = 0;  // until the limit
  std::uint64_t extra_bytes_left_ =
      0;  // extensions and trailers of the whole body, until their limit
};

}  // namespace secondsight::proxy
