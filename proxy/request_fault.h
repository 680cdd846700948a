#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace secondsight::proxy {

/// Why a request was refused before anything behind the session saw all of it.
enum class RequestFault : std::uint8_t {
  RequestLine,       // not "token SP target SP HTTP/D.D"
  Version,           // neither HTTP/1.0 nor HTTP/1.1
  Method,            // CONNECT
  Target,            // no form of RFC 9112 3.2, or bytes that do not belong in it
  Host,              // missing, repeated or no authority
  FieldLine,         // no name, whitespace before the colon, a value its field forbids
  FoldedField,       // obs-fold
  LineEnding,        // bare CR or bare LF
  ControlByte,       // NUL and the like
  ContentLength,     // repeated, a list, signed, too large for 64 bits
  TransferEncoding,  // chunked is not last, or there twice, or HTTP/1.0
  UnknownCoding,     // another coding below chunked
  TwoLengths,        // Content-Length and Transfer-Encoding
  Chunk,             // bad chunk size, extension or trailer
  RequestLineTooLong,
  HeaderTooLarge,
  TooManyFields,
  BodyTooLarge,
  HeaderTimeout,
  BodyTimeout,
};
inline constexpr std::size_t kRequestFaults = 20;

/// The answer's status code.
int status_of(RequestFault fault) noexcept;
/// The word for logs and for the metric's label.
std::string_view word_of(RequestFault fault) noexcept;

/// A whole response with a line of text for body and "Connection: close". `status` is one of those
/// of the faults, or 500.
std::string_view closing_response(int status) noexcept;

}  // namespace secondsight::proxy
