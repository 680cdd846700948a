#include "proxy/worker.h"

#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "config/check.h"
#include "config/log.h"
#include "proxy/listener.h"
#include "proxy/session.h"

namespace secondsight::proxy {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kTick = 100ms;
constexpr std::chrono::milliseconds kAcceptPause = 100ms;  // when descriptors or memory ran out

}  // namespace

/// An io_context whose pending work can be destroyed while what that work refers to still stands.
class Worker::Context final : public net::io_context {
 public:
  Context() : net::io_context(1) {}
  void destroy_pending() { shutdown(); }
};

Worker::Worker(const ProxySettings& settings, const Clock& clock, FrontMetrics& metrics,
               const HandlerFactory& make_handler)
    : clock_(clock), io_(std::make_unique<Context>()) {
  handler_ = make_handler(*this);
  sessions_ = std::make_unique<SessionSet>(settings, *handler_, metrics);
  sessions_->on_end([this] { note_if_drained(); });
}

Worker::~Worker() {
  stop();
  join();
  io_->destroy_pending();
  acceptors_.clear();
  sessions_.reset();
  services_.clear();
  handler_.reset();
}

net::io_context& Worker::io() noexcept {
  return *io_;
}

Result<tcp::endpoint> Worker::listen(const tcp::endpoint& endpoint) {
  auto acceptor = open_listener(*io_, endpoint);
  if (acceptor.has_error()) return acceptor.error();
  acceptors_.push_back(std::make_unique<tcp::acceptor>(std::move(acceptor.value())));
  boost::system::error_code error;
  const auto bound = acceptors_.back()->local_endpoint(error);
  if (error) return error;
  return bound;
}

void Worker::on_tick(std::function<void(SteadyTime)> service) {
  services_.push_back(std::move(service));
}

void Worker::start() {
  CHECK(!thread_.joinable());
  for (const auto& acceptor : acceptors_) net::co_spawn(io(), accept(*acceptor), net::detached);
  net::co_spawn(io(), tick(), net::detached);
  thread_ = std::thread([this] { io_->run(); });
}

void Worker::begin_drain() {
  net::post(io(), [this] {
    for (const auto& acceptor : acceptors_) {
      boost::system::error_code ignored;
      acceptor->close(ignored);
    }
    sessions_->begin_drain();
    note_if_drained();
  });
}

void Worker::note_if_drained() {
  if (!sessions_->draining() || sessions_->count() > 0) return;
  const std::lock_guard lock(mutex_);
  is_drained_ = true;
  drained_change_.notify_all();
}

bool Worker::wait_drained(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return drained_change_.wait_until(lock, deadline, [this] { return is_drained_; });
}

void Worker::stop() noexcept {
  io_->stop();
}

void Worker::join() {
  if (thread_.joinable()) thread_.join();
}

net::awaitable<void> Worker::accept(tcp::acceptor& acceptor) {
  net::steady_timer pause(io());
  bool is_short = false;  // logged once per shortage
  while (acceptor.is_open()) {
    auto [error, socket] = co_await acceptor.async_accept(use_result);
    if (!error) {
      is_short = false;
      sessions_->add(std::move(socket));
    } else if (error != net::error::operation_aborted && error != net::error::connection_aborted) {
      // Out of descriptors or memory: the connection stays in the kernel's queue, and trying again
      // at once would spin.
      if (!std::exchange(is_short, true))
        log_line(LogLevel::Error, "cannot accept", {{"error", error.message()}});
      pause.expires_after(kAcceptPause);
      (void)co_await pause.async_wait(use_result);
    }
  }
}

net::awaitable<void> Worker::tick() {
  net::steady_timer timer(io());
  for (;;) {
    timer.expires_after(kTick);
    const auto [error] = co_await timer.async_wait(use_result);
    if (error) co_return;
    const SteadyTime now = clock_.steady();
    sessions_->tick(now);
    for (const auto& service : services_) service(now);
  }
}

}  // namespace secondsight::proxy
