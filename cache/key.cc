#include "cache/key.h"

#include <utility>

#include "cache/policy/vary.h"
#include "cache/target.h"

namespace secondsight::cache {
CacheKey::CacheKey(std::string text, const admission::Fingerprint& fingerprint)
    : text_(std::move(text)), fingerprint_(fingerprint) {}

CacheKey CacheKey::primary(std::string_view scheme, std::string_view host, std::string_view target,
                           const admission::FingerprintSeed& seed) {
  std::string text;
  text.reserve(scheme.size() + host.size() + target.size() + 4);
  text.append(scheme).append("://");
  append_host(scheme, host, text);
  append_target(target, text);
  return of_text(std::move(text), seed);
}

CacheKey CacheKey::of_text(std::string text, const admission::FingerprintSeed& seed) {
  const admission::Fingerprint fingerprint = seed.fingerprint_of(text);
  return {std::move(text), fingerprint};
}

CacheKey CacheKey::from_stored(std::string text, const admission::Fingerprint& fingerprint) {
  return {std::move(text), fingerprint};
}

CacheKey CacheKey::variant(const std::vector<std::string>& vary, WallTime epoch,
                           const policy::FieldBlock& request,
                           const admission::FingerprintSeed& seed) const {
  return variant(policy::vary_text(vary, request), epoch, seed);
}

CacheKey CacheKey::variant(std::string_view vary_text, WallTime epoch,
                           const admission::FingerprintSeed& seed) const {
  std::string text = text_ + '\n';
  if (epoch != WallTime{})
    text.append("@").append(std::to_string(epoch.time_since_epoch().count())).append("\n");
  text.append(vary_text);
  return of_text(std::move(text), seed);
}

}  // namespace secondsight::cache
