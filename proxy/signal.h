#pragma once
#include <atomic>
#include <chrono>
#include <memory>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "proxy/asio.h"

namespace secondsight::proxy {

/// Wakes one coroutine on its own worker from any thread. Notifications that come while nobody
/// waits are kept, several are one. Owned by its waiter and by whoever notifies it.
class Signal : public std::enable_shared_from_this<Signal> {
 public:
  explicit Signal(net::io_context& io) : io_(io), timer_(io) {}

  /// From any thread, also with a lock held: it only posts.
  void notify() {
    if (pending_.exchange(true, std::memory_order_acq_rel)) return;
    net::post(io_, [self = shared_from_this()] { self->timer_.cancel(); });
  }

  /// Returns once notified since the last wait. On the waiter's worker only.
  net::awaitable<void> wait() {
    while (!pending_.exchange(false, std::memory_order_acq_rel)) {
      timer_.expires_at(std::chrono::steady_clock::time_point::max());
      co_await timer_.async_wait(use_result);
    }
  }

 private:
  net::io_context& io_;
  net::steady_timer timer_;  // never expires: cancelling it is the wake-up
  std::atomic<bool> pending_{
      false};  // acq_rel on both sides: what was done before notify() is seen
};

}  // namespace secondsight::proxy
