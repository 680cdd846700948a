#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admission/admission_policy.h"
#include "cache/cache.h"
#include "cache/sites.h"
#include "config/clock.h"
#include "config/metrics.h"
#include "config/posix_file_system.h"
#include "config/settings.h"
#include "proxy/access_log.h"
#include "proxy/admin.h"
#include "proxy/counters.h"
#include "proxy/disk_pool.h"
#include "proxy/exchange.h"
#include "proxy/explainer.h"
#include "proxy/flight_table.h"
#include "proxy/front_metrics.h"
#include "proxy/maintenance.h"
#include "proxy/purger.h"
#include "proxy/sighting_keeper.h"
#include "proxy/worker.h"

namespace secondsight::proxy {

/// The whole proxy: everything that is shared, and the workers. Built by main() and by nothing
/// else. One thread starts and stops it.
class Server {
 public:
  /// `clock` must outlive the server. `files` takes the place of cache.directory (tests bring a
  /// disk that fails on purpose).
  Server(Settings settings, const Clock& clock, std::unique_ptr<FileSystem> files = nullptr);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Opens the cache, listens, starts every thread. Empty on success, else what failed, in words
  /// for the operator; then the server is to be destroyed.
  std::string start();
  /// Accepts no more, lets exchanges finish for at most proxy.drain_timeout, writes what is queued
  /// for the disk and seals the log. `hurry` is asked meanwhile: true ends the wait.
  void stop(const std::function<bool()>& hurry);

  /// Where clients are listened to, in the order of the settings.
  const std::vector<tcp::endpoint>& endpoints() const noexcept { return endpoints_; }
  /// Where the admin listener is; empty: there is none.
  const std::optional<tcp::endpoint>& admin_endpoint() const noexcept { return admin_endpoint_; }
  const Metrics& metrics() const noexcept { return metrics_; }
  cache::Cache& cache() noexcept { return *cache_; }

 private:
  std::string find_used_address() const;
  std::string open_cache();
  std::string listen();
  void register_gauges();
  void end_workers();

  const Settings settings_;
  const Clock& clock_;
  Metrics metrics_;
  std::unique_ptr<admission::FingerprintSeed> seed_;
  std::unique_ptr<admission::AdmissionPolicy> policy_;
  std::unique_ptr<FileSystem> files_;
  std::unique_ptr<cache::Cache> cache_;
  std::unique_ptr<SightingKeeper> keeper_;  // null: no disk, or a policy that keeps no sightings
  std::unique_ptr<const cache::Sites> sites_;
  FlightTable flights_;
  ProxyCounters counters_{metrics_};
  FrontMetrics front_metrics_{metrics_};
  std::unique_ptr<Purger> purger_;
  std::unique_ptr<DiskPool> disk_;
  std::unique_ptr<AccessLog> access_log_;
  std::unique_ptr<Maintenance> maintenance_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<ExchangeHandler*> handlers_;  // owned by the workers
  bool workers_started_ = false;
  std::vector<tcp::endpoint> endpoints_;
  std::optional<tcp::endpoint> admin_endpoint_;
  std::atomic<bool> draining_{false};  // relaxed: told to whoever asks /healthz
  std::unique_ptr<Explainer> explainer_;
  std::unique_ptr<Admin> admin_;
};

}  // namespace secondsight::proxy
