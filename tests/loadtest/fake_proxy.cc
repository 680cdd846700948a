// In the place of the proxy for the command's tests: our own origin, behind the log lines, options,
// metrics and signals that the real one has. It "writes" every fetch under policy always, every
// tenth else.
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <pthread.h>
#include <string>

#include "loadtest/origin.h"
#include "tests/loadtest/scripted_server.h"

using namespace secondsight::loadtest;

int main(int argc, char** argv) {
  if (argc != 3 || std::string(argv[1]) != "--config") return 2;
  std::ifstream file(argv[2]);
  const std::string config{std::istreambuf_iterator<char>(file), {}};
  const bool always = config.find("policy = \"always\"") != std::string::npos;

  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const auto front = Origin::start({});
  if (!front) return 1;
  const ScriptedServer admin([&](const std::string&) {
    const std::uint64_t written = (*front)->counters().fetches / (always ? 1 : 10);
    const std::string text = "secondsight_objects_written_total " + std::to_string(written) +
                             "\nsecondsight_written_bytes_total{cause=\"admitted\"} " +
                             std::to_string(written * 100) + "\nsecondsight_writer_queue_bytes 0\n";
    return ScriptedServer::Reply{
        "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text,
        true};
  });
  std::fprintf(stderr, "2026-11-30T12:00:00.000Z info listening address=127.0.0.1:%d\n",
               int{(*front)->endpoint().port()});
  std::fprintf(stderr, "2026-11-30T12:00:00.000Z info \"admin listening\" address=127.0.0.1:%d\n",
               int{admin.endpoint().port()});
  std::fprintf(stderr, "2026-11-30T12:00:00.000Z info ready\n");
  int signal = 0;
  sigwait(&ends, &signal);
  return 0;
}
