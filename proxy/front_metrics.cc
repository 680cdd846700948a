#include "proxy/front_metrics.h"

#include <string>

namespace secondsight::proxy {

FrontMetrics::FrontMetrics(Metrics& metrics)
    : connections(metrics.counter("secondsight_connections_total", "Client connections accepted.")),
      connections_refused(
          metrics.counter("secondsight_connections_refused_total",
                          "Client connections closed at once, over proxy.max_connections.")),
      open_(std::make_shared<std::atomic<std::int64_t>>(0)) {
  for (std::size_t i = 0; i < kRequestFaults; ++i) {
    const std::string reason(word_of(static_cast<RequestFault>(i)));
    malformed_[i] =
        &metrics.counter("secondsight_malformed_requests_total",
                         "Requests refused before they were handled.", {{"reason", reason}});
  }
  metrics.gauge("secondsight_connections", "Client connections open now.", {}, [open = open_] {
    return static_cast<double>(open->load(std::memory_order_relaxed));
  });
}

}  // namespace secondsight::proxy
