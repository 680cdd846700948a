#include <cstdio>
#include <iostream>
#include <string>

#include <boost/program_options.hpp>

#include "loadtest/commands.h"
#include "loadtest/model_fit.h"
#include "loadtest/progress.h"
#include "loadtest/report.h"
#include "loadtest/trace.h"
#include "loadtest/workload.h"
#include "loadtest/workload_options.h"

namespace secondsight::loadtest {
namespace {

namespace po = boost::program_options;

void print_shape(const std::string& name, const Plan& plan) {
  const PlanShape shape = shape_of(plan);
  const auto percent = [](const char* label, double share) {
    std::printf("  %-34s %.2f %%\n", label, 100 * share);
  };
  const auto count = [](const char* label, std::uint64_t number) {
    std::printf("  %-34s %s\n", label, with_commas(number).c_str());
  };
  const auto quantiles = [](const char* label, const std::vector<std::uint64_t>& sorted) {
    std::printf("  %-34s", label);
    if (sorted.empty()) std::printf(" none");
    for (const double q : {0.1, 0.25, 0.5, 0.75, 0.9, 0.99}) {
      if (!sorted.empty()) std::printf(" %s", with_commas(quantile_of(sorted, q)).c_str());
    }
    if (!sorted.empty()) std::printf(" %s", with_commas(sorted.back()).c_str());
    std::printf("\n");
  };
  std::printf("%s\n", name.c_str());
  count("requests", plan.requests.size());
  count("objects", plan.objects.size());
  count("unique bytes", plan.unique_bytes);
  count("requested bytes", plan.requested_bytes);
  percent("asked once, of objects", shape.one_hit_object_share);
  percent("asked once, of requests", shape.one_hit_request_share);
  percent("asked once, of unique bytes", shape.one_hit_byte_share);
  count("objects asked twice", shape.asked_two);
  count("objects asked 3 to 9 times", shape.asked_few);
  count("objects asked 10 times and more", shape.asked_many);
  std::printf("  %-34s %.3f\n", "Zipf slope of what is asked again", shape.zipf_slope);
  percent("requests to the top 10 objects", shape.top_10_share);
  percent("requests to the top 1,000 objects", shape.top_1000_share);
  percent("best possible hit ratio", shape.best_hit_share);
  quantiles("size p10 p25 p50 p75 p90 p99 max", shape.sorted_sizes);
  quantiles("reuse p10 p25 p50 p75 p90 p99 max", shape.sorted_distances);
}

void print_fit(const NamedPlan& workload, std::uint64_t seed) {
  constexpr std::size_t kObjectsMin = 20;
  if (workload.plan.objects.size() < kObjectsMin) {
    throw RunError("a fit needs at least 20 objects");
  }
  const ModelFit fit = fit_model(workload.plan, seed);
  const WorkloadModel& model = fit.model;
  std::printf(
      "\nfitted model: requests %llu, body_objects %llu, zipf_exponent %.2f, one_hit_share %.4f,\n"
      "  burst_share %.2f, burst_window %llu; sizes: median %.0f, sigma %.3f, tail_share %.2f, "
      "tail_exponent %.3f\n  mean distance %.4f\n",
      static_cast<unsigned long long>(model.requests),
      static_cast<unsigned long long>(model.body_objects), model.zipf_exponent, model.one_hit_share,
      model.burst_share, static_cast<unsigned long long>(model.burst_window),
      model.sizes.median_bytes, model.sizes.sigma, model.sizes.tail_share,
      model.sizes.tail_exponent, fit.distance);
  ModelSource source(model, seed);
  print_shape("fitted model's traffic", make_plan(source));
}

/// The requests as a trace, so that any tool can have them. Times are positions; keys stay
/// percent-encoded.
std::string csv_of(const Plan& plan) {
  std::string text = "timestamp_seconds,key,size_bytes\n";
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    const PlannedObject& object = plan.objects[plan.requests[i]];
    const std::size_t key_at = std::string_view("/o/").size();
    const std::string key = object.target.substr(key_at, object.target.rfind('/') - key_at);
    text += std::to_string(i) + ',' + key + ',' + std::to_string(object.size_bytes) + '\n';
  }
  return text;
}

}  // namespace

int command_workload(const std::vector<std::string>& arguments) {
  WorkloadChoice choice;
  std::string csv;
  po::options_description description(
      "usage: secondsight-load workload [OPTION...]\n\n"
      "Tells what a trace or a model's traffic is like; fits the model to it; writes it out as "
      "CSV.\n\n"
      "options");
  add_workload_options(description, choice);
  description.add_options()("fit",
                            "search the model that is nearest to it (takes up to some minutes)")(
      "csv", po::value(&csv)->value_name("FILE"), "write it as timestamp_seconds,key,size_bytes")(
      "help,h", "this text");
  po::variables_map values;
  po::store(po::command_line_parser(arguments).options(description).positional({}).run(), values);
  po::notify(values);
  if (values.count("help") > 0) {
    std::cout << description;
    return 0;
  }
  const NamedPlan workload = load_plan(choice);
  print_shape(workload.name, workload.plan);
  if (!csv.empty()) {
    const std::string fault = write_file(csv, csv_of(workload.plan));
    if (!fault.empty()) throw RunError(fault);
  }
  if (values.count("fit") > 0) print_fit(workload, choice.seed);
  return 0;
}

}  // namespace secondsight::loadtest
