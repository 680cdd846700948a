#include "loadtest/body.h"

#include <algorithm>
#include <cstring>
#include <vector>
#include <xxhash.h>

#include "loadtest/random.h"

namespace secondsight::loadtest {
namespace {

/// The largest prime below 256 KiB: small enough to stay in a core's cache.
constexpr std::size_t kPatternBytes = 262'139;

const std::vector<std::byte>& pattern() {
  static const std::vector<std::byte> bytes = [] {
    constexpr std::uint64_t kPatternSeed = 1;
    Random random(kPatternSeed);
    std::vector<std::byte> made(kPatternBytes);
    for (std::byte& byte : made) byte = static_cast<std::byte>(random.next() & 0xff);
    return made;
  }();
  return bytes;
}

}  // namespace

Body::Body(std::string_view name, std::uint64_t size_bytes) noexcept
    : size_bytes_(size_bytes), hash_(XXH3_64bits_withSeed(name.data(), name.size(), size_bytes)) {
  const std::uint64_t words[] = {hash_, mix64(hash_)};
  static_assert(sizeof words == kStampBytes);
  for (std::size_t i = 0; i < kStampBytes; ++i) {
    stamp_[i] = static_cast<std::byte>((words[i / 8] >> (i % 8 * 8)) & 0xff);
  }
}

std::span<const std::byte> Body::run_at(std::uint64_t offset) const noexcept {
  if (offset >= size_bytes_) return {};
  const std::uint64_t left = size_bytes_ - offset;
  const auto piece = [left](std::span<const std::byte> from) {
    return from.first(static_cast<std::size_t>(std::min<std::uint64_t>(left, from.size())));
  };
  if (offset < kStampBytes) return piece(std::span(stamp_).subspan(offset));
  const std::uint64_t place = (hash_ % kPatternBytes + offset) % kPatternBytes;
  return piece(std::span(pattern()).subspan(place));
}

bool Body::matches(std::uint64_t offset, std::span<const std::byte> bytes) const noexcept {
  while (!bytes.empty()) {
    const auto run = run_at(offset);
    const std::size_t count = std::min(run.size(), bytes.size());
    if (count == 0 || std::memcmp(run.data(), bytes.data(), count) != 0) return false;
    bytes = bytes.subspan(count);
    offset += count;
  }
  return true;
}

bool BodyVerifier::feed(std::span<const std::byte> bytes) noexcept {
  right_ = right_ && expected_.matches(offset_, bytes);
  offset_ += bytes.size();
  return right_;
}

}  // namespace secondsight::loadtest
