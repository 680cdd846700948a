#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "admission/fingerprint.h"
#include "cache/key.h"
#include "cache/key_rules.h"
#include "cache/policy/fields.h"
#include "config/settings.h"

namespace secondsight::cache {

/// The rules of every [[site]], found by a request's host. Whoever needs the key of a request asks
/// here, so that all agree. Made once from the settings, then never changed: any thread may use it.
///
/// `host` is what a request names, in lower case and with its port, if any; the site is that of the
/// host without port: the one that names it, else of the longest "*." that fits, else "*", else
/// none. `target` is in origin-form. `fields` are the request's, as received.
class Sites {
 public:
  /// The seed must outlive it.
  Sites(const Settings& settings, const admission::FingerprintSeed& seed);

  /// The key under which the answer to this request is stored, whatever its method.
  CacheKey primary_key(std::string_view host, std::string_view target,
                       const policy::FieldBlock& fields) const;

  /// What the origin is asked for: `target`, but for dot segments where the key has none.
  std::string forwarded_target(std::string_view host, std::string_view target) const;

  /// How long past its freshness a response may answer for a failing origin, though nobody said so.
  std::chrono::milliseconds stale_if_error(std::string_view host) const noexcept;

 private:
  struct Site {
    KeyRules rules;
    std::chrono::milliseconds stale_if_error{};
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };
  using ByName = std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>>;

  const Site& find(std::string_view host) const noexcept;

  const admission::FingerprintSeed& seed_;
  std::vector<Site> sites_;  // the first: of all hosts that no other names
  ByName named_;             // host -> index in sites_
  ByName below_;             // of "*.example.com": "example.com"
};

}  // namespace secondsight::cache
