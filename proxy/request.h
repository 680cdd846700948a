#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cache/policy/fields.h"
#include "config/address_range.h"

namespace secondsight::proxy {

/// One request head, framed without ambiguity and normalised: what parsing guarantees, nothing
/// behind it checks again. RFC 9112 3, 6.
struct Request {
  std::string method;  // as received, case matters
  std::string target;  // origin-form: path and query, bytes as received; "*" for OPTIONS *
  std::string host;    // authority: Host field, or the absolute-form's own; lower case, port kept
  int version = 11;    // 10 or 11
  cache::policy::FieldBlock fields;  // as received, all of them, in order

  std::optional<std::uint64_t> content_length;  // of the body, when given
  bool chunked = false;
  bool has_body() const noexcept { return chunked || content_length.value_or(0) > 0; }
  bool has_upgrade = false;         // an Upgrade field
  bool expects_continue = false;    // Expect: 100-continue (1.1 only)
  bool keep_alive = true;           // by version and Connection, RFC 9112 9.3
  std::optional<IpAddress> client;  // of a PURGE only: who sent it
  bool is_head() const noexcept { return method == "HEAD"; }
};

}  // namespace secondsight::proxy
