#include <csignal>
#include <cstdio>
#include <iostream>
#include <pthread.h>

#include <boost/program_options.hpp>

#include "loadtest/commands.h"
#include "loadtest/origin.h"
#include "loadtest/progress.h"
#include "loadtest/proxy_process.h"
#include "loadtest/workload_options.h"

namespace secondsight::loadtest {

namespace po = boost::program_options;

int command_origin(const std::vector<std::string>& arguments) {
  std::string listen = "127.0.0.1:0";
  long max_age = 86'400;
  unsigned threads = 1;
  po::options_description description(
      "usage: secondsight-load origin [OPTION...]\n\n"
      "Serves GET /o/KEY/SIZE with SIZE bytes that are a function of KEY and SIZE, until SIGINT "
      "or\n"
      "SIGTERM. Prints where it listens.\n\noptions");
  description.add_options()("help,h", "this text")(
      "listen", po::value(&listen)->value_name("ADDRESS:PORT")->default_value(listen),
      "port 0: the kernel picks one")(
      "max-age", po::value(&max_age)->value_name("SECONDS")->default_value(max_age),
      "of Cache-Control")("threads", po::value(&threads)->value_name("N")->default_value(threads),
                          "event loops");
  po::variables_map values;
  po::store(po::command_line_parser(arguments).options(description).positional({}).run(), values);
  po::notify(values);
  if (values.count("help") > 0) {
    std::cout << description;
    return 0;
  }
  const auto endpoint = parse_endpoint(listen);
  if (!endpoint) throw UsageError("--listen: '" + listen + "' is not ADDRESS:PORT");
  if (max_age < 0) throw UsageError("--max-age: below 0");
  if (threads < 1 || threads > 256) throw UsageError("--threads: not within 1 to 256");

  // Blocked before the first thread starts, so that only sigwait() below gets them.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  Origin::Options options;
  options.host = endpoint->address().to_string();
  options.port = endpoint->port();
  options.threads = threads;
  options.max_age = std::chrono::seconds(max_age);
  const auto origin = Origin::start(options);
  if (!origin) throw RunError("cannot listen on " + listen + ": " + origin.error().message());
  std::printf("listening %s\n", (*origin)->url().c_str());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  const OriginCounters& counters = (*origin)->counters();
  std::printf("fetches %s, not modified %s, heads %s, refused %s, body bytes %s\n",
              with_commas(counters.fetches).c_str(), with_commas(counters.not_modified).c_str(),
              with_commas(counters.heads).c_str(), with_commas(counters.refused).c_str(),
              with_commas(counters.body_bytes).c_str());
  return 0;
}

}  // namespace secondsight::loadtest
