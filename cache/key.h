#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "admission/fingerprint.h"
#include "cache/policy/fields.h"
#include "config/clock.h"

namespace secondsight::cache {

/// What names one stored response: an unambiguous text and its fingerprint. The primary key is
/// scheme, host and target (RFC 9111 2); a variant adds the values of the fields that Vary
/// nominates.
///
/// Text of a primary key: "http://host/path?query", one line, where the host has no byte that could
/// be read as the target's; the rules of a site may change and lengthen it (KeyRules). Of a
/// variant: the primary key's text, a line feed, vary_text().
class CacheKey {
 public:
  /// Host: lower case, without the scheme's default port. Target: origin-form, kept byte for byte
  /// but for percent-encoding that RFC 3986 6.2.2 calls equal (hex digits upper case, unreserved
  /// decoded) and an empty path ("/"). A target with a broken escape is not touched. Dot segments
  /// are kept: origins disagree about them. `scheme` is "http" or "https".
  static CacheKey primary(std::string_view scheme, std::string_view host, std::string_view target,
                          const admission::FingerprintSeed&);

  /// The key of a text that was made by the same rules, or by those of a site (KeyRules).
  static CacheKey of_text(std::string text, const admission::FingerprintSeed&);

  /// A key as a disk record holds it. The fingerprint must be that of the text.
  static CacheKey from_stored(std::string text, const admission::Fingerprint& fingerprint);

  /// The key of the variant of this primary key that `request` selects. `epoch` sets apart what was
  /// stored before the resource was last invalidated; the clock's zero: it never was.
  CacheKey variant(const std::vector<std::string>& vary, WallTime epoch,
                   const policy::FieldBlock& request, const admission::FingerprintSeed&) const;

  /// The same, of a vary_text() that is known.
  CacheKey variant(std::string_view vary_text, WallTime epoch,
                   const admission::FingerprintSeed&) const;

  const std::string& text() const noexcept { return text_; }
  const admission::Fingerprint& fingerprint() const noexcept { return fingerprint_; }

 private:
  CacheKey(std::string text, const admission::Fingerprint& fingerprint);
  std::string text_;
  admission::Fingerprint fingerprint_;
};

}  // namespace secondsight::cache
