#pragma once
#include <cstdint>

#include "loadtest/plan.h"
#include "loadtest/workload.h"

namespace secondsight::loadtest {

/// A model and how far its traffic lies from what it was fitted to.
struct ModelFit {
  WorkloadModel model;
  /// Mean distance over the figures that are compared (shares of requests and of objects;
  /// logarithms of reuse distances), 0 for the same.
  double distance = 0;
};

/// The distance between two shapes in that measure.
double shape_distance(const PlanShape& a, const PlanShape& b);

/// Searches a fixed grid of catalogue size, Zipf exponent, bursts and their window for the model
/// whose traffic, generated with `seed`, is nearest to `plan`; sizes by fit_sizes(). Takes seconds
/// for 100,000 requests. Needs a plan with at least 20 objects.
ModelFit fit_model(const Plan& plan, std::uint64_t seed);

}  // namespace secondsight::loadtest
