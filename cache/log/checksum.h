#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace secondsight::cache::log {

/// XXH3-64 of `bytes`.
std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed) noexcept;

/// Where a record stands, as the seed of its checksums: what is valid at one place is valid at no
/// other, so that bytes of an earlier file never pass for ours. docs/on-disk-format.md.
struct RecordPlace {
  std::uint64_t seed_id = 0;
  std::uint32_t segment = 0;
  std::uint32_t offset_bytes = 0;

  constexpr std::uint64_t header_seed() const noexcept {
    return seed_id + (std::uint64_t{segment} << 32) + offset_bytes;
  }
  constexpr std::uint64_t front_seed() const noexcept { return header_seed() + kRoleStep; }
  constexpr std::uint64_t block_seed(std::uint32_t block) const noexcept {
    return header_seed() + (std::uint64_t{block} + 2) * kRoleStep;
  }

 private:
  static constexpr std::uint64_t kRoleStep = 0x9E3779B97F4A7C15;  // odd: never lands on a neighbour
};

}  // namespace secondsight::cache::log
