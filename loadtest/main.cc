#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <boost/program_options/errors.hpp>

#include "loadtest/commands.h"
#include "loadtest/workload_options.h"

namespace {

using namespace secondsight::loadtest;

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

struct Command {
  std::string_view name;
  int (*run)(const std::vector<std::string>&);
  const char* purpose;
};
constexpr Command kCommands[] = {
    {"demo", command_demo, "replay one workload against two policies, side by side"},
    {"replay", command_replay, "drive one proxy and measure it"},
    {"origin", command_origin, "serve verifiable objects of any size"},
    {"filter", command_filter, "tell what an admission filter costs and does, without running one"},
    {"simulate", command_simulate, "replay traces offline through the cache alone, beside LRU"},
    {"workload", command_workload, "describe, fit or write out a workload"},
};

void print_usage(std::FILE* out) {
  std::fputs("usage: secondsight-load COMMAND [OPTION...]\n\n", out);
  for (const Command& command : kCommands) {
    std::fprintf(out, "  %-10s%s\n", std::string(command.name).c_str(), command.purpose);
  }
  std::fputs("\nsecondsight-load COMMAND --help tells a command's options.\n", out);
}

int fail(std::string_view command, const char* what, int code) {
  std::fprintf(stderr, "secondsight-load %s: %s\n", std::string(command).c_str(), what);
  if (code == kBadUsage) {
    std::fprintf(stderr, "secondsight-load %s --help tells the options\n",
                 std::string(command).c_str());
  }
  return code;
}

int run(const Command& command, const std::vector<std::string>& arguments) {
  try {
    return command.run(arguments);
  } catch (const UsageError& error) {
    return fail(command.name, error.what(), kBadUsage);
  } catch (const boost::program_options::error& error) {
    return fail(command.name, error.what(), kBadUsage);
  } catch (const std::exception& error) {
    return fail(command.name, error.what(), kFailed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    print_usage(stderr);
    return kBadUsage;
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h") {
    print_usage(stdout);
    return 0;
  }
  for (const Command& command : kCommands) {
    if (name == command.name) return run(command, {arguments.begin() + 1, arguments.end()});
  }
  std::fprintf(stderr, "secondsight-load: there is no command '%s'\n", name.c_str());
  print_usage(stderr);
  return kBadUsage;
}
