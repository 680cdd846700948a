#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cache/purge_list.h"
#include "cache/sites.h"

namespace secondsight::proxy {

/// What one request asks to purge. The text of an URL or a prefix is that of the keys it matches.
struct PurgeRequest {
  std::vector<cache::Purge> purges;
  bool is_soft() const noexcept {
    return !purges.empty() && purges.front().kind == cache::PurgeKind::Soft;
  }
};

/// All that is wrong with a request, for people.
using PurgeFaults = std::vector<std::string>;

/// Reads the JSON of POST /purge: an object of "url" and "prefix" and "tag" (a text each), "urls"
/// and "prefixes" and "tags" (lists of them), "everything" (true), any of them together, and "soft"
/// (true or false). Nothing else is taken, and nothing that would purge nothing. docs/purge.md.
std::variant<PurgeRequest, PurgeFaults> read_purge_request(std::string_view json,
                                                           const cache::Sites& sites);

/// The purge of what is stored for that URL, in all variants and parts: `host` and `target` as in a
/// Request. Empty: its key is longer than cache::kPurgeTextBytesMax.
std::optional<cache::Purge> purge_of_url(std::string_view host, std::string_view target,
                                         cache::PurgeKind kind, const cache::Sites& sites);

}  // namespace secondsight::proxy
