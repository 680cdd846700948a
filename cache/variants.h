#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admission/fingerprint.h"
#include "cache/key.h"
#include "cache/object.h"

namespace secondsight::cache {

/// One stored response of a resource that varies, as the resource's marker lists it.
struct Variant {
  admission::Fingerprint fingerprint;  // of its key
  /// Of the key that a request would have which prefers its Content-Language to all others.
  std::optional<admission::Fingerprint> by_language;
  std::string etag;       // as received; empty: none, or not worth keeping here
  std::string vary_text;  // of its key; empty: too long to be kept here
  friend bool operator==(const Variant&, const Variant&) = default;
};

/// So many variants of one resource are found; the oldest are forgotten first. Whoever varies with
/// a field that every client sends differently cannot fill the cache with it.
inline constexpr std::size_t kVariantsMax = 64;

/// What a marker (an Object under the primary key) knows: which request fields select, since when,
/// and the latest variants, oldest first. RFC 9111 4.1.
std::vector<Variant> variants_of(const Object& marker);

/// How a response under `key` is listed. `by_language`: see above.
Variant make_variant(const CacheKey& key, std::string_view etag,
                     const std::optional<CacheKey>& by_language);
/// Whether all fields of `vary` (sorted) are among those that the marker names: then a response
/// with that Vary may stand under a key that the marker led to. `marker` null: it names none.
bool covers(const ObjectPtr& marker, const std::vector<std::string>& vary);

/// Whether a variant of that key can be among what is stored: false only where the list is full
/// without it.
bool may_have(const Object& marker, const admission::Fingerprint& fingerprint);

/// A marker of this primary key. `epoch` sets apart what was stored before the resource was last
/// invalidated; the clock's zero: it never was.
std::shared_ptr<Object> make_marker(const CacheKey& primary, const std::vector<std::string>& vary,
                                    WallTime epoch, const std::vector<Variant>& variants);

}  // namespace secondsight::cache
