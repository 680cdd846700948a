#pragma once
#include <functional>
#include <memory>
#include <string_view>
#include <variant>

#include "config/metrics.h"
#include "config/result.h"
#include "config/settings.h"
#include "proxy/asio.h"
#include "proxy/explainer.h"

namespace secondsight::proxy {

/// The operator's listener, on its own thread: a busy or draining proxy still tells how it is.
///   GET /healthz   200 "ok", or 503 "draining"
///   GET /metrics   Prometheus text
///   POST /explain  a request head as the body: what would become of that request, as JSON
///                  {"facts": {...}, "words": [["label", "text"], ...]}; 400 {"error": "..."}
/// At most 64 connections, each read and written within ten seconds; bodies of at most 64 KiB.
class Admin {
 public:
  using Explain = std::function<std::variant<Explanation, NotExplained>(std::string_view head)>;
  /// `is_draining` and `explain` are asked on the admin thread. `metrics` must outlive this.
  Admin(const Metrics& metrics, std::function<bool()> is_draining, Explain explain);
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
