// Prints the sizing table of docs/admission.md.
#include <cstdio>

#include "admission/bloom_math.h"

int main() {
  using namespace secondsight::admission;
  std::printf(
      "| rate | bits per key and generation | worst instant | bits set | 50 million keys |\n");
  for (const double rate : {0.1, 0.03, 0.02, 0.01, 0.005, 0.001, 0.0001}) {
    const double keys = keys_per_line_for(rate);
    std::printf("| %g | %.2f | %.3f %% | %.0f %% | %.1f MB |\n", rate, kHalfLineBits / keys,
                100 * window_rates(keys).worst, 100 * expected_fill(keys),
                static_cast<double>(size_filter(50'000'000, rate).memory_bytes()) / 1e6);
  }
  const double planned = keys_per_line_for(0.01);
  std::printf(
      "without rotation by fill, planned for 0.01: %.1f %% at twice the keys, %.1f %% at ten "
      "times\n",
      100 * window_rates(2 * planned).average, 100 * window_rates(10 * planned).average);
  return 0;
}
