#include "loadtest/workload_options.h"

#include <cstdio>

#include <boost/program_options/value_semantic.hpp>

#include "loadtest/progress.h"
#include "loadtest/trace.h"
#include "loadtest/workload.h"

namespace secondsight::loadtest {
namespace {

/// Enough for steady figures, few enough for the demo to end in a minute or two.
constexpr std::uint64_t kModelRequests = 80'000;

void tell_faults(const std::string& path, const TraceFaults& faults) {
  if (faults.bad_lines > 0) {
    std::fprintf(stderr, "%s: %s of %s lines are no requests and were passed over:\n", path.c_str(),
                 with_commas(faults.bad_lines).c_str(), with_commas(faults.lines).c_str());
    for (const std::string& example : faults.examples) {
      std::fprintf(stderr, "  %s\n", example.c_str());
    }
  }
  if (faults.damaged) {
    std::fprintf(stderr, "%s: damaged after line %s; what came before is used\n", path.c_str(),
                 with_commas(faults.lines).c_str());
  }
}

NamedPlan load_trace(const WorkloadChoice& choice) {
  const auto reader = TraceReader::open(choice.trace);
  if (!reader) throw RunError("cannot read " + choice.trace + ": " + reader.error().message());
  NamedPlan loaded{choice.trace,
                   make_plan(**reader, choice.requests > 0 ? choice.requests : UINT32_MAX)};
  tell_faults(choice.trace, (*reader)->faults());
  if (loaded.plan.size_changes > 0) {
    std::fprintf(stderr,
                 "%s: %s requests tell another size than their key's first one, which is used\n",
                 choice.trace.c_str(), with_commas(loaded.plan.size_changes).c_str());
  }
  if (loaded.plan.requests.empty()) throw RunError(choice.trace + " holds no request");
  return loaded;
}

}  // namespace

void add_workload_options(boost::program_options::options_description& description,
                          WorkloadChoice& choice) {
  namespace po = boost::program_options;
  description.add_options()(
      "trace", po::value(&choice.trace)->value_name("FILE"),
      "requests to replay: CSV timestamp_seconds,key,size_bytes, plain or gzip")(
      "model", po::value(&choice.model)->value_name("NAME")->default_value(choice.model),
      "without a trace: generated traffic; edge-web")(
      "requests", po::value(&choice.requests)->value_name("N"),
      "at most so many of the trace (all), or of the model (80000)")(
      "seed", po::value(&choice.seed)->value_name("N")->default_value(choice.seed),
      "the model's traffic is a pure function of it");
}

NamedPlan load_plan(const WorkloadChoice& choice) {
  // A plan's indexes are 32 bits; it also catches a minus sign, which the parser lets wrap around.
  if (choice.requests > UINT32_MAX) throw UsageError("--requests: not within 0 to 4294967295");
  if (!choice.trace.empty()) return load_trace(choice);
  const std::uint64_t requests = choice.requests > 0 ? choice.requests : kModelRequests;
  const auto model = preset(choice.model, requests);
  if (!model)
    throw UsageError("--model: no model is called '" + choice.model + "'; there is edge-web");
  ModelSource source(*model, choice.seed);
  return {choice.model, make_plan(source)};
}

}  // namespace secondsight::loadtest
