#include "proxy/counters.h"

namespace secondsight::proxy {

std::string_view to_string(Outcome o) noexcept {
  constexpr std::array<std::string_view, kOutcomeCount> kWords = {"hit",  "stale",  "revalidated",
                                                                  "miss", "bypass", "error"};
  return kWords[static_cast<std::size_t>(o)];
}

ProxyCounters::ProxyCounters(Metrics& metrics)
    : collapsed(metrics.counter("secondsight_collapsed_requests_total",
                                "Requests answered by a fetch that another request had started.")),
      continued_bodies(metrics.counter("secondsight_continued_responses_total",
                                       "Responses whose stored body was lost under the reader and "
                                       "went on from the origin.")),
      cut_bodies(
          metrics.counter("secondsight_cut_responses_total",
                          "Responses cut short because the rest of the body could not be had.")),
      sent_bytes(metrics.counter("secondsight_sent_body_bytes_total",
                                 "Body bytes handed to clients' connections.")) {
  for (std::size_t i = 0; i < kOutcomeCount; ++i) {
    requests[i] =
        &metrics.counter("secondsight_requests_total", "Requests answered, by how they ended.",
                         {{"outcome", std::string(to_string(static_cast<Outcome>(i)))}});
  }
}

}  // namespace secondsight::proxy
