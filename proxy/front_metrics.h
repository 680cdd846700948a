#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "config/metrics.h"
#include "proxy/request_fault.h"

namespace secondsight::proxy {

/// What the client's side counts; one for all workers. Thread-safe.
class FrontMetrics {
 public:
  explicit FrontMetrics(Metrics& metrics);

  Counter& connections;
  Counter& connections_refused;  // over proxy.max_connections
  Counter& malformed(RequestFault fault) const noexcept {
    return *malformed_[static_cast<std::size_t>(fault)];
  }
  void connection_opened() noexcept { open_->fetch_add(1, std::memory_order_relaxed); }
  void connection_closed() noexcept { open_->fetch_sub(1, std::memory_order_relaxed); }

 private:
  std::array<Counter*, kRequestFaults> malformed_{};
  // Relaxed: a statistic, orders nothing. Shared with the gauge, which may be read as long as
  // Metrics lives.
  std::shared_ptr<std::atomic<std::int64_t>> open_;
};

}  // namespace secondsight::proxy
