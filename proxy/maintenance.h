#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "admission/admission_policy.h"
#include "admission/early_rotation.h"
#include "cache/cache.h"
#include "config/clock.h"
#include "config/settings.h"
#include "proxy/access_log.h"

namespace secondsight::proxy {

/// The one thread for what is nobody's request: rotating and sweeping the filter, telling when it
/// remembers less long than it was meant to, letting the
/// writer try a failed disk again, making room of what was purged. Starts on construction, ends on
/// stop() or destruction.
class Maintenance {
 public:
  /// `access_log` may be null: none is written.
  Maintenance(const AdmissionSettings& admission, const Clock& clock,
              admission::AdmissionPolicy& policy, cache::Cache& cache, AccessLog* access_log);
  ~Maintenance();
  void stop();

 private:
  void run();
  void tell_early_rotation(SteadyTime now);

  const Clock& clock_;
  admission::AdmissionPolicy& policy_;
  cache::Cache& cache_;
  AccessLog* access_log_;
  const std::chrono::milliseconds window_;
  admission::EarlyRotationWatch early_rotation_;
  std::mutex mutex_;
  std::condition_variable stop_requested_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace secondsight::proxy
