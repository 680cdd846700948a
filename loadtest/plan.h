#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "loadtest/request_source.h"
#include "loadtest/size_model.h"

namespace secondsight::loadtest {

/// One object of a plan.
struct PlannedObject {
  std::string target;  // "/o/KEY/SIZE", percent-encoded
  std::uint64_t size_bytes = 0;
  std::uint32_t times_asked = 0;
};

/// A whole workload, counted: what will be asked, in order, and how often each object in all. So it
/// is known beforehand which objects are asked once.
struct Plan {
  std::vector<PlannedObject> objects;
  std::vector<std::uint32_t> requests;  // indexes into objects
  std::vector<double> times_seconds;    // of the requests, as in SourceRequest
  std::uint64_t unique_bytes = 0;
  std::uint64_t requested_bytes = 0;
  std::uint64_t one_hit_objects = 0;
  std::uint64_t size_changes =
      0;  // requests whose size was not their key's first one, which stands
};

/// At most `requests_max` requests of the source.
Plan make_plan(RequestSource& source, std::uint64_t requests_max = UINT64_MAX);

/// Figures of a plan that say what kind of traffic it is.
struct PlanShape {
  double one_hit_object_share = 0;   // of objects
  double one_hit_request_share = 0;  // of requests
  double one_hit_byte_share = 0;     // of unique bytes
  double zipf_slope =
      0;  // least squares of ln(times asked) on ln(rank), objects asked twice or more
  double best_hit_share = 0;     // of requests: infinite cache, cold start
  std::uint64_t asked_two = 0;   // objects asked 2 times,
  std::uint64_t asked_few = 0;   // 3 to 9,
  std::uint64_t asked_many = 0;  // 10 and more
  double top_10_share = 0;       // of requests, to the 10 most asked objects
  double top_1000_share = 0;
  std::vector<std::uint64_t> sorted_sizes;  // one per object, ascending
  std::vector<std::uint64_t>
      sorted_distances;  // requests from one request of an object to its next, ascending
};
PlanShape shape_of(const Plan& plan);

}  // namespace secondsight::loadtest
