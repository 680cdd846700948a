#include "loadtest/simulate.h"

#include <chrono>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "config/units.h"
#include "loadtest/workload_options.h"

namespace secondsight::loadtest {
namespace {

class ListSource final : public RequestSource {
 public:
  explicit ListSource(std::vector<SourceRequest> requests) : requests_(std::move(requests)) {}
  bool next(SourceRequest& request) override {
    if (at_ == requests_.size()) return false;
    request = requests_[at_++];
    return true;
  }

 private:
  std::vector<SourceRequest> requests_;
  std::size_t at_ = 0;
};

Plan plan_of(std::vector<SourceRequest> requests) {
  ListSource source(std::move(requests));
  return make_plan(source);
}

/// Objects "0" to "count - 1", asked in order, `rounds` times.
Plan rounds_of(int rounds, int count, std::uint64_t size_bytes) {
  std::vector<SourceRequest> requests;
  for (int round = 0; round < rounds; ++round)
    for (int i = 0; i < count; ++i)
      requests.push_back({static_cast<double>(requests.size()), std::to_string(i), size_bytes});
  return plan_of(std::move(requests));
}

AdmissionSettings settings_of(PolicyName policy) {
  AdmissionSettings settings;
  settings.policy = policy;
  return settings;
}
const AdmissionSettings kSecondSighting = settings_of(PolicyName::SecondSighting);
const AdmissionSettings kAlways = settings_of(PolicyName::Always);

TEST(Simulate, WhatIsAskedOnceWritesNothing) {
  const SimulationResult result =
      simulate(rounds_of(1, 100, 1'000), kSecondSighting, {.disk_bytes = 1_MiB});
  EXPECT_EQ(result.hits(), 0u);
  EXPECT_EQ(result.written_bytes, 0u);
}

TEST(Simulate, TheSecondSightingIsWrittenAndTheThirdHits) {
  const Plan plan = rounds_of(3, 100, 1'000);
  const SimulationResult second = simulate(plan, kSecondSighting, {.disk_bytes = 1_MiB});
  EXPECT_EQ(second.disk_hits, 100u);
  EXPECT_EQ(second.memory_hits, 0u);
  EXPECT_EQ(second.hit_bytes, 100'000u);
  const SimulationResult always = simulate(plan, kAlways, {.disk_bytes = 1_MiB});
  EXPECT_EQ(always.disk_hits, 200u);
  EXPECT_EQ(always.admitted_bytes, second.admitted_bytes) << "each object once";
  EXPECT_GT(always.written_bytes, always.admitted_bytes) << "a segment's header";
}

TEST(Simulate, EveryPolicyRunsAndWritesItsShare) {
  const Plan plan = rounds_of(4, 100, 1'000);
  const SimulatedCacheSizes sizes{.disk_bytes = 1_MiB};
  const std::uint64_t all = simulate(plan, kAlways, sizes).disk_hits;
  EXPECT_EQ(all, 300u);
  for (const PolicyName policy : kPolicyNames) {
    SCOPED_TRACE(to_string(policy));
    const SimulationResult result = simulate(plan, settings_of(policy), sizes);
    EXPECT_EQ(result.admission_bytes > 0, remembers_sightings(policy));
    switch (policy) {
      case PolicyName::Always:
        EXPECT_EQ(result.disk_hits, 300u);
        break;
      case PolicyName::Never:
        EXPECT_EQ(result.disk_hits, 0u);
        EXPECT_EQ(result.written_bytes, 0u);
        break;
      case PolicyName::Probability:  // 0.1 of each of four sightings
        EXPECT_GT(result.disk_hits, 0u);
        EXPECT_LT(result.disk_hits, 150u);
        break;
      case PolicyName::SizeProbability:  // exp(-1/65) of each
        EXPECT_GT(result.disk_hits, 280u);
        break;
      case PolicyName::NthSighting:
        EXPECT_EQ(result.disk_hits, 100u);
        break;
      default:
        EXPECT_EQ(result.disk_hits, 200u);
    }
  }
}

TEST(Simulate, ACertainChanceIsAlways) {
  AdmissionSettings certain = settings_of(PolicyName::Probability);
  certain.probability = 1;
  AdmissionSettings large = settings_of(PolicyName::SizeProbability);
  large.size_scale_bytes = std::uint64_t{1} << 62U;
  const Plan plan = rounds_of(3, 200, 2'000);
  for (const SimulatedCacheSizes& sizes :
       {SimulatedCacheSizes{.disk_bytes = 1_MiB},
        SimulatedCacheSizes{.disk_bytes = 1_MiB, .memory_bytes = 1_MiB}}) {
    const SimulationResult always = simulate(plan, kAlways, sizes);
    for (const AdmissionSettings& settings : {certain, large}) {
      const SimulationResult result = simulate(plan, settings, sizes);
      EXPECT_EQ(result.disk_hits, always.disk_hits);
      EXPECT_EQ(result.memory_hits, always.memory_hits);
      EXPECT_EQ(result.written_bytes, always.written_bytes);
    }
  }
}

TEST(Simulate, AThirdSightingInMemoryIsWrittenAndASecondIsNot) {
  const AdmissionSettings third = settings_of(PolicyName::NthSighting);
  const SimulatedCacheSizes sizes{.disk_bytes = 1_MiB, .memory_bytes = 1_MiB};
  EXPECT_EQ(simulate(rounds_of(2, 100, 1'000), third, sizes).written_bytes, 0u);
  const SimulationResult result = simulate(rounds_of(3, 100, 1'000), third, sizes);
  EXPECT_EQ(result.memory_hits, 200u);
  EXPECT_GT(result.admitted_bytes, 100'000u);
}

TEST(Simulate, MoreSightingsWriteLess) {
  std::vector<SourceRequest> requests;
  for (int object = 0; object < 500; ++object)  // object n is asked for n mod 5 + 1 times
    for (int i = 0; i <= object % 5; ++i)
      requests.push_back({static_cast<double>(requests.size()), std::to_string(object), 100});
  const Plan plan = plan_of(std::move(requests));
  std::uint64_t last = simulate(plan, kSecondSighting, {.disk_bytes = 1_MiB}).admitted_bytes;
  for (const unsigned sightings : {3U, 4U, 5U}) {
    AdmissionSettings nth = settings_of(PolicyName::NthSighting);
    nth.sightings = sightings;
    const std::uint64_t bytes = simulate(plan, nth, {.disk_bytes = 1_MiB}).admitted_bytes;
    EXPECT_LT(bytes, last) << sightings;
    EXPECT_GT(bytes, 0u) << sightings;
    last = bytes;
  }
}

TEST(Simulate, AHitInMemoryIsWrittenWithoutAnotherFetch) {
  const SimulationResult result = simulate(rounds_of(3, 100, 1'000), kSecondSighting,
                                           {.disk_bytes = 1_MiB, .memory_bytes = 1_MiB});
  EXPECT_EQ(result.memory_hits, 200u);
  EXPECT_EQ(result.disk_hits, 0u);
  EXPECT_GT(result.admitted_bytes, 100'000u);
}

TEST(Simulate, WhatLeftMemoryIsFoundOnDiskAndComesBack) {
  std::vector<SourceRequest> requests{{0, "a", 2'000}, {1, "a", 2'000}};
  for (int i = 0; i < 1'000; ++i) requests.insert(requests.end(), 2, {2, std::to_string(i), 2'000});
  requests.insert(requests.end(), 2, {3, "a", 2'000});
  const SimulationResult result = simulate(plan_of(std::move(requests)), kSecondSighting,
                                           {.disk_bytes = 16_MiB, .memory_bytes = 256_KiB});
  EXPECT_EQ(result.disk_hits, 1u);
  EXPECT_EQ(result.memory_hits, 1'002u) << "every second request";
  EXPECT_LE(result.memory_bytes_peak, 256_KiB);
}

TEST(Simulate, LargeBodiesAreWrittenInPartsAndHit) {
  const Plan plan = plan_of({{0, "a", 3'000'000}, {1, "a", 3'000'000}, {2, "b", 5'000'000}});
  const SimulationResult result = simulate(plan, kAlways, {.disk_bytes = 8_MiB});
  EXPECT_EQ(result.disk_hits, 1u);
  EXPECT_GT(result.admitted_bytes, 3'000'000u);
  EXPECT_LT(result.admitted_bytes, 3'010'000u) << "b is more than half of the disk";
  const SimulationResult limited =
      simulate(plan, kAlways, {.disk_bytes = 8_MiB, .max_object = 1_MiB});
  EXPECT_EQ(limited.admitted_bytes, 0u);
}

TEST(Simulate, AFullDiskMakesRoomAndKeepsWhatIsHit) {
  std::vector<SourceRequest> requests;
  for (int i = 0; i < 2'000; ++i) {
    requests.push_back({0, std::to_string(i), 10'000});
    if (i % 10 == 0) requests.push_back({0, "hot", 1'000});
  }
  const SimulationResult result =
      simulate(plan_of(std::move(requests)), kAlways, {.disk_bytes = 1_MiB});
  EXPECT_EQ(result.disk_hits, 199u) << "hot is never missed again";
  EXPECT_GT(result.reappended_bytes, 0u);
  EXPECT_LE(result.reappended_bytes, result.admitted_bytes / 10);
  EXPECT_LE(result.disk_bytes_peak, 1_MiB);
}

TEST(Simulate, TheTracesClockEndsAWindowInGapsToo) {
  constexpr double kDay = 24 * 3'600;
  const auto thrice = [](double gap) {
    return plan_of({{0, "a", 10}, {gap, "a", 10}, {2 * gap, "a", 10}});
  };
  const auto hits = [](const Plan& plan) {
    return simulate(plan, kSecondSighting, {.disk_bytes = 1_MiB}).hits();
  };
  EXPECT_EQ(hits(thrice(0.5 * kDay)), 1u);
  EXPECT_EQ(hits(thrice(3 * kDay)), 0u) << "forgotten each time";
  EXPECT_EQ(admitted_requests(thrice(0.5 * kDay), kSecondSighting),
            (std::vector<bool>{false, true, true}));
  EXPECT_EQ(admitted_requests(thrice(3 * kDay), kSecondSighting), std::vector<bool>(3));
  EXPECT_EQ(admitted_requests(thrice(3 * kDay), kAlways), std::vector<bool>(3, true));
}

TEST(Simulate, TheSameRunTwiceIsTheSame) {
  const Plan plan = rounds_of(4, 300, 5'000);
  const SimulatedCacheSizes sizes{.disk_bytes = 1_MiB, .memory_bytes = 200_KiB};
  const SimulationResult one = simulate(plan, kSecondSighting, sizes);
  const SimulationResult two = simulate(plan, kSecondSighting, sizes);
  EXPECT_EQ(one.memory_hits, two.memory_hits);
  EXPECT_EQ(one.disk_hits, two.disk_hits);
  EXPECT_EQ(one.written_bytes, two.written_bytes);
  EXPECT_GT(one.written_bytes, 0u);
}

TEST(Simulate, ADiskTooSmallForTheLogIsAnError) {
  const Plan plan = rounds_of(1, 1, 1);
  EXPECT_NO_THROW(simulate(plan, kAlways, {.disk_bytes = kSimulatedDiskBytesMin}));
  EXPECT_THROW(simulate(plan, kAlways, {.disk_bytes = 100_KiB}), RunError);
}

TEST(Simulate, ModelsAreChargedWhatTheLogWrites) {
  const Plan plan = plan_of({{0, "a", 1}, {0, "bb", 1'000}, {0, "ccc", 100'000}, {0, "d", 0}});
  const ModelTrace trace = model_trace(plan, Medium::Disk);
  EXPECT_EQ(trace.body_bytes, (std::vector<std::uint64_t>{1, 1'000, 100'000, 0}));
  constexpr std::uint64_t kFooterEntry = 25;
  const std::uint64_t charged =
      std::accumulate(trace.charged_bytes.begin(), trace.charged_bytes.end(), std::uint64_t{0});
  EXPECT_EQ(simulate(plan, kAlways, {.disk_bytes = 16_MiB}).admitted_bytes,
            charged - plan.objects.size() * kFooterEntry);
}

TEST(Simulate, ModelsOfMemoryAreChargedAsTheTierCounts) {
  const Plan plan = rounds_of(1, 50, 10'000);
  const ModelTrace trace = model_trace(plan, Medium::Memory);
  const std::uint64_t charged =
      std::accumulate(trace.charged_bytes.begin(), trace.charged_bytes.end(), std::uint64_t{0});
  const std::uint64_t tier =
      simulate(plan, kSecondSighting, {.memory_bytes = 1_MiB}).memory_bytes_peak;
  EXPECT_NEAR(static_cast<double>(charged), static_cast<double>(tier),
              0.01 * static_cast<double>(tier));
}

}  // namespace
}  // namespace secondsight::loadtest
