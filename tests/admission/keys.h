#pragma once
#include <cstdint>
#include <cstdlib>

#include "admission/fingerprint.h"

namespace secondsight::admission::test {

/// Fixed, so that a statistical test that passed keeps passing; another one by environment:
///   SECONDSIGHT_TEST_SEED=7 ctest ...
inline std::uint64_t test_seed() {
  const char* const text = std::getenv("SECONDSIGHT_TEST_SEED");
  return text == nullptr ? 20261130 : std::strtoull(text, nullptr, 10);
}

/// An endless supply of distinct keys, as even as real fingerprints: a bijection of the counter
/// (the finaliser of SplitMix64).
class Keys {
 public:
  explicit Keys(std::uint64_t stream) : stream_(test_seed() + (stream << 40U)) {}

  Fingerprint at(std::uint64_t index) const { return {mix(stream_ + index), mix(~index)}; }
  Fingerprint next() { return at(taken_++); }
  std::uint64_t taken() const { return taken_; }

 private:
  static std::uint64_t mix(std::uint64_t x) {
    x *= 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31U);
  }

  std::uint64_t stream_;
  std::uint64_t taken_ = 0;
};

}  // namespace secondsight::admission::test
