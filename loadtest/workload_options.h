#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

#include <boost/program_options/options_description.hpp>

#include "loadtest/plan.h"

namespace secondsight::loadtest {

/// The command line asks for what cannot be; ends the program with 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// The world failed in a way that ends the program with 1.
struct RunError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Which workload: the options that all subcommands share.
struct WorkloadChoice {
  std::string trace;
  std::string model = "edge-web";
  std::uint64_t requests = 0;  // 0: the whole trace, or the model's own length
  std::uint64_t seed = 1;
};

void add_workload_options(boost::program_options::options_description& description,
                          WorkloadChoice& choice);

/// A plan and what to call it.
struct NamedPlan {
  std::string name;
  Plan plan;
};
/// Reads or generates it. Bad lines are told on standard error. Throws UsageError (unknown model),
/// RunError (a trace that cannot be read, or that holds no request).
NamedPlan load_plan(const WorkloadChoice& choice);

}  // namespace secondsight::loadtest
