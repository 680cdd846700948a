#include "tests/support/raw_client.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "cache/policy/fields.h"
#include "config/check.h"

namespace secondsight::testing {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{10};
constexpr int kPollMs = 1;

std::uint64_t number_of(std::string_view text, int base) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, base);
  return number;
}

}  // namespace

std::string RawResponse::field(std::string_view name) const {
  std::string_view rest = head;
  while (!rest.empty()) {
    const auto end = std::min(rest.find("\r\n"), rest.size());
    const std::string_view line = rest.substr(0, end);
    const auto colon = line.find(": ");
    if (colon != std::string_view::npos &&
        cache::policy::equals_ignoring_case(line.substr(0, colon), name))
      return std::string(line.substr(colon + 2));
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  return {};
}

RawClient::RawClient(std::uint16_t port, Options options) : pump_(std::move(options.pump)) {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(fd_ >= 0);
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (options.receive_buffer_bytes > 0)
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &options.receive_buffer_bytes,
                 sizeof options.receive_buffer_bytes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // Loopback connects without anyone accepting, so this does not block.
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    is_ended_ = true;
  }
}

RawClient::~RawClient() {
  close();
}

void RawClient::pump() {
  if (pump_) pump_();
}

bool RawClient::send(std::string_view bytes) {
  const auto deadline = SteadyClock::now() + kPatience;
  while (!bytes.empty()) {
    const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EAGAIN || SteadyClock::now() > deadline) {
      return false;
    } else {
      pollfd poll_fd{fd_, POLLOUT, 0};
      ::poll(&poll_fd, 1, kPollMs);
    }
    pump();
  }
  return true;
}

/// Takes what the kernel has; true when something came.
bool RawClient::fill() {
  std::array<char, 65536> buffer;
  const auto got = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got > 0) {
    received_.append(buffer.data(), static_cast<std::size_t>(got));
    return true;
  }
  if (got == 0) is_ended_ = true;
  if (got < 0 && errno != EAGAIN && errno != EINTR) {
    is_ended_ = true;
    was_reset_ = errno == ECONNRESET;
  }
  return false;
}

std::string RawClient::take(std::size_t bytes) {
  bytes = std::min(bytes, received_.size());
  std::string taken = received_.substr(0, bytes);
  received_.erase(0, bytes);
  return taken;
}

std::string RawClient::read_some(std::size_t bytes_max) {
  if (!received_.empty()) return take(bytes_max);
  std::string buffer(bytes_max, '\0');
  const auto got = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
  buffer.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (got == 0) is_ended_ = true;
  return buffer;
}

std::string RawClient::read_until(std::string_view end) {
  const auto deadline = SteadyClock::now() + kPatience;
  for (;;) {
    if (const auto at = received_.find(end); at != std::string::npos) return take(at + end.size());
    if (is_ended_ || SteadyClock::now() > deadline) return take(received_.size());
    pump();
    if (!fill() && !is_ended_) {
      pollfd poll_fd{fd_, POLLIN, 0};
      ::poll(&poll_fd, 1, kPollMs);
    }
  }
}

std::string RawClient::read_exactly(std::size_t bytes) {
  const auto deadline = SteadyClock::now() + kPatience;
  while (received_.size() < bytes && !is_ended_ && SteadyClock::now() < deadline) {
    pump();
    if (!fill() && !is_ended_) {
      pollfd poll_fd{fd_, POLLIN, 0};
      ::poll(&poll_fd, 1, kPollMs);
    }
  }
  return take(bytes);
}

std::string RawClient::read_to_end() {
  return read_exactly(std::string::npos);
}

bool RawClient::wait_closed() {
  read_to_end();
  return is_ended_;
}

RawResponse RawClient::read_response(std::string_view request_method) {
  RawResponse response;
  do {
    std::string head = read_until("\r\n\r\n");
    if (!head.ends_with("\r\n\r\n") || !head.starts_with("HTTP/1.")) return response;
    head.resize(head.size() - 4);
    response.head = std::move(head);
    response.status = static_cast<int>(number_of(std::string_view(response.head).substr(9), 10));
  } while (response.status < 200);
  if (request_method == "HEAD" || response.status == 204 || response.status == 304) {
    response.whole = true;
  } else if (response.field("Transfer-Encoding") == "chunked") {
    for (;;) {
      const std::string line = read_until("\r\n");
      if (!line.ends_with("\r\n")) return response;
      const std::size_t size = number_of(line, 16);
      const std::string chunk = read_exactly(size + 2);
      response.body.append(chunk, 0, size);
      if (chunk.size() != size + 2) return response;
      if (size == 0) break;
    }
    response.whole = true;
  } else if (const std::string length = response.field("Content-Length"); !length.empty()) {
    response.body = read_exactly(number_of(length, 10));
    response.whole = response.body.size() == number_of(length, 10);
  } else {
    response.body = read_to_end();
    response.whole = is_ended_ && !was_reset_;
  }
  return response;
}

void RawClient::shutdown_send() {
  ::shutdown(fd_, SHUT_WR);
}

void RawClient::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void RawClient::reset() {
  const linger hard{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  close();
}

}  // namespace secondsight::testing
