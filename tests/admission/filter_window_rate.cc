// Fills a filter of full size with strangers, window after window, and counts how many of them are
// taken for repeats: filter_window_rate [keys per generation] [rate]
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "admission/bloom_math.h"
#include "admission/two_generation_filter.h"
#include "tests/admission/keys.h"

namespace {

using namespace secondsight;
using namespace secondsight::admission;

constexpr std::uint64_t kCallsPerGeneration = 1000;  // of maintain(); a worst case for 20 a second
constexpr unsigned kGenerations = 4;

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t keys_per_generation =
      argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 50'000'000;
  const double rate = argc > 2 ? std::strtod(argv[2], nullptr) : 0.01;
  if (const auto fault = explain_bad_size(keys_per_generation, rate, ~std::uint64_t{0})) {
    std::fprintf(stderr, "%s\n", fault->c_str());
    return 2;
  }
  const FilterSize size = size_filter(keys_per_generation, rate);
  const SteadyTime start = std::chrono::steady_clock::now();
  TwoGenerationFilter filter(size, std::chrono::hours(24), start);
  const WindowRates formula = window_rates(size.keys_per_line());
  std::printf("%.1f MB for %llu keys at %g, seed %llu\n",
              static_cast<double>(size.memory_bytes()) / 1e6,
              static_cast<unsigned long long>(keys_per_generation), rate,
              static_cast<unsigned long long>(test::test_seed()));
  std::printf("formula: average %.4f %%, worst instant %.4f %%\n", 100 * formula.average,
              100 * formula.worst);

  test::Keys keys(1);
  for (unsigned generation = 0; generation < kGenerations; ++generation) {
    const auto began = std::chrono::steady_clock::now();
    const std::uint64_t first = keys.taken();
    std::uint64_t repeats = 0;
    double rate_at_end = 0;
    while (filter.status(start).rotations_by_fill <= generation) {
      for (std::uint64_t i = 0; i < keys_per_generation / kCallsPerGeneration; ++i) {
        repeats += filter.sight(keys.next()) == Sighting::Repeat ? 1U : 0U;
      }
      if (keys.taken() - first >= keys_per_generation) {
        rate_at_end = filter.status(start).false_positive_rate;
      }
      filter.maintain(start);
    }
    const auto asked = static_cast<double>(keys.taken() - first);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
    std::printf(
        "window %u: %.0f strangers, %.4f %% taken for repeats, at its end %.4f %%; %.0f ns each\n",
        generation, asked, 100 * static_cast<double>(repeats) / asked, 100 * rate_at_end,
        took.count() / asked);
  }
  return 0;
}
