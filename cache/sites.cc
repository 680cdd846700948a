#include "cache/sites.h"

#include <algorithm>
#include <utility>

#include "cache/target.h"

namespace secondsight::cache {
namespace {

constexpr std::string_view kScheme = "http";

std::string_view without_port(std::string_view host) noexcept {
  const std::size_t bracket = host.starts_with('[') ? host.find(']') : 0;
  return host.substr(0, host.find(':', std::min(bracket, host.size())));
}

}  // namespace

Sites::Sites(const Settings& settings, const admission::FingerprintSeed& seed) : seed_(seed) {
  const auto fallback = settings.cache.stale_if_error;
  sites_.push_back({KeyRules{}, fallback});
  for (const SiteSettings& site : settings.sites) {
    Site made{KeyRules(site), site.stale_if_error.value_or(fallback)};
    const std::size_t index = sites_.size();
    for (const std::string& host : site.hosts) {
      if (host == "*") {
        sites_.front() = made;
      } else if (host.starts_with("*.")) {
        below_.try_emplace(host.substr(2), index);
      } else {
        named_.try_emplace(host, index);
      }
    }
    sites_.push_back(std::move(made));
  }
}

const Sites::Site& Sites::find(std::string_view host) const noexcept {
  if (sites_.size() == 1) return sites_.front();
  host = without_port(host);
  if (!named_.empty()) {
    if (const auto found = named_.find(host); found != named_.end()) return sites_[found->second];
  }
  if (!below_.empty()) {
    for (auto dot = host.find('.'); dot != std::string_view::npos; dot = host.find('.', dot + 1)) {
      const auto found = below_.find(host.substr(dot + 1));
      if (found != below_.end()) return sites_[found->second];
    }
  }
  return sites_.front();
}

CacheKey Sites::primary_key(std::string_view host, std::string_view target,
                            const policy::FieldBlock& fields) const {
  const KeyRules& rules = find(host).rules;
  if (rules.is_empty()) return CacheKey::primary(kScheme, host, target, seed_);
  return CacheKey::of_text(rules.primary_text(kScheme, host, target, fields), seed_);
}

std::string Sites::forwarded_target(std::string_view host, std::string_view target) const {
  return find(host).rules.removes_dots() ? target_without_dots(target) : std::string(target);
}

std::chrono::milliseconds Sites::stale_if_error(std::string_view host) const noexcept {
  return find(host).stale_if_error;
}

}  // namespace secondsight::cache
