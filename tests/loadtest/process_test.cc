#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <poll.h>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <variant>

#include <gtest/gtest.h>

#include "loadtest/proxy_process.h"
#include "tests/loadtest/test_files.h"

namespace secondsight::loadtest {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(LogLine, Table) {
  const auto line = parse_log_line(
      "2026-11-30T12:00:00.123Z info \"admin listening\" address=127.0.0.1:40124 "
      "note=\"two words\" odd");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->level, "info");
  EXPECT_EQ(line->message, "admin listening");
  EXPECT_EQ(line->fields.at("address"), "127.0.0.1:40124");
  EXPECT_EQ(line->fields.at("note"), "two words");
  EXPECT_EQ(line->fields.size(), 2u);
  EXPECT_EQ(parse_log_line("t info ready")->message, "ready");
  EXPECT_EQ(parse_log_line("t info \"a \\\"quoted\\\" word\"")->message, "a \"quoted\" word");
  for (const char* const text : {"", "one", "one two", "   ", "t info \"\""}) {
    EXPECT_FALSE(parse_log_line(text)) << text;
  }
}

TEST(Endpoint, Table) {
  EXPECT_EQ(parse_endpoint("127.0.0.1:80"), tcp::endpoint(net::ip::make_address("127.0.0.1"), 80));
  EXPECT_EQ(parse_endpoint("[::1]:8080"), tcp::endpoint(net::ip::make_address("::1"), 8080));
  for (const char* const text :
       {"", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "localhost:80"}) {
    EXPECT_FALSE(parse_endpoint(text)) << text;
  }
}

/// A shell script in the place of the proxy.
class ProxyProcessTest : public testing::Test {
 protected:
  ProxyProcess::Options script(const std::string& body,
                               milliseconds timeout = milliseconds(20'000)) {
    const std::string path = directory_.write("proxy", "#!/bin/sh\n" + body);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return {path, "the config", directory_.path("log"), timeout};
  }
  TemporaryDirectory directory_;
};

constexpr const char* kReady =
    "echo \"t info listening address=127.0.0.1:1234\" >&2\n"
    "echo 't info \"admin listening\" address=127.0.0.1:1235' >&2\n"
    "echo \"t info args text=$1/$2\" >&2\n"
    "echo 't info ready' >&2\n";

TEST_F(ProxyProcessTest, StartsReadsAddressesAndStops) {
  auto started = ProxyProcess::start(script(std::string("trap 'kill $!; exit 0' TERM\n") +
                                            "sleep 600 >/dev/null 2>&1 &\n" + kReady + "wait\n"));
  ASSERT_TRUE(std::holds_alternative<std::unique_ptr<ProxyProcess>>(started))
      << std::get<std::string>(started);
  auto& process = std::get<std::unique_ptr<ProxyProcess>>(started);
  EXPECT_EQ(process->address().port(), 1234);
  EXPECT_EQ(process->admin_address()->port(), 1235);
  EXPECT_EQ(kill(process->pid(), 0), 0);
  EXPECT_EQ(process->stop(milliseconds(20'000)), "");
  EXPECT_EQ(process->stop(milliseconds(20'000)), "") << "a second stop does nothing";
  process.reset();
  EXPECT_THAT(read_text(directory_.path("log")), HasSubstr("text=--config/the config"));
}

TEST_F(ProxyProcessTest, SaysHowItFailed) {
  const auto fault = [](ProxyProcess::Options options) {
    return std::get<std::string>(ProxyProcess::start(options));
  };
  EXPECT_THAT(fault(script("echo 'c.toml:3:1: no such key' >&2\nexit 2\n")),
              testing::AllOf(HasSubstr("exited with 2 before it was ready"),
                             HasSubstr("c.toml:3:1: no such key")));
  EXPECT_THAT(fault(script("kill -9 $$\n")), HasSubstr("ended by signal 9"));
  EXPECT_THAT(fault(script("exec sleep 600\n", milliseconds(50))), HasSubstr("did not say"));
  EXPECT_THAT(fault(script("echo 't info ready' >&2\nexec sleep 600\n")),
              HasSubstr("where it listens"));
  EXPECT_THAT(fault({directory_.path("absent"), "", directory_.path("log"), milliseconds(1)}),
              HasSubstr("cannot run"));
}

TEST_F(ProxyProcessTest, IsGoneWhenItsOwnerIs) {
  auto started = ProxyProcess::start(script(std::string(kReady) + "exec sleep 600\n"));
  const pid_t pid = std::get<0>(started)->pid();
  std::get<0>(started).reset();
  EXPECT_NE(kill(pid, 0), 0);
}

// The owner is killed where no destructor runs: the kernel must end the proxy.
TEST_F(ProxyProcessTest, DoesNotOutliveAKilledOwner) {
  const ProxyProcess::Options options = script(std::string(kReady) + "exec sleep 600\n");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    auto started = ProxyProcess::start(options);
    const pid_t pid = std::get<0>(started)->pid();
    const bool told = write(ends[1], &pid, sizeof pid) == sizeof pid;
    kill(getpid(), told ? SIGKILL : SIGABRT);
  }
  int status = 0;
  ASSERT_EQ(waitpid(owner, &status, 0), owner);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  pid_t proxy = 0;
  ASSERT_EQ(read(ends[0], &proxy, sizeof proxy), static_cast<ssize_t>(sizeof proxy));
  close(ends[0]);
  close(ends[1]);
  const int watched = static_cast<int>(syscall(SYS_pidfd_open, proxy, 0));
  if (watched < 0) return;  // it is gone already
  pollfd end{watched, POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 20'000), 1) << "the proxy still runs";
  close(watched);
}

TEST_F(ProxyProcessTest, ABadEndIsToldAndADeafProxyIsKilled) {
  auto ends =
      ProxyProcess::start(script("trap 'kill $!; exit 3' TERM\nsleep 600 >/dev/null 2>&1 &\n" +
                                 std::string(kReady) + "wait\n"));
  EXPECT_THAT(std::get<0>(ends)->stop(milliseconds(20'000)), HasSubstr("exited with 3"));

  auto deaf =
      ProxyProcess::start(script("trap '' TERM\n" + std::string(kReady) + "exec sleep 600\n"));
  const pid_t pid = std::get<0>(deaf)->pid();
  EXPECT_THAT(std::get<0>(deaf)->stop(milliseconds(50)), HasSubstr("was killed"));
  EXPECT_NE(kill(pid, 0), 0);
}

}  // namespace
}  // namespace secondsight::loadtest
