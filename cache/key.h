#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "admission/fingerprint.h"
#include "cache/policy/fields.h"
#include "config/clock.h"

namespace secondsight::cache {

/// What names one stored response: an unambiguous text and its fingerprint. The primary key is
/// scheme, host and target (RFC 9111 2); a variant adds the values of the fields that Vary nominates.
class CacheKey {
 public:
  /// Host: lower case, without the scheme's default port. Target: origin-form, kept byte for byte but
  /// for percent-encoding that RFC 3986 6.2.2 calls equal (hex digits upper case, unreserved decoded) and an
  /// empty path ("/"). Dot segments are kept: origins disagree about them.
  static CacheKey primary(std::string_view scheme, std::string_view host, std::string_view target,
                          const admission::FingerprintSeed&);

  /// The key of the variant of this primary key that `request` selects. `epoch` sets apart what was stored
  /// before the resource was last invalidated; the epoch's zero: never.
  CacheKey variant(const std::vector<std::string>& vary, WallTime epoch,
                   const policy::FieldBlock& request, const admission::FingerprintSeed&) const;

  const std::string& text() const noexcept { return text_; }
  const admission::Fingerprint& fingerprint() const noexcept { return fingerprint_; }

 private:
  CacheKey(std::string text, const admission::FingerprintSeed&);
  std::string text_;
  admission::Fingerprint fingerprint_;
};

}  // namespace secondsight::cache
