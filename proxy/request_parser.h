#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "proxy/request.h"
#include "proxy/request_fault.h"

namespace secondsight::proxy {

/// What one request may cost.
struct RequestLimits {
  std::uint64_t header_bytes;  // request line and fields
  unsigned header_fields;
  std::uint64_t body_bytes;
};

/// Reads request heads from a connection's buffer, one after the other, and refuses all that two
/// recipients could read differently. A scan finds the head's end and judges its raw bytes; Beast
/// then parses what is known to be clean; what is left are the rules that need the whole head.
/// Bytes may come in any pieces. One thread. Source: RFC 9112 2.2, 3, 5, 6; RFC 9110 7.2.
class RequestParser {
 public:
  enum class Outcome : std::uint8_t { NeedMore, Complete, Failed };

  explicit RequestParser(const RequestLimits& limits);
  ~RequestParser();

  /// `bytes` is everything since the last reset() and may only grow (and move) between calls.
  /// `request` is the same object in all these calls; it is whole after Complete, and else not to
  /// be read.
  Outcome parse(std::string_view bytes, Request& request);
  /// After Complete: how many of the bytes were the head (with empty lines before it).
  std::size_t head_bytes() const noexcept { return scanned_; }
  /// Whether the request line has begun; false while nothing but empty lines came.
  bool started() const noexcept { return scanned_ > head_begin_; }
  /// After Failed.
  RequestFault fault() const noexcept { return fault_; }
  /// Makes ready for the next head.
  void reset() noexcept;

 private:
  struct Reader;
  enum class Scan : std::uint8_t { NeedMore, Complete, Failed };
  Scan scan(std::string_view bytes);
  bool feed(std::string_view bytes, Request& request);
  Scan fail(RequestFault fault) noexcept;
  Outcome too_large() noexcept;

  RequestLimits limits_;
  RequestFault fault_ = RequestFault::RequestLine;
  unsigned empty_lines_ = 0;
  unsigned lines_ = 0;                // ended so far, the request line included
  std::size_t scanned_ = 0;           // bytes judged so far
  std::size_t line_begin_ = 0;        // of the line being judged
  std::size_t head_begin_ = 0;        // behind the tolerated empty lines
  std::size_t request_line_end_ = 0;  // with its CRLF, once lines_ > 0
  std::size_t fed_ = 0;               // bytes Beast has had; 0 before the first
  std::unique_ptr<Reader> reader_;
};

}  // namespace secondsight::proxy
