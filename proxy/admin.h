#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "config/metrics.h"
#include "config/result.h"
#include "config/settings.h"
#include "proxy/asio.h"
#include "proxy/explainer.h"
#include "proxy/purger.h"
#include "proxy/sighting_import.h"

namespace secondsight::proxy {

/// The operator's listener, on its own thread: a busy or draining proxy still tells how it is.
///   GET /healthz   200 "ok", or 503 "draining"
///   GET /metrics   Prometheus text
///   POST /explain  a request head as the body: what would become of that request, as JSON
///                  {"facts": {...}, "words": [["label", "text"], ...]}; 400 {"error": "..."}
///   POST /purge    JSON that says what to purge (docs/purge.md); answered once that is durable.
///                  Not for web pages: what has an Origin is refused with 403
///   POST /sightings/import   merges the snapshot that lies in the cache directory, as JSON
///                  (sighting_import.h): 200, or 409 where nothing of it was taken. One at a time.
///                  Likewise not for web pages; 404 where sightings are not kept
/// At most 64 connections, each read and written within ten seconds; bodies of at most 64 KiB.
class Admin {
 public:
  using Explain = std::function<std::variant<Explanation, NotExplained>(std::string_view head)>;
  /// Resumes on that event loop.
  using Purge =
      std::function<net::awaitable<Purger::Answer>(net::io_context& io, std::string_view json)>;
  /// Calls what it is given once, from any thread, however late, or drops it.
  using ImportSightings = std::function<void(std::function<void(SnapshotImport)> done)>;
  /// All are asked on the admin thread. `metrics` must outlive this.
  Admin(const Metrics& metrics, std::function<bool()> is_draining, Explain explain, Purge purge,
        ImportSightings import_sightings = {});
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
