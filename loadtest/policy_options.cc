#include "loadtest/policy_options.h"

#include <variant>

#include <boost/program_options.hpp>

#include "config/quote.h"
#include "loadtest/workload_options.h"

namespace secondsight::loadtest {
namespace {

namespace po = boost::program_options;

/// "probability = 0.5", for each that is given.
std::string given_settings(const PolicyChoice& choice, const std::string& separator) {
  std::string text;
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) text += (text.empty() ? "" : separator) + key + " = " + value;
  };
  add("probability", choice.probability);
  add("size_scale", choice.size_scale.empty() ? "" : quoted(choice.size_scale));
  add("sightings", choice.sightings);
  return text;
}

}  // namespace

void add_policy_options(po::options_description& description, PolicyChoice& choice) {
  description.add_options()(
      "policy", po::value(&choice.policy)->value_name("NAME")->default_value(choice.policy),
      "second-sighting, always, never, probability, size-probability, nth-sighting, "
      "classic-bloom, scalable-bloom, cuckoo or exact")(
      "probability", po::value(&choice.probability)->value_name("P"),
      "with --policy probability: the chance of each sighting")(
      "size-scale", po::value(&choice.size_scale)->value_name("BYTES"),
      "with --policy size-probability: admitted with chance exp(-size / this)")(
      "sightings", po::value(&choice.sightings)->value_name("N"),
      "with --policy nth-sighting: admitted at the N-th");
}

std::string policy_lines(const PolicyChoice& choice) {
  const std::string given = given_settings(choice, "\n");
  return "policy = " + quoted(choice.policy) + "\n" + given + (given.empty() ? "" : "\n");
}

AdmissionSettings read_policy(const PolicyChoice& choice) {
  const std::string config =
      "[origin]\nurl = \"http://127.0.0.1:9000\"\n[admission]\n" + policy_lines(choice);
  const auto parsed = parse_settings(config, "");
  if (const auto* faults = std::get_if<std::vector<Fault>>(&parsed))
    throw UsageError("--policy " + choice.policy + ": " + faults->front().message);
  return std::get<Settings>(parsed).admission;
}

std::string name_of(const PolicyChoice& choice) {
  const std::string given = given_settings(choice, ", ");
  return choice.policy + (given.empty() ? "" : " (" + given + ")");
}

}  // namespace secondsight::loadtest
