#include "config/address.h"

#include <algorithm>
#include <charconv>

#include <boost/url/ipv4_address.hpp>
#include <boost/url/ipv6_address.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

namespace secondsight {
namespace {

namespace urls = boost::urls;

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return port;
}

/// A host of letters, digits, dots, hyphens and underscores: what DNS and hosts files hold. The
/// URL grammar allows more, which no resolver answers.
bool is_host_name(std::string_view name) {
  constexpr std::size_t kMaxNameBytes = 253;  // RFC 1035 2.3.4, without the root's dot
  if (name.empty() || name.size() > kMaxNameBytes || name.front() == '.') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
  });
}

std::string to_lower(std::string_view text) {
  std::string lower{text};
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

/// The host of a parsed URL; empty when no connection could be made to it.
std::string host_of(const urls::url_view& url) {
  switch (url.host_type()) {
    case urls::host_type::ipv4:
      return url.host_ipv4_address().to_string();
    case urls::host_type::ipv6:
      return url.host_ipv6_address().to_string();
    case urls::host_type::name: {
      std::string name = to_lower({url.encoded_host().data(), url.encoded_host().size()});
      return is_host_name(name) ? name : std::string{};
    }
    case urls::host_type::none:
    case urls::host_type::ipvfuture:
      return {};
  }
  return {};
}

}  // namespace

std::optional<ListenAddress> parse_listen_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const auto port = parse_port(text.substr(colon + 1));
  if (!port || host.empty()) return std::nullopt;

  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    const auto address = urls::parse_ipv6_address({host.data(), host.size()});
    if (!address) return std::nullopt;
    return ListenAddress{address->to_string(), *port};
  }
  const auto address = urls::parse_ipv4_address({host.data(), host.size()});
  if (!address) return std::nullopt;
  return ListenAddress{address->to_string(), *port};
}

std::string to_string(const ListenAddress& address) {
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  return (is_ipv6 ? '[' + address.host + ']' : address.host) + ':' + std::to_string(address.port);
}

std::variant<OriginUrl, BadOriginUrl> parse_origin_url(std::string_view text) {
  const auto parsed = urls::parse_uri({text.data(), text.size()});
  if (!parsed) return BadOriginUrl{"is not a URL"};
  const urls::url_view& url = *parsed;

  OriginUrl origin;
  if (url.scheme_id() == urls::scheme::https) {
    origin.tls = true;
    origin.port = 443;
  } else if (url.scheme_id() != urls::scheme::http) {
    return BadOriginUrl{"has the scheme \"" + std::string{url.scheme()} + "\""};
  }
  if (url.has_userinfo()) return BadOriginUrl{"has a user name"};
  if (url.has_query()) return BadOriginUrl{"has a query"};
  if (url.has_fragment()) return BadOriginUrl{"has a fragment"};
  const std::string_view path{url.encoded_path().data(), url.encoded_path().size()};
  if (!path.empty() && path != "/") return BadOriginUrl{"has a path"};

  origin.host = host_of(url);
  if (origin.host.empty()) return BadOriginUrl{"has no usable host"};
  if (url.has_port()) {
    const auto port = parse_port({url.port().data(), url.port().size()});
    if (!port || *port == 0) return BadOriginUrl{"has a port outside 1 to 65535"};
    origin.port = *port;
  }
  origin.text = text;
  if (origin.text.back() == '/') origin.text.pop_back();
  return origin;
}

}  // namespace secondsight
