#include "proxy/authority.h"

#include <algorithm>

#include "proxy/char_set.h"

namespace secondsight::proxy {
namespace {

constexpr CharSet kRegName{
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%!$&'()*+,;="};
constexpr CharSet kAddress6{"0123456789abcdefABCDEF:."};
constexpr unsigned kPortMax = 65'535;

bool has_whole_escapes(std::string_view text) {
  for (auto at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1))
    if (text.size() - at < 3 || !kHexDigits.has_all(text.substr(at + 1, 2))) return false;
  return true;
}

bool is_port(std::string_view text) {
  if (text.size() > 5 || !kDigits.has_all(text)) return false;
  unsigned port = 0;
  for (const char c : text) port = port * 10 + static_cast<unsigned>(c - '0');
  return port <= kPortMax;
}

/// Where the host ends, 0 when it is none.
std::size_t host_end(std::string_view text) {
  if (text.starts_with('[')) {
    const auto bracket = text.find(']');
    if (bracket == std::string_view::npos || bracket < 3) return 0;  // "[::]" is the shortest
    return kAddress6.has_all(text.substr(1, bracket - 1)) ? bracket + 1 : 0;
  }
  const auto end = std::min(text.find(':'), text.size());
  const std::string_view host = text.substr(0, end);
  return kRegName.has_all(host) && has_whole_escapes(host) ? end : 0;
}

}  // namespace

bool normalize_authority(std::string_view text, std::string& out) {
  const auto end = host_end(text);
  if (end == 0) return false;
  const std::string_view port = text.substr(end);
  if (!port.empty() && (port[0] != ':' || !is_port(port.substr(1)))) return false;
  out.assign(port.size() > 1 ? text : text.substr(0, end));
  std::transform(out.begin(), out.end(), out.begin(), ascii_lower);
  return true;
}

}  // namespace secondsight::proxy
