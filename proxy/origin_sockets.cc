#include "proxy/origin_sockets.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include <boost/asio/post.hpp>

#include "config/check.h"

namespace secondsight::proxy {
namespace {

// One word for what libcurl asks for and what it is told.
static_assert(CURL_POLL_IN == CURL_CSELECT_IN && CURL_POLL_OUT == CURL_CSELECT_OUT);
constexpr int kRead = CURL_CSELECT_IN;
constexpr int kWrite = CURL_CSELECT_OUT;

}  // namespace

// Lives as long as a wait of it, `owner` is empty once libcurl has closed it.
struct OriginSockets::Socket {
  Socket(OriginSockets& by, curl_socket_t named, int descriptor_number)
      : owner(&by), name(named), descriptor(by.io_, descriptor_number) {}

  OriginSockets* owner;
  curl_socket_t name;  // what libcurl calls it
  net::posix::stream_descriptor descriptor;
  bool adopted = false;  // opened by libcurl itself, watched through a duplicate
  int wanted = 0;
  int waiting = 0;
};

struct OriginSockets::Timeout {
  Timeout(OriginSockets& by, net::io_context& io) : owner(&by), timer(io) {}

  OriginSockets* owner;
  net::steady_timer timer;
  std::optional<std::chrono::steady_clock::time_point> wanted;
  std::optional<std::chrono::steady_clock::time_point> armed;
  bool now_posted = false;
};

OriginSockets::OriginSockets(net::io_context& io, Action action)
    : io_(io), action_(std::move(action)), timeout_(std::make_shared<Timeout>(*this, io)) {}

OriginSockets::~OriginSockets() {
  timeout_->owner = nullptr;
  timeout_->timer.cancel();
  for (const auto& socket : sockets_)
    if (socket) close(socket->name);
}

void OriginSockets::drive(CURLM* multi) {
  const curl_socket_callback on_socket = [](CURL*, curl_socket_t socket, int what, void* self,
                                            void*) noexcept {
    auto* sockets = static_cast<OriginSockets*>(self);
    if (what == CURL_POLL_REMOVE) {
      sockets->unwatch(socket);
    } else {
      sockets->watch(socket, what);
    }
    return 0;
  };
  const curl_multi_timer_callback on_timer = [](CURLM*, long milliseconds, void* self) noexcept {
    static_cast<OriginSockets*>(self)->set_timeout(milliseconds);
    return 0;
  };
  CHECK(curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK);
  CHECK(curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, this) == CURLM_OK);
  CHECK(curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer) == CURLM_OK);
  CHECK(curl_multi_setopt(multi, CURLMOPT_TIMERDATA, this) == CURLM_OK);
}

curl_socket_t OriginSockets::open(const curl_sockaddr& address) {
  const int fd =
      ::socket(address.family, address.socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.protocol);
  if (fd < 0) return CURL_SOCKET_BAD;
  try {
    slot(fd) = std::make_shared<Socket>(*this, fd, fd);
  } catch (const boost::system::system_error&) {  // the reactor's own limit
    ::close(fd);
    return CURL_SOCKET_BAD;
  }
  return fd;
}

void OriginSockets::close(curl_socket_t socket) noexcept {
  const auto closing = std::exchange(slot(socket), nullptr);
  if (!closing) return;
  closing->owner = nullptr;
  boost::system::error_code ignored;
  closing->descriptor.close(ignored);
}

std::shared_ptr<OriginSockets::Socket>& OriginSockets::slot(curl_socket_t socket) {
  CHECK(socket >= 0);
  const auto index = static_cast<std::size_t>(socket);
  if (index >= sockets_.size()) sockets_.resize(index + 1);
  return sockets_[index];
}

// The name resolver's wake-up sockets are libcurl's own and closed behind our back. The duplicate
// keeps the reactor's registration apart from a descriptor number that may be used again.
std::shared_ptr<OriginSockets::Socket> OriginSockets::adopt(curl_socket_t socket) {
  const int duplicate = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) return nullptr;
  auto adopted = std::make_shared<Socket>(*this, socket, duplicate);
  adopted->adopted = true;
  return adopted;
}

void OriginSockets::watch(curl_socket_t socket, int events) {
  auto& place = slot(socket);
  if (!place) place = adopt(socket);
  if (!place) return;  // no descriptor left: the fetch runs into its timeout
  place->wanted = events;
  wait(place);
}

void OriginSockets::unwatch(curl_socket_t socket) noexcept {
  const auto& place = slot(socket);
  if (!place) return;
  place->wanted = 0;
  if (place->adopted) close(socket);
}

void OriginSockets::wait(const std::shared_ptr<Socket>& socket) {
  const auto start = [&socket](int event, net::posix::descriptor_base::wait_type kind) {
    if ((socket->wanted & event) == 0 || (socket->waiting & event) != 0) return;
    socket->waiting |= event;
    socket->descriptor.async_wait(kind, [socket, event](boost::system::error_code) {
      socket->waiting &= ~event;
      // Closed meanwhile, even when the wait itself had succeeded before.
      if (socket->owner != nullptr) socket->owner->ready(socket, event);
    });
  };
  start(kRead, net::posix::descriptor_base::wait_read);
  start(kWrite, net::posix::descriptor_base::wait_write);
}

void OriginSockets::ready(const std::shared_ptr<Socket>& socket, int event) {
  if ((socket->wanted & event) == 0) return;
  // Reading goes first whenever it may: an origin that refuses a body answers and closes, and its
  // answer must be seen before the failed write.
  action_(socket->name, event | (socket->wanted & kRead));
  if (socket->owner != nullptr) wait(socket);
}

void OriginSockets::set_timeout(long milliseconds) {
  if (milliseconds < 0) {
    timeout_->wanted.reset();
    return;
  }
  if (milliseconds == 0) {
    timeout_->wanted.reset();
    if (std::exchange(timeout_->now_posted, true)) return;
    net::post(io_, [timeout = timeout_] {
      timeout->now_posted = false;
      if (timeout->owner != nullptr) timeout->owner->action_(CURL_SOCKET_TIMEOUT, 0);
    });
    return;
  }
  const auto when = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  timeout_->wanted = when;
  if (!timeout_->armed || when < *timeout_->armed) wait_for_timer(when);
}

void OriginSockets::wait_for_timer(std::chrono::steady_clock::time_point when) {
  timeout_->armed = when;
  timeout_->timer.expires_at(when);
  timeout_->timer.async_wait([timeout = timeout_](boost::system::error_code error) {
    if (error || timeout->owner == nullptr) return;  // replaced by an earlier one, or the end
    timeout->armed.reset();
    if (!timeout->wanted) return;
    if (std::chrono::steady_clock::now() < *timeout->wanted) {
      timeout->owner->wait_for_timer(*timeout->wanted);
      return;
    }
    timeout->wanted.reset();
    timeout->owner->action_(CURL_SOCKET_TIMEOUT, 0);
  });
}

}  // namespace secondsight::proxy
