#include "loadtest/proxy_process.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <fstream>
#include <mutex>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace secondsight::loadtest {
namespace {

/// Cuts the next word off the front of `rest`; quotes join what they hold and are removed.
std::string take_word(std::string_view& rest) {
  std::string word;
  bool quoted = false;
  std::size_t i = rest.find_first_not_of(' ');
  if (i == std::string_view::npos) i = rest.size();
  for (; i < rest.size() && (quoted || rest[i] != ' '); ++i) {
    if (rest[i] == '"') {
      quoted = !quoted;
    } else {
      if (quoted && rest[i] == '\\' && i + 1 < rest.size()) ++i;
      word += rest[i];
    }
  }
  rest = rest.substr(i);
  return word;
}

std::string words_for(int status) {
  if (WIFEXITED(status)) return "exited with " + std::to_string(WEXITSTATUS(status));
  return "was ended by signal " + std::to_string(WTERMSIG(status));
}

}  // namespace

std::optional<LogLine> parse_log_line(std::string_view line) {
  const std::string time = take_word(line);
  LogLine parsed;
  parsed.level = take_word(line);
  parsed.message = take_word(line);
  if (time.empty() || parsed.message.empty()) return std::nullopt;
  while (!line.empty()) {
    const std::string word = take_word(line);
    const auto equals = word.find('=');
    if (equals != std::string::npos)
      parsed.fields[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return parsed;
}

std::optional<tcp::endpoint> parse_endpoint(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  std::uint16_t port = 0;
  const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  boost::system::error_code error;
  const auto address = net::ip::make_address(std::string(host), error);
  if (error || bad != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return tcp::endpoint(address, port);
}

struct ProxyProcess::Impl {
  pid_t pid = -1;
  int process = -1;  // pidfd
  int output = -1;   // read end of what it writes
  std::thread reader;

  // Written by the reader, read by start() until it is ready.
  std::mutex mutex;
  std::condition_variable changed;
  bool ready = false;
  bool ended = false;
  std::optional<tcp::endpoint> address;
  std::optional<tcp::endpoint> admin;
  std::deque<std::string> last_lines;

  void take_line(const std::string& line) {
    constexpr std::size_t kKept = 10;
    const auto parsed = parse_log_line(line);
    const std::lock_guard lock(mutex);
    last_lines.push_back(line);
    if (last_lines.size() > kKept) last_lines.pop_front();
    if (!parsed) return;
    const auto field = parsed->fields.find("address");
    if (field != parsed->fields.end()) {
      if (parsed->message == "listening" && !address) address = parse_endpoint(field->second);
      if (parsed->message == "admin listening") admin = parse_endpoint(field->second);
    }
    ready = ready || parsed->message == "ready";
    changed.notify_all();
  }

  void read_output(const std::string& log_file) {
    std::ofstream log(log_file, std::ios::binary);
    std::array<char, 4096> buffer;
    std::string line;
    ssize_t count = 0;
    while ((count = read(output, buffer.data(), buffer.size())) > 0 ||
           (count < 0 && errno == EINTR)) {
      for (ssize_t i = 0; i < count; ++i) {
        const char c = buffer[static_cast<std::size_t>(i)];
        if (c != '\n') {
          line += c;
          continue;
        }
        log << line << std::endl;  // flushed, so that it can be followed
        take_line(line);
        line.clear();
      }
    }
    const std::lock_guard lock(mutex);
    ended = true;
    changed.notify_all();
  }

  /// Waits for its end; false when `timeout` came first.
  bool wait_for_end(std::chrono::milliseconds timeout, int& status) {
    pollfd watched{process, POLLIN, 0};
    const auto until = std::chrono::steady_clock::now() + timeout;
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          until - std::chrono::steady_clock::now());
      const int events = poll(&watched, 1, static_cast<int>(std::max<long>(0, left.count())));
      if (events > 0) break;
      if (events == 0) return false;
    }
    waitpid(pid, &status, 0);
    pid = -1;
    return true;
  }

  std::string tail() {
    const std::lock_guard lock(mutex);
    std::string text;
    for (const std::string& line : last_lines) text += "\n  " + line;
    return text;
  }
};

ProxyProcess::ProxyProcess() : impl_(std::make_unique<Impl>()) {}

std::variant<std::unique_ptr<ProxyProcess>, std::string> ProxyProcess::start(
    const Options& options) {
  if (access(options.binary.c_str(), X_OK) != 0) {
    return "cannot run " + options.binary + ": " + std::strerror(errno);
  }
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return std::string("pipe: ") + std::strerror(errno);

  // Made before the fork: behind it, only calls that are safe in a signal handler are.
  std::vector<std::string> words{options.binary, "--config", options.config_file};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    return std::string("fork: ") + std::strerror(errno);
  }
  if (child == 0) {
    constexpr int kCannotRun = 127;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kCannotRun);  // the parent ended before the line above
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    execv(arguments.front(), arguments.data());
    _exit(kCannotRun);
  }
  close(ends[1]);
  std::unique_ptr<ProxyProcess> process(new ProxyProcess);
  Impl& impl = *process->impl_;
  impl.pid = child;
  // Not pidfd_open(): glibc 2.36 declares it without C linkage.
  impl.process = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  impl.output = ends[0];
  impl.reader = std::thread([&impl, log = options.log_file] { impl.read_output(log); });

  std::unique_lock lock(impl.mutex);
  impl.changed.wait_for(lock, options.start_timeout, [&impl] { return impl.ready || impl.ended; });
  const bool usable = impl.ready && impl.address;
  const bool ended = impl.ended;
  lock.unlock();
  if (usable) return process;
  std::string fault = options.binary;
  int status = 0;
  if (ended && impl.wait_for_end(std::chrono::seconds(1), status)) {
    fault += ' ' + words_for(status) + " before it was ready";
  } else {
    fault += " did not say that it is ready, and where it listens, in time";
  }
  return fault + "; its last lines:" + impl.tail();
}

ProxyProcess::~ProxyProcess() {
  Impl& impl = *impl_;
  if (impl.pid > 0) {
    kill(impl.pid, SIGKILL);
    int status = 0;
    waitpid(impl.pid, &status, 0);
  }
  if (impl.reader.joinable()) impl.reader.join();
  if (impl.output >= 0) close(impl.output);
  if (impl.process >= 0) close(impl.process);
}

pid_t ProxyProcess::pid() const noexcept {
  return impl_->pid;
}

tcp::endpoint ProxyProcess::address() const {
  const std::lock_guard lock(impl_->mutex);
  return *impl_->address;
}

std::optional<tcp::endpoint> ProxyProcess::admin_address() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->admin;
}

std::string ProxyProcess::stop(std::chrono::milliseconds timeout) {
  if (impl_->pid <= 0) return {};
  kill(impl_->pid, SIGTERM);
  int status = 0;
  if (!impl_->wait_for_end(timeout, status)) {
    kill(impl_->pid, SIGKILL);
    impl_->wait_for_end(timeout, status);
    return "did not end within " + std::to_string(timeout.count()) +
           " ms of SIGTERM and was killed";
  }
  return status == 0 ? std::string{} : words_for(status) + impl_->tail();
}

}  // namespace secondsight::loadtest
