#include "loadtest/workload.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "loadtest/model_fit.h"
#include "loadtest/plan.h"
#include "loadtest/trace.h"
#include "tests/loadtest/test_files.h"

namespace secondsight::loadtest {
namespace {

constexpr std::uint64_t kSeed = 42;

std::vector<std::string> requests_of(const WorkloadModel& model, std::uint64_t seed) {
  ModelSource source(model, seed);
  std::vector<std::string> lines;
  SourceRequest request;
  while (source.next(request)) {
    lines.push_back(request.key + ',' + std::to_string(request.size_bytes) + ',' +
                    std::to_string(request.time_seconds));
  }
  return lines;
}

TEST(Workload, IsAPureFunctionOfItsSeed) {
  const WorkloadModel model = edge_web(5'000);
  const auto first = requests_of(model, kSeed);
  EXPECT_EQ(first.size(), 5'000u);
  EXPECT_EQ(first, requests_of(model, kSeed));
  EXPECT_NE(first, requests_of(model, kSeed + 1));
}

TEST(Workload, ASizeBelongsToItsKey) {
  std::map<std::string, std::uint64_t> sizes;
  ModelSource source(edge_web(20'000), kSeed);
  SourceRequest request;
  while (source.next(request)) {
    const auto [place, fresh] = sizes.emplace(request.key, request.size_bytes);
    EXPECT_EQ(place->second, request.size_bytes) << request.key;
  }
}

TEST(Workload, EndsForever) {
  ModelSource source(edge_web(1), kSeed);
  SourceRequest request;
  EXPECT_TRUE(source.next(request));
  EXPECT_FALSE(source.next(request));
  EXPECT_FALSE(source.next(request));
}

TEST(Workload, EdgeWebAsksThreeQuartersOfItsObjectsOnce) {
  for (const std::uint64_t requests : {20'000u, 80'000u}) {
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      ModelSource source(edge_web(requests), seed);
      const PlanShape shape = shape_of(make_plan(source));
      EXPECT_NEAR(shape.one_hit_object_share, 0.75, 0.015) << requests << " seed " << seed;
    }
  }
}

TEST(Workload, OneHitShareIsWhatIsAsked) {
  for (const double share : {0.6, 0.7, 0.9}) {
    WorkloadModel model = edge_web(50'000);
    model.one_hit_share = share;
    ModelSource source(model, kSeed);
    EXPECT_NEAR(shape_of(make_plan(source)).one_hit_object_share, share, 0.015) << share;
  }
}

TEST(Workload, NoTailWhereTheBodyAloneHasEnoughOneHits) {
  WorkloadModel model = edge_web(10'000);
  model.body_objects = 10'000'000;
  model.one_hit_share = 0.5;
  EXPECT_EQ(tail_share_for(model), 0);
}

TEST(Workload, TailKeysAreAskedOnceAndNeverMore) {
  ModelSource source(edge_web(50'000), kSeed);
  std::set<std::string> tail;
  SourceRequest request;
  while (source.next(request)) {
    if (request.key.front() != 't') continue;
    EXPECT_TRUE(tail.insert(request.key).second) << request.key;
  }
  EXPECT_GT(tail.size(), 1'000u);
}

TEST(Workload, BodyIsZipf) {
  WorkloadModel model = edge_web(200'000);
  model.body_objects = 2'000;  // each asked often enough for its rank to be its own
  model.burst_share = 0;
  for (const double exponent : {0.7, 0.9, 1.1}) {
    model.zipf_exponent = exponent;
    ModelSource source(model, kSeed);
    EXPECT_NEAR(shape_of(make_plan(source)).zipf_slope, exponent, 0.05);
  }
}

TEST(Workload, BurstsBringRequestsOfOneObjectTogether) {
  const auto median_distance = [](double burst_share) {
    WorkloadModel model = edge_web(50'000);
    model.burst_share = burst_share;
    ModelSource source(model, kSeed);
    return quantile_of(shape_of(make_plan(source)).sorted_distances, 0.5);
  };
  EXPECT_LT(median_distance(0.5) * 2, median_distance(0.0));
}

TEST(Workload, ScalingKeepsTheShape) {
  ModelSource small(edge_web(40'000), kSeed);
  ModelSource large(edge_web(160'000), kSeed);
  const PlanShape a = shape_of(make_plan(small));
  const PlanShape b = shape_of(make_plan(large));
  EXPECT_NEAR(a.best_hit_share, b.best_hit_share, 0.02);
  EXPECT_NEAR(a.one_hit_request_share, b.one_hit_request_share, 0.02);
}

TEST(Workload, PresetNames) {
  EXPECT_TRUE(preset("edge-web", 10));
  EXPECT_FALSE(preset("edge", 10));
  EXPECT_FALSE(preset("", 10));
}

// What docs/experiments.md says about the fit: the preset, with the trace's own share of one-hits,
// is near it.
TEST(Workload, EdgeWebIsNearTheTraceItWasFittedTo) {
  const std::string path = recorded_trace("bu98-proxy.csv.gz");
  NEED_RECORDED_TRACE(path);
  const auto reader = TraceReader::open(path);
  ASSERT_TRUE(reader);
  const Plan trace = make_plan(**reader);
  const PlanShape wanted = shape_of(trace);
  WorkloadModel model = edge_web(trace.requests.size());
  model.one_hit_share = wanted.one_hit_object_share;
  ModelSource source(model, 1);
  EXPECT_LT(shape_distance(wanted, shape_of(make_plan(source))), 0.02);
}

TEST(ModelFit, DistanceIsZeroToItselfAndGrowsWithTheDifference) {
  const auto shape = [](double exponent) {
    WorkloadModel model = edge_web(20'000);
    model.zipf_exponent = exponent;
    ModelSource source(model, kSeed);
    return shape_of(make_plan(source));
  };
  const PlanShape base = shape(0.8);
  EXPECT_EQ(shape_distance(base, base), 0);
  EXPECT_GT(shape_distance(base, shape(1.2)), shape_distance(base, shape(0.9)));
}

TEST(ModelFit, FindsAModelNearItsOwnTraffic) {
  WorkloadModel model = edge_web(500);
  model.zipf_exponent = 0.95;
  model.sizes.median_bytes = 500;
  ModelSource source(model, kSeed);
  const ModelFit fit = fit_model(make_plan(source), kSeed);
  EXPECT_LT(fit.distance, 0.02);
  EXPECT_NEAR(fit.model.sizes.median_bytes, 500, 150);
}

}  // namespace
}  // namespace secondsight::loadtest
