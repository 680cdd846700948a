#pragma once
#include <string>

#include <boost/program_options/options_description.hpp>

#include "config/settings.h"

namespace secondsight::loadtest {

/// Which admission policy, and what it alone is told: as written on the command line, so that the
/// proxy's own settings judge it. Empty: the default.
struct PolicyChoice {
  std::string policy = "second-sighting";
  std::string probability;
  std::string size_scale;
  std::string sightings;
};

void add_policy_options(boost::program_options::options_description& description,
                        PolicyChoice& choice);

/// The lines of [admission] that say so.
std::string policy_lines(const PolicyChoice& choice);

/// The settings that the proxy would have. Throws UsageError with what it would say.
AdmissionSettings read_policy(const PolicyChoice& choice);

/// "nth-sighting (sightings = 4)"
std::string name_of(const PolicyChoice& choice);

}  // namespace secondsight::loadtest
