#include "config/quote.h"

namespace secondsight {

void append_escaped(std::string& to, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      to += '\\';
      to += c;
    } else if (c == '\n') {
      to += "\\n";
    } else if (c == '\r') {
      to += "\\r";
    } else if (c == '\t') {
      to += "\\t";
    } else if (byte < 0x20 || byte >= 0x7f) {
      to += "\\x";
      to += kHex[byte >> 4U];
      to += kHex[byte & 0x0fU];
    } else {
      to += c;
    }
  }
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  append_escaped(result, text);
  result += '"';
  return result;
}

}  // namespace secondsight
