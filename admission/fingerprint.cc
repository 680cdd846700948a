#include "admission/fingerprint.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace secondsight::admission {

FingerprintSeed::FingerprintSeed(const Bytes& bytes) noexcept : bytes_(bytes) {
  XXH3_generateSecret(secret_.data(), secret_.size(), bytes.data(), bytes.size());
  id_ = XXH3_64bits_withSecret("secondsight seed", 16, secret_.data(), secret_.size());
}

Fingerprint FingerprintSeed::fingerprint_of(std::string_view canonical_key) const noexcept {
  const XXH128_hash_t hash = XXH3_128bits_withSecret(canonical_key.data(), canonical_key.size(),
                                                     secret_.data(), secret_.size());
  return {hash.high64, hash.low64};
}

}  // namespace secondsight::admission
