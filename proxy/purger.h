#pragma once
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "cache/cache.h"
#include "cache/sites.h"
#include "config/clock.h"
#include "config/metrics.h"
#include "proxy/asio.h"
#include "proxy/purge_request.h"

namespace secondsight::proxy {

/// Purges for those who ask, on the admin listener or with PURGE, and tells them as JSON what came
/// of it. Thread-safe.
class Purger {
 public:
  struct Answer {
    int status = 200;
    std::string json;
  };

  /// All must outlive it.
  Purger(cache::Cache& cache, const cache::Sites& sites, const Clock& clock, Metrics& metrics);
  ~Purger();

  /// As POST /purge asks. `by`: who does, for the log. 400: what is wrong with it; nothing was
  /// purged. 200: it holds whatever happens. 503: it is in effect, and not yet safe: the disk
  /// failed, or has not answered in kPatience. Resumes on `io`, which outlives the wait.
  net::awaitable<Answer> purge_json(net::io_context& io, std::string_view json,
                                    std::string_view by);
  /// Of one URL, by a PURGE for it.
  net::awaitable<Answer> purge_url(net::io_context& io, std::string_view host,
                                   std::string_view target, cache::PurgeKind kind,
                                   std::string_view by);
  /// Nobody is told any more when the disk has taken a purge: whoever waits may go.
  void stop();

  /// How long one who asks waits for the disk.
  static constexpr std::chrono::seconds kPatience{5};

 private:
  struct Gate;
  struct Waiting;
  net::awaitable<Answer> purge(net::io_context& io, PurgeRequest request, std::string by);
  std::shared_ptr<Waiting> begin(net::io_context& io, const PurgeRequest& request);
  void note(const PurgeRequest& request, std::string_view by);

  cache::Cache& cache_;
  const cache::Sites& sites_;
  const Clock& clock_;
  std::array<std::array<Counter*, 2>, 4> counters_{};  // by scope and kind
  Counter& not_durable_;
  std::shared_ptr<Gate> gate_;  // shared with what the writer is to call
};

}  // namespace secondsight::proxy
