#pragma once
#include <cstdint>

#include "admission/bloom_math.h"

namespace secondsight::admission {

/// What the formulas of a structure promise before it is built, for `expected_keys` distinct keys
/// in each generation.
struct FilterPrediction {
  std::uint64_t memory_bytes = 0;  // of both generations
  WindowRates rates;               // of both generations, for keys never sighted
};

}  // namespace secondsight::admission
