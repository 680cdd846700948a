#include "proxy/request_fault.h"

#include <array>

namespace secondsight::proxy {
namespace {

struct Row {
  int status;
  std::string_view word;
};

// In the order of the enumeration.
constexpr std::array<Row, kRequestFaults> kRows{{
    {400, "request-line"},
    {505, "version"},
    {501, "method"},
    {400, "target"},
    {400, "host"},
    {400, "field-line"},
    {400, "folded-field"},
    {400, "line-ending"},
    {400, "control-byte"},
    {400, "content-length"},
    {400, "transfer-encoding"},
    {501, "unknown-coding"},
    {400, "two-lengths"},
    {400, "chunk"},
    {414, "request-line-too-long"},
    {431, "header-too-large"},
    {431, "too-many-fields"},
    {413, "body-too-large"},
    {408, "header-timeout"},
    {408, "body-timeout"},
}};

// The length of "NNN Reason\n" is part of the text; request_parser_test recomputes it.
#define SECONDSIGHT_CLOSING(text, length)                 \
  "HTTP/1.1 " text                                        \
  "\r\nConnection: close\r\nContent-Type: text/plain\r\n" \
  "Content-Length: " length "\r\n\r\n" text "\n"

}  // namespace

int status_of(RequestFault fault) noexcept {
  return kRows[static_cast<std::size_t>(fault)].status;
}

std::string_view word_of(RequestFault fault) noexcept {
  return kRows[static_cast<std::size_t>(fault)].word;
}

std::string_view closing_response(int status) noexcept {
  switch (status) {
    case 400:
      return SECONDSIGHT_CLOSING("400 Bad Request", "16");
    case 408:
      return SECONDSIGHT_CLOSING("408 Request Timeout", "20");
    case 413:
      return SECONDSIGHT_CLOSING("413 Content Too Large", "22");
    case 414:
      return SECONDSIGHT_CLOSING("414 URI Too Long", "17");
    case 431:
      return SECONDSIGHT_CLOSING("431 Request Header Fields Too Large", "36");
    case 501:
      return SECONDSIGHT_CLOSING("501 Not Implemented", "20");
    case 505:
      return SECONDSIGHT_CLOSING("505 HTTP Version Not Supported", "31");
    default:
      return SECONDSIGHT_CLOSING("500 Internal Server Error", "26");
  }
}

}  // namespace secondsight::proxy
