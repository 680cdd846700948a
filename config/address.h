#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "config/settings.h"

namespace secondsight {

/// Reads "127.0.0.1:8080" or "[::1]:8080". Empty for anything else, host names included: what a
/// name resolves to may change between two starts.
std::optional<ListenAddress> parse_listen_address(std::string_view text);

/// "127.0.0.1:8080", "[::1]:8080".
std::string to_string(const ListenAddress&);

/// Why a text is no origin, as the rest of a sentence: "has a path".
struct BadOriginUrl {
  std::string reason;
};

/// Reads http://host[:port] or https://host[:port], RFC 3986. The default ports are 80 and 443.
std::variant<OriginUrl, BadOriginUrl> parse_origin_url(std::string_view text);

}  // namespace secondsight
