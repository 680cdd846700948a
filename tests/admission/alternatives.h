#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#include "admission/classic_filter.h"
#include "admission/cuckoo_filter.h"
#include "admission/exact_set.h"
#include "admission/scalable_filter.h"
#include "tests/admission/keys.h"

// What the tests of all alternative structures share.
namespace secondsight::admission::test {

using Alternatives = testing::Types<ClassicFilter, ScalableFilter, CuckooFilter, ExactSet>;

struct AlternativeNames {
  template <typename T>
  static std::string GetName(int) {
    if (std::is_same_v<T, ClassicFilter>) return "Classic";
    if (std::is_same_v<T, ScalableFilter>) return "Scalable";
    if (std::is_same_v<T, CuckooFilter>) return "Cuckoo";
    return "Exact";
  }
};

inline constexpr SteadyTime kStart{std::chrono::hours(1)};
inline constexpr auto kWindow = std::chrono::seconds(1000);

/// Marks after which a generation made for `expected_keys` ends by fill.
template <typename T>
constexpr std::uint64_t keys_until_full(std::uint64_t expected_keys) {
  if (!std::is_same_v<T, ScalableFilter>) return expected_keys;
  std::uint64_t keys = 0;
  for (unsigned i = 0; i < kScalableSlices; ++i) {
    const std::uint64_t parts = expected_keys * kScalableGrowth << i;
    keys += (parts + kScalableParts - 1) / kScalableParts;  // each slice is rounded up
  }
  return keys;
}

/// A structure under a clock that is moved by hand.
template <typename T>
struct Timed {
  explicit Timed(std::uint64_t expected_keys, double rate = 0.0005,
                 SteadyTime::duration window = kWindow)
      : filter(expected_keys, rate, window, kStart) {}

  void pass(SteadyTime::duration time) { filter.maintain(now += time); }
  /// One rotation by age. The first call only ends the rotation before.
  void rotate() {
    pass(std::chrono::seconds(0));
    pass(kWindow);
  }
  std::uint64_t rotations() const {
    const FilterStatus status = filter.status(now);
    return status.rotations_by_age + status.rotations_by_fill;
  }
  /// How many of the keys with the numbers `first` to `end` are known.
  std::uint64_t count_repeats(const Keys& keys, std::uint64_t first, std::uint64_t end) const {
    std::uint64_t repeats = 0;
    for (std::uint64_t i = first; i < end; ++i) {
      repeats += filter.peek(keys.at(i)) == Sighting::Repeat ? 1U : 0U;
    }
    return repeats;
  }

  T filter;
  SteadyTime now = kStart;
};

}  // namespace secondsight::admission::test
