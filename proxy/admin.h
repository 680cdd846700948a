#pragma once
#include <functional>
#include <memory>

#include "config/metrics.h"
#include "config/result.h"
#include "config/settings.h"
#include "proxy/asio.h"

namespace secondsight::proxy {

/// The operator's listener, on its own thread: a busy or draining proxy still tells how it is.
///   GET /healthz   200 "ok", or 503 "draining"
///   GET /metrics   Prometheus text
/// At most 64 connections, each read and written within ten seconds.
class Admin {
 public:
  /// `is_draining` is asked on the admin thread. `metrics` must outlive this.
  Admin(const Metrics& metrics, std::function<bool()> is_draining);
  /// Stops.
  ~Admin();
  Admin(const Admin&) = delete;
  Admin& operator=(const Admin&) = delete;

  /// Binds, listens and starts the thread; the endpoint with the port that was bound. Once.
  Result<tcp::endpoint> start(const ListenAddress& address);
  /// Closes all connections and joins the thread. Idempotent.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace secondsight::proxy
