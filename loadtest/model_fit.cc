#include "loadtest/model_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "config/check.h"

namespace secondsight::loadtest {
namespace {

double share(std::uint64_t part, std::size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

double log_distance(const PlanShape& shape, double q) {
  if (shape.sorted_distances.empty()) return 0;
  return std::log(static_cast<double>(quantile_of(shape.sorted_distances, q)));
}

}  // namespace

double shape_distance(const PlanShape& a, const PlanShape& b) {
  double sum = 0;
  double figures = 0;
  const auto add = [&](double x, double y) {
    sum += std::abs(x - y);
    figures += 1;
  };
  const std::size_t objects_a = a.sorted_sizes.size();
  const std::size_t objects_b = b.sorted_sizes.size();
  add(a.one_hit_object_share, b.one_hit_object_share);
  add(a.best_hit_share, b.best_hit_share);
  add(share(a.asked_two, objects_a), share(b.asked_two, objects_b));
  add(share(a.asked_few, objects_a), share(b.asked_few, objects_b));
  add(share(a.asked_many, objects_a), share(b.asked_many, objects_b));
  add(a.top_10_share, b.top_10_share);
  add(a.top_1000_share, b.top_1000_share);
  for (const double q : {0.25, 0.5, 0.75, 0.9}) {
    constexpr double kWeight =
        0.05;  // a factor of e in distance weighs like five points of a share
    add(kWeight * log_distance(a, q), kWeight * log_distance(b, q));
  }
  return sum / figures;
}

ModelFit fit_model(const Plan& plan, std::uint64_t seed) {
  const PlanShape wanted = shape_of(plan);
  std::vector<std::uint64_t> sizes = wanted.sorted_sizes;
  std::erase(sizes, 0u);
  CHECK(sizes.size() >= 20);

  WorkloadModel model;
  model.requests = plan.requests.size();
  model.one_hit_share = wanted.one_hit_object_share;
  model.sizes = fit_sizes(sizes);
  const auto requests = static_cast<double>(model.requests);
  const auto part = [requests](double ratio) {
    return std::max<std::uint64_t>(2, static_cast<std::uint64_t>(std::llround(requests * ratio)));
  };

  ModelFit best{model, std::numeric_limits<double>::infinity()};
  for (const double catalogue : {0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2}) {
    for (const double exponent : {0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0}) {
      for (const double burst : {0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6}) {
        for (const double window : {0.001, 0.003, 0.01, 0.03, 0.1}) {
          model.body_objects = part(catalogue);
          model.zipf_exponent = exponent;
          model.burst_share = burst;
          model.burst_window = part(window);
          ModelSource source(model, seed);
          const double distance = shape_distance(wanted, shape_of(make_plan(source)));
          if (distance < best.distance) best = {model, distance};
          if (burst == 0) break;  // the window says nothing then
        }
      }
    }
  }
  return best;
}

}  // namespace secondsight::loadtest
