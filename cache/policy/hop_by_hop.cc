#include "cache/policy/hop_by_hop.h"

#include <algorithm>
#include <array>
#include <vector>

#include "cache/policy/list.h"

namespace secondsight::cache::policy {
namespace {

constexpr std::array<std::string_view, 10> kHopByHop{"Connection",
                                                     "Keep-Alive",
                                                     "Proxy-Connection",
                                                     "Proxy-Authentication-Info",
                                                     "Proxy-Authenticate",
                                                     "Proxy-Authorization",
                                                     "TE",
                                                     "Trailer",
                                                     "Transfer-Encoding",
                                                     "Upgrade"};

/// Fields that are meant for every recipient, so that naming them in Connection is an error (RFC
/// 9110 7.6.1) or an attack: it would strip credentials, routing or freshness from what we pass on.
constexpr std::array<std::string_view, 30> kNeverRemoved{"Accept-Encoding",
                                                         "Age",
                                                         "Authorization",
                                                         "Cache-Control",
                                                         "CDN-Cache-Control",
                                                         "Content-Encoding",
                                                         "Content-Length",
                                                         "Content-Location",
                                                         "Content-Range",
                                                         "Content-Type",
                                                         "Cookie",
                                                         "Date",
                                                         "ETag",
                                                         "Expires",
                                                         "Forwarded",
                                                         "Host",
                                                         "If-Match",
                                                         "If-Modified-Since",
                                                         "If-None-Match",
                                                         "If-Range",
                                                         "If-Unmodified-Since",
                                                         "Last-Modified",
                                                         "Location",
                                                         "Range",
                                                         "Set-Cookie",
                                                         "Surrogate-Control",
                                                         "Vary",
                                                         "Via",
                                                         "X-Forwarded-For",
                                                         "X-Forwarded-Proto"};

/// Fields that come too late behind a body, besides hop-by-hop ones and Content-*.
constexpr std::array<std::string_view, 33> kNeverTrailing{"Age",
                                                          "Allow",
                                                          "Alt-Svc",
                                                          "Authorization",
                                                          "Cache-Control",
                                                          "Cache-Status",
                                                          "CDN-Cache-Control",
                                                          "Clear-Site-Data",
                                                          "Cookie",
                                                          "Date",
                                                          "Expect",
                                                          "Expires",
                                                          "Forwarded",
                                                          "Host",
                                                          "If-Match",
                                                          "If-Modified-Since",
                                                          "If-None-Match",
                                                          "If-Range",
                                                          "If-Unmodified-Since",
                                                          "Last-Modified",
                                                          "Location",
                                                          "Max-Forwards",
                                                          "Pragma",
                                                          "Range",
                                                          "Refresh",
                                                          "Retry-After",
                                                          "Set-Cookie",
                                                          "Strict-Transport-Security",
                                                          "Surrogate-Control",
                                                          "Vary",
                                                          "Via",
                                                          "Warning",
                                                          "WWW-Authenticate"};

bool starts_ignoring_case(std::string_view text, std::string_view beginning) noexcept {
  return equals_ignoring_case(text.substr(0, beginning.size()), beginning);
}

template <class Names>
bool contains(const Names& names, std::string_view name) noexcept {
  return std::any_of(names.begin(), names.end(),
                     [name](std::string_view n) { return equals_ignoring_case(n, name); });
}

std::vector<std::string_view> connection_options(const FieldBlock& fields) {
  std::vector<std::string_view> options;
  for (const FieldLine line : fields) {
    if (!equals_ignoring_case(line.name, "Connection")) continue;
    ListMembers members(line.value);
    while (const auto option = members.next())
      if (!contains(kNeverRemoved, *option)) options.push_back(*option);
  }
  return options;
}

template <class Also>
FieldBlock without_hop_by_hop(const FieldBlock& received, Also is_dropped_too) {
  const std::vector<std::string_view> options = connection_options(received);
  FieldBlock kept;
  kept.reserve(received.text().size(), received.count());
  for (const FieldLine line : received) {
    if (is_hop_by_hop(line.name) || contains(options, line.name) || is_dropped_too(line.name))
      continue;
    kept.add(line.name, line.value);
  }
  return kept;
}

}  // namespace

bool is_hop_by_hop(std::string_view name) noexcept {
  return contains(kHopByHop, name);
}

bool may_be_trailer(std::string_view name) noexcept {
  if (equals_ignoring_case(name, "Content-Digest")) return true;  // made for it: RFC 9530 2
  return !is_hop_by_hop(name) && !starts_ignoring_case(name, "Content-") &&
         !starts_ignoring_case(name, "Access-Control-") && !contains(kNeverTrailing, name);
}

bool is_named_by_connection(const FieldBlock& received, std::string_view name) noexcept {
  for (const FieldLine line : received) {
    if (!equals_ignoring_case(line.name, "Connection")) continue;
    ListMembers members(line.value);
    while (const auto option = members.next())
      if (equals_ignoring_case(*option, name)) return !contains(kNeverRemoved, name);
  }
  return false;
}

FieldBlock end_to_end(const FieldBlock& received) {
  return without_hop_by_hop(received, [](std::string_view) { return false; });
}

FieldBlock storable_fields(const FieldBlock& received) {
  return without_hop_by_hop(received, [](std::string_view name) {
    return equals_ignoring_case(name, "Age") || equals_ignoring_case(name, "Content-Length");
  });
}

}  // namespace secondsight::cache::policy
