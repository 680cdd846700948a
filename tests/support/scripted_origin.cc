#include "tests/support/scripted_origin.h"

#include <arpa/inet.h>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace secondsight::test {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr int kBacklog = 512;

int listen_on_loopback(std::uint16_t& port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (socket < 0 || ::bind(socket, generic, size) != 0 || ::listen(socket, kBacklog) != 0 ||
      ::getsockname(socket, generic, &size) != 0)
    throw std::system_error(errno, std::generic_category(), "listening on 127.0.0.1");
  port = ntohs(address.sin_port);
  return socket;
}

// The value of a field of a request head, lower case; empty when it is not there.
std::string field_value(std::string_view head, std::string_view name) {
  std::string lower;
  for (const char c : head)
    lower.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  const auto at = lower.find("\r\n" + std::string(name) + ":");
  if (at == std::string::npos) return {};
  const auto begin = lower.find_first_not_of(' ', at + 3 + name.size());
  return lower.substr(begin, lower.find("\r\n", begin) - begin);
}

}  // namespace

OriginConnection::OriginConnection(ScriptedOrigin& origin, int socket, std::size_t number)
    : origin_(origin), socket_(socket), number_(number) {
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

OriginConnection::~OriginConnection() {
  close();
}

bool OriginConnection::fill() {
  std::array<char, 65536> piece{};
  const auto got = ::recv(socket_, piece.data(), piece.size(), 0);
  if (got <= 0) return false;
  buffer_.append(piece.data(), static_cast<std::size_t>(got));
  return true;
}

std::string OriginConnection::read_head() {
  std::size_t end = 0;
  while ((end = buffer_.find(kHeadEnd)) == std::string::npos)
    if (!fill()) return {};
  end += kHeadEnd.size();
  std::string head = buffer_.substr(0, end);
  buffer_.erase(0, end);
  return head;
}

std::string OriginConnection::read_request() {
  std::string request = read_head();
  if (request.empty()) return {};
  std::size_t body_bytes = 0;
  if (field_value(request, "transfer-encoding") == "chunked") {
    constexpr std::string_view kLastChunk = "0\r\n\r\n";
    while (!buffer_.ends_with(kLastChunk))
      if (!fill()) return {};
    body_bytes = buffer_.size();
  } else if (const auto length = field_value(request, "content-length"); !length.empty()) {
    body_bytes = std::stoul(length);
    while (buffer_.size() < body_bytes)
      if (!fill()) return {};
  }
  request.append(buffer_, 0, body_bytes);
  buffer_.erase(0, body_bytes);
  origin_.record(request);
  return request;
}

std::string OriginConnection::read_some() {
  if (buffer_.empty() && !fill()) return {};
  return std::exchange(buffer_, {});
}

bool OriginConnection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void OriginConnection::wait_for_close() {
  while (fill()) buffer_.clear();
}

void OriginConnection::checkpoint() {
  origin_.wait_at_checkpoint();
}

void OriginConnection::finish_sending() {
  ::shutdown(socket_, SHUT_WR);
}

void OriginConnection::close() {
  if (socket_ < 0) return;
  const std::lock_guard lock(origin_.mutex_);
  origin_.sockets_[number_] = -1;
  ::close(std::exchange(socket_, -1));
}

void OriginConnection::reset() {
  const linger at_once{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close();
}

ScriptedOrigin::ScriptedOrigin(Script script)
    : script_(std::move(script)),
      listener_(listen_on_loopback(port_)),
      acceptor_([this] { accept_connections(); }) {}

ScriptedOrigin::~ScriptedOrigin() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    for (const int socket : sockets_)
      if (socket >= 0) ::shutdown(socket, SHUT_RDWR);
  }
  released_.notify_all();
  acceptor_.join();
  for (auto& thread : threads_) thread.join();
  ::close(listener_);
}

void ScriptedOrigin::accept_connections() {
  while (true) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock(mutex_);
    if (socket < 0 || ending_) {
      if (socket >= 0) ::close(socket);
      if (ending_ || errno != EINTR) return;
      continue;
    }
    const std::size_t number = sockets_.size();
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket, number] {
      {
        OriginConnection connection(*this, socket, number);
        script_(connection);
      }
      const std::lock_guard ended(mutex_);
      ++ended_;
      returned_.notify_all();
    });
  }
}

void ScriptedOrigin::record(std::string request) {
  const std::lock_guard lock(mutex_);
  requests_.push_back(std::move(request));
}

void ScriptedOrigin::wait_at_checkpoint() {
  std::unique_lock lock(mutex_);
  ++waiting_;
  released_.wait(lock, [this] { return releases_ > 0 || ending_; });
  --waiting_;
  if (releases_ > 0) --releases_;
}

std::vector<std::string> ScriptedOrigin::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::size_t ScriptedOrigin::connections() const {
  const std::lock_guard lock(mutex_);
  return sockets_.size();
}

std::size_t ScriptedOrigin::at_checkpoint() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

void ScriptedOrigin::wait_for_scripts(std::size_t count) {
  std::unique_lock lock(mutex_);
  returned_.wait(lock, [&] { return ended_ >= count; });
}

void ScriptedOrigin::release() {
  {
    const std::lock_guard lock(mutex_);
    ++releases_;
  }
  released_.notify_one();
}

ScriptedOrigin::Script answer_always(std::string response) {
  return [response = std::move(response)](OriginConnection& connection) {
    while (!connection.read_request().empty())
      if (!connection.send(response)) return;
  };
}

std::uint16_t refusing_port() {
  std::uint16_t port = 0;
  ::close(listen_on_loopback(port));
  return port;
}

}  // namespace secondsight::test
