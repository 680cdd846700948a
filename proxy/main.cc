#include <csignal>
#include <cstdio>
#include <iostream>
#include <malloc.h>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <boost/program_options.hpp>
#include <curl/curl.h>

#include "config/log.h"
#include "config/settings.h"
#include "proxy/explain_command.h"
#include "proxy/server.h"
#include "proxy/settings_report.h"
#include "proxy/sightings_command.h"
#include "proxy/verify_command.h"

namespace {

namespace options = boost::program_options;
using namespace secondsight;

constexpr int kRunTimeFailure = 1;
constexpr int kBadUsage = 2;

/// glibc gives every thread an arena of its own, and what one frees another cannot use: with a
/// cache that moves bodies between threads, memory would grow far past what is in use.
constexpr int kMallocArenas = 2;

int bad_usage(const std::string& message) {
  std::cerr << "secondsight: " << message << "\nTry \"secondsight --help\".\n";
  return kBadUsage;
}

LogLevel level_of(const std::string& name) {
  if (name == "debug") return LogLevel::Debug;
  if (name == "warning") return LogLevel::Warning;
  if (name == "error") return LogLevel::Error;
  return LogLevel::Info;
}

/// Blocked in every thread, taken one by one by sigwait() in run().
sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  return set;
}

int run(const Settings& settings) {
  const sigset_t signals = handled_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit of the file size is a full disk like any other
  mallopt(M_ARENA_MAX, kMallocArenas);
  curl_global_init(CURL_GLOBAL_DEFAULT);

  const SystemClock clock;
  proxy::Server server(settings, clock);
  if (const std::string failure = server.start(); !failure.empty()) {
    log_line(LogLevel::Error, failure);
    return kRunTimeFailure;
  }
  for (;;) {
    int number = 0;
    sigwait(&signals, &number);
    if (number != SIGHUP) break;
    log_line(LogLevel::Warning, "the configuration is read at start only: restart to change it");
  }
  server.stop([&signals] {  // a second SIGTERM or SIGINT ends the drain
    const timespec at_once{};
    const int number = sigtimedwait(&signals, nullptr, &at_once);
    return number == SIGTERM || number == SIGINT;
  });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "explain")
    return proxy::run_explain(argc - 1, argv + 1, std::cout, std::cerr);
  if (argc > 1 && std::string_view(argv[1]) == "verify")
    return proxy::run_verify(argc - 1, argv + 1, std::cout, std::cerr);
  if (argc > 1 && std::string_view(argv[1]) == "sightings")
    return proxy::run_sightings(argc - 1, argv + 1, std::cout, std::cerr);
  options::options_description known(
      "usage: secondsight --config FILE\n"
      "       secondsight --check --config FILE\n"
      "       secondsight explain URL [-H 'Name: value' ...]   (explain --help says more)\n"
      "       secondsight verify --config FILE [--json]        (verify --help says more)\n"
      "       secondsight sightings export|import --config FILE ...\n"
      "                                                        (sightings --help says more)\n\n"
      "An HTTP caching reverse proxy that writes an object to disk when it sees it the second "
      "time.\n\n"
      "options");
  known.add_options()("config", options::value<std::string>()->value_name("FILE"),
                      "the configuration, TOML; see docs/operations.md")(
      "check", "read the configuration, list every fault or what it means, and exit")(
      "version", "print the version and exit")("help", "print this and exit");
  options::variables_map given;
  try {
    const options::positional_options_description no_positional;
    options::store(
        options::command_line_parser(argc, argv).options(known).positional(no_positional).run(),
        given);
  } catch (const options::error& error) {
    return bad_usage(error.what());
  }
  if (given.count("help") > 0) {
    std::cout << known;
    return 0;
  }
  if (given.count("version") > 0) {
    std::cout << "secondsight " SECONDSIGHT_VERSION "\n";
    return 0;
  }
  if (given.count("config") == 0) return bad_usage("--config FILE is missing");

  const auto read = load_settings(given["config"].as<std::string>());
  if (const auto* faults = std::get_if<std::vector<Fault>>(&read)) {
    for (const Fault& fault : *faults) std::cerr << to_string(fault) << '\n';
    return kBadUsage;
  }
  const Settings& settings = std::get<Settings>(read);
  if (const auto bad = proxy::find_bad_filter_setting(settings.admission)) {
    std::cerr << to_string(fault_at(given["config"].as<std::string>(), bad->key, bad->reason))
              << '\n';
    return kBadUsage;
  }
  if (given.count("check") > 0) {
    std::cout << proxy::describe(settings);
    return 0;
  }
  set_log_level(level_of(settings.log.level));
  return run(settings);
}
