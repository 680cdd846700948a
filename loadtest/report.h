#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "loadtest/measured_run.h"
#include "loadtest/plan.h"

namespace secondsight::loadtest {

/// Whether every request got its object, byte for byte.
bool clean(const RunReport& run) noexcept;

/// What the second run did not write of what the first one wrote, as fractions (1: nothing was
/// written). Negative when it wrote more; empty when a count is missing or the first wrote nothing.
struct Avoided {
  std::optional<double> objects;
  std::optional<double> bytes;
};
Avoided avoided(const RunReport& first, const RunReport& second);

/// The workload, as it stands in reports.
struct WorkloadFacts {
  std::string name;  // trace file or model
  std::uint64_t requests = 0;
  std::uint64_t objects = 0;
  std::uint64_t one_hit_objects = 0;
  std::uint64_t unique_bytes = 0;
};
WorkloadFacts workload_facts(const Plan& plan, std::string name);

/// Runs side by side, one a column; `runs` not empty. Two or more: what the last avoids of the
/// first.
std::string table_of(const WorkloadFacts& workload, const std::vector<RunReport>& runs);

/// {"trace": .., "workload": {..}, "runs": [..], "avoided": {"objects": .., "bytes": ..}}; a number
/// that is unknown is null. Lists every key: docs/experiments.md.
boost::json::object json_of(const WorkloadFacts& workload, const std::vector<RunReport>& runs);

/// Replaces the file as a whole. What went wrong in words, or empty.
std::string write_file(const std::string& path, const std::string& text);

}  // namespace secondsight::loadtest
