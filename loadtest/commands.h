#pragma once
#include <string>
#include <vector>

namespace secondsight::loadtest {

/// The subcommands: arguments after the name, exit code. Each answers --help. They throw UsageError
/// and boost::program_options::error (exit 2), RunError (exit 1).
int command_workload(const std::vector<std::string>& arguments);
int command_origin(const std::vector<std::string>& arguments);
int command_replay(const std::vector<std::string>& arguments);
int command_demo(const std::vector<std::string>& arguments);
int command_filter(const std::vector<std::string>& arguments);
int command_simulate(const std::vector<std::string>& arguments);

}  // namespace secondsight::loadtest
