#include "cache/log/checksum.h"

#include <xxhash.h>

namespace secondsight::cache::log {

std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace secondsight::cache::log
