#include "cache/policy/invalidation.h"

#include <optional>

#include <boost/url/parse.hpp>
#include <boost/url/url.hpp>

namespace secondsight::cache::policy {
namespace {

namespace urls = boost::urls;

std::string_view port_of(const urls::url_view& url) {
  if (url.has_port() && !url.port().empty()) return {url.port().data(), url.port().size()};
  return url.scheme_id() == urls::scheme::https ? "443" : "80";
}

bool is_same_origin(const urls::url_view& a, const urls::url_view& b) {
  const auto host = [](const urls::url_view& url) {
    const auto text = url.encoded_host();
    return std::string_view(text.data(), text.size());
  };
  return a.scheme_id() == b.scheme_id() && equals_ignoring_case(host(a), host(b)) &&
         port_of(a) == port_of(b);
}

/// Empty when it is no reference, or one to another origin.
std::optional<std::string> target_of(std::string_view reference, const urls::url_view& base) {
  const auto parsed = urls::parse_uri_reference({reference.data(), reference.size()});
  if (!parsed) return std::nullopt;
  urls::url resolved;
  if (!urls::resolve(base, *parsed, resolved) || !is_same_origin(resolved, base))
    return std::nullopt;
  const auto path_and_query = resolved.encoded_target();
  std::string target(path_and_query.data(), path_and_query.size());
  if (target.empty() || target.front() != '/') target.insert(0, "/");
  return target;
}

}  // namespace

std::vector<std::string> also_invalidated(std::string_view scheme, std::string_view host,
                                          std::string_view target, const FieldBlock& response) {
  std::vector<std::string> targets;
  const auto location = response.find("Location");
  const auto content_location = response.find("Content-Location");
  if (!location && !content_location) return targets;
  const std::string origin = std::string(scheme) + "://" + std::string(host);
  const std::string text = origin + std::string(target);
  const std::string root = origin + "/";
  auto base = urls::parse_uri(text);
  // A target that is no URI by the letter is no base for relative paths, but its origin is known.
  const bool is_base_known = base.has_value();
  if (!is_base_known) base = urls::parse_uri(root);
  if (!base) return targets;
  for (const auto& reference : {location, content_location}) {
    if (!reference) continue;
    const bool is_relative =
        !reference->starts_with('/') && reference->find("://") == std::string_view::npos;
    if (!is_base_known && is_relative) continue;
    if (auto found = target_of(*reference, *base)) targets.push_back(std::move(*found));
  }
  return targets;
}

}  // namespace secondsight::cache::policy
