#include "proxy/maintenance.h"

#include <chrono>
#include <string>

#include "admission/filter_report.h"
#include "config/log.h"
#include "config/units.h"

namespace secondsight::proxy {
namespace {

constexpr std::chrono::seconds kDiskInterval{1};        // how often a failed disk is tried again
constexpr std::chrono::minutes kFilterLookInterval{1};  // how often its generations are looked at

}  // namespace

Maintenance::Maintenance(const AdmissionSettings& admission, const Clock& clock,
                         admission::AdmissionPolicy& policy, cache::Cache& cache,
                         AccessLog* access_log)
    : clock_(clock),
      policy_(policy),
      cache_(cache),
      access_log_(access_log),
      window_(admission.window),
      early_rotation_(admission),
      thread_([this] { run(); }) {}

Maintenance::~Maintenance() {
  stop();
}

void Maintenance::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_requested_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Maintenance::run() {
  SteadyTime disk_due = clock_.steady();
  SteadyTime look_due = disk_due;
  std::unique_lock lock(mutex_);
  while (!stop_requested_.wait_for(lock, admission::kMaintenanceInterval,
                                   [this] { return stopping_; })) {
    lock.unlock();
    const SteadyTime now = clock_.steady();
    policy_.maintain(now);
    cache_.sweep_purged(now);
    if (access_log_ != nullptr) access_log_->flush();
    if (now >= look_due) {
      look_due = now + kFilterLookInterval;
      tell_early_rotation(now);
    }
    if (now >= disk_due) {
      disk_due = now + kDiskInterval;
      cache_.try_disk_again();
    }
    lock.lock();
  }
}

void Maintenance::tell_early_rotation(SteadyTime now) {
  const auto early = early_rotation_.look(policy_.status(now), now);
  if (!early) return;
  log_line(LogLevel::Warning, "sightings are remembered less long than [admission] window says",
           {{"generation", format_duration(early->lasted)},
            {"window", format_duration(window_)},
            {"expected_keys_needed", std::to_string(early->expected_keys)}});
}

}  // namespace secondsight::proxy
