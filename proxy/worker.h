#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "config/clock.h"
#include "config/result.h"
#include "config/settings.h"
#include "proxy/asio.h"
#include "proxy/front_metrics.h"
#include "proxy/handler.h"

namespace secondsight::proxy {

class SessionSet;
class Worker;

/// Makes a worker's handler. It may take the worker's io() and register with on_tick().
using HandlerFactory = std::function<std::unique_ptr<Handler>(Worker&)>;

/// One thread, one event loop, its listeners and its sessions. Order of calls: listen (any number),
/// start, begin_drain and wait_drained, stop, join. Of these stop() is for any thread, the others
/// are for the thread that owns the worker.
class Worker {
 public:
  /// All must outlive the worker.
  Worker(const ProxySettings& settings, const Clock& clock, FrontMetrics& metrics,
         const HandlerFactory& make_handler);
  /// Stops and joins. Sessions still there are destroyed before the handler, both before io().
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Opens a listener; the endpoint with the port that was bound. Before start().
  Result<tcp::endpoint> listen(const tcp::endpoint& endpoint);
  /// Called about ten times a second on the worker's thread. Register before start().
  void on_tick(std::function<void(SteadyTime)> service);
  net::io_context& io() noexcept;

  void start();
  /// Accepts no more, closes idle connections, lets the others finish their response.
  void begin_drain();
  /// Waits until no session is left: false when `deadline` came first. After begin_drain().
  bool wait_drained(std::chrono::steady_clock::time_point deadline);
  /// Ends the loop at once, sessions or not.
  void stop() noexcept;
  void join();

 private:
  class Context;
  net::awaitable<void> accept(tcp::acceptor& acceptor);
  net::awaitable<void> tick();
  void note_if_drained();

  const Clock& clock_;
  std::unique_ptr<Context> io_;
  std::vector<std::function<void(SteadyTime)>> services_;
  std::unique_ptr<Handler> handler_;
  std::unique_ptr<SessionSet> sessions_;
  std::vector<std::unique_ptr<tcp::acceptor>> acceptors_;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable drained_change_;
  bool is_drained_ = false;  // under mutex_
};

}  // namespace secondsight::proxy
