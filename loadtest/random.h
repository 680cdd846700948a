#pragma once
#include <cstdint>

namespace secondsight::loadtest {

/// SplitMix64's finaliser: every input bit reaches every output bit. Steele, Lea, Flood 2014.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// SplitMix64: the same numbers for the same seed on every machine, which the standard library's
/// distributions do not promise. One thread.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept : state_(seed) {}

  constexpr std::uint64_t next() noexcept { return mix64(state_ += 0x9e3779b97f4a7c15u); }
  /// In [0, 1), 53 bits.
  constexpr double uniform() noexcept { return to_unit(next()); }

  static constexpr double to_unit(std::uint64_t bits) noexcept {
    return static_cast<double>(bits >> 11) * 0x1.0p-53;
  }

 private:
  std::uint64_t state_;
};

}  // namespace secondsight::loadtest
