#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "loadtest/baseline.h"
#include "loadtest/report.h"
#include "loadtest/simulate.h"

namespace secondsight::loadtest {

/// One cache, and the models of its size.
struct ComparedRun {
  SimulatedCacheSizes sizes;
  SimulationResult cache;
  ModelResult fifo, lru;  // with the cache's admission
  ModelResult lru_all;    // that keeps everything
  ModelResult clairvoyant;
  std::uint64_t hits_bound = 0;
};

/// Runs of one trace, all with a disk or all without.
struct Comparison {
  WorkloadFacts workload;
  std::uint64_t requested_bytes = 0;
  std::string policy;
  std::vector<ComparedRun> runs;
};

/// Object hit ratios side by side, a size a line; what was written; in how many lines the cache is
/// below LRU.
std::string table_of(const Comparison& comparison);

/// {"trace", "policy", "workload": {..}, "runs": [..]}; keys: docs/experiments.md.
boost::json::object json_of(const Comparison& comparison);

}  // namespace secondsight::loadtest
