// At full size: more new keys than the filter was planned for.
#include <array>

#include <gtest/gtest.h>

#include "admission/bloom_math.h"
#include "admission/filter_report.h"
#include "admission/two_generation_filter.h"
#include "tests/admission/keys.h"

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;
using test::Keys;

constexpr SteadyTime kStart{1h};
constexpr std::chrono::milliseconds kWindow{24h};
constexpr std::uint64_t kPlannedKeys = 50'000'000;

/// Strangers that come evenly at `traffic` times the planned keys in a window, with maintenance
/// between them.
class Flood {
 public:
  Flood(TwoGenerationFilter& filter, unsigned traffic)
      : filter_(filter), traffic_(traffic), keys_(500 + traffic) {}

  /// One generation: until the next rotation by fill. The share of strangers taken for repeats.
  double run_generation() {
    const std::uint64_t before = keys_.taken();
    const std::uint64_t rotations = filter_.status(now_).rotations_by_fill;
    std::uint64_t repeats = 0;
    while (filter_.status(now_).rotations_by_fill == rotations) {
      repeats += sight_some();
      now_ = kStart + std::chrono::milliseconds(kWindow.count() * (keys_.taken() / kBatch) /
                                                (kPlannedKeys / kBatch * traffic_));
      filter_.maintain(now_);
    }
    return static_cast<double>(repeats) / static_cast<double>(keys_.taken() - before);
  }
  SteadyTime now() const { return now_; }

 private:
  // Few calls of maintain() beside the proxy's: each rotation comes later than it would there.
  static constexpr std::uint64_t kKeysPerCall = kPlannedKeys / 1000;
  static constexpr std::uint64_t kBatch = 16;

  std::uint64_t sight_some() {
    std::uint64_t repeats = 0;
    std::array<Fingerprint, kBatch> batch;
    for (std::uint64_t i = 0; i < kKeysPerCall; i += kBatch) {
      for (Fingerprint& key : batch) {
        key = keys_.next();
        filter_.prefetch(key);
      }
      for (const Fingerprint& key : batch) {
        repeats += filter_.sight(key) == Sighting::Repeat ? 1U : 0U;
      }
    }
    return repeats;
  }

  TwoGenerationFilter& filter_;
  unsigned traffic_;
  Keys keys_;
  SteadyTime now_ = kStart;
};

class FilterOverload : public testing::TestWithParam<unsigned> {};

TEST_P(FilterOverload, AtFullSizeTheWindowShrinksAndIsReportedAndTheRateStays) {
  const unsigned traffic = GetParam();
  const FilterSize size = size_filter(kPlannedKeys, 0.01);
  TwoGenerationFilter filter(size, kWindow, kStart);
  Flood flood(filter, traffic);
  const OverloadRates rates = overload_rates(size, traffic, 1000 / traffic);
  flood.run_generation();  // no keys in `previous` yet
  for (int generation = 1; generation < 3; ++generation) {
    const double rate = flood.run_generation();
    const FilterStatus status = filter.status(flood.now());
    // 450,000 of 50 million are taken for repeats: sigma is 0.15 % of the rate, the lines' own
    // scatter (1.5 / lines, as in filter_rate_test.cc) adds as much. Far below the bound's margin.
    EXPECT_LE(rate, rates.bound.average) << traffic << " times, seed " << test::test_seed();
    EXPECT_LE(rate, 0.01) << traffic << " times, seed " << test::test_seed();
    EXPECT_GE(rate, 0.95 * window_rates(size.keys_per_line()).average);
    // ... while by age alone it would be 15 % or more.
    EXPECT_GE(rates.by_age_alone.average, 15 * rate);
    EXPECT_EQ(status.rotations_by_age, 0U);
    const double hours =
        std::chrono::duration<double, std::ratio<3600>>(status.last_generation).count();
    EXPECT_NEAR(hours / (24 * rates.generation_share), 1, 0.03) << "reported for the metrics";
  }
  EXPECT_LE(filter.status(flood.now()).false_positive_rate, 2 * 0.01);
}

INSTANTIATE_TEST_SUITE_P(Traffic, FilterOverload, testing::Values(2U, 10U),
                         [](const auto& of) { return "Times" + std::to_string(of.param); });

}  // namespace
}  // namespace secondsight::admission
