#include "loadtest/plan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <boost/unordered/unordered_flat_map.hpp>

#include "loadtest/object_url.h"

namespace secondsight::loadtest {
namespace {

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

/// Least-squares slope of ln(count) on ln(rank), positive for falling counts.
double slope_of(const std::vector<std::uint32_t>& counts_descending) {
  double n = 0, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
  for (const std::uint32_t count : counts_descending) {
    if (count < 2) break;
    n += 1;
    const double x = std::log(n);
    const double y = std::log(static_cast<double>(count));
    sum_x += x;
    sum_y += y;
    sum_xx += x * x;
    sum_xy += x * y;
  }
  return n < 2 ? 0 : -(n * sum_xy - sum_x * sum_y) / (n * sum_xx - sum_x * sum_x);
}

std::vector<std::uint64_t> distances_of(const Plan& plan) {
  constexpr std::uint64_t kNever = UINT64_MAX;
  std::vector<std::uint64_t> last(plan.objects.size(), kNever);
  std::vector<std::uint64_t> distances;
  for (std::uint64_t i = 0; i < plan.requests.size(); ++i) {
    std::uint64_t& before = last[plan.requests[i]];
    if (before != kNever) distances.push_back(i - before);
    before = i;
  }
  std::sort(distances.begin(), distances.end());
  return distances;
}

}  // namespace

Plan make_plan(RequestSource& source, std::uint64_t requests_max) {
  Plan plan;
  boost::unordered_flat_map<std::string, std::uint32_t> known;
  SourceRequest request;
  while (plan.requests.size() < requests_max && source.next(request)) {
    const auto [place, fresh] =
        known.try_emplace(request.key, static_cast<std::uint32_t>(plan.objects.size()));
    if (fresh) {
      plan.objects.push_back(
          {object_target(request.key, request.size_bytes), request.size_bytes, 0});
      plan.unique_bytes += request.size_bytes;
    }
    PlannedObject& object = plan.objects[place->second];
    if (object.size_bytes != request.size_bytes) ++plan.size_changes;
    ++object.times_asked;
    plan.requested_bytes += object.size_bytes;
    plan.requests.push_back(place->second);
    plan.times_seconds.push_back(request.time_seconds);
  }
  plan.one_hit_objects = static_cast<std::uint64_t>(std::count_if(
      plan.objects.begin(), plan.objects.end(), [](const auto& o) { return o.times_asked == 1; }));
  return plan;
}

PlanShape shape_of(const Plan& plan) {
  PlanShape shape;
  std::vector<std::uint32_t> counts;
  double one_hit_bytes = 0;
  for (const PlannedObject& object : plan.objects) {
    counts.push_back(object.times_asked);
    shape.sorted_sizes.push_back(object.size_bytes);
    if (object.times_asked == 1) one_hit_bytes += static_cast<double>(object.size_bytes);
    if (object.times_asked == 2) ++shape.asked_two;
    if (object.times_asked >= 3 && object.times_asked <= 9) ++shape.asked_few;
    if (object.times_asked >= 10) ++shape.asked_many;
  }
  std::sort(counts.begin(), counts.end(), std::greater<>());
  std::sort(shape.sorted_sizes.begin(), shape.sorted_sizes.end());
  shape.sorted_distances = distances_of(plan);

  const auto requests = static_cast<double>(plan.requests.size());
  const auto objects = static_cast<double>(plan.objects.size());
  const auto one_hit = static_cast<double>(plan.one_hit_objects);
  const auto top_share = [&](std::size_t n) {
    const auto end = counts.begin() + static_cast<std::ptrdiff_t>(std::min(n, counts.size()));
    return share(std::accumulate(counts.begin(), end, 0.0), requests);
  };
  shape.one_hit_object_share = share(one_hit, objects);
  shape.one_hit_request_share = share(one_hit, requests);
  shape.one_hit_byte_share = share(one_hit_bytes, static_cast<double>(plan.unique_bytes));
  shape.best_hit_share = share(requests - objects, requests);
  shape.zipf_slope = slope_of(counts);
  shape.top_10_share = top_share(10);
  shape.top_1000_share = top_share(1'000);
  return shape;
}

}  // namespace secondsight::loadtest
