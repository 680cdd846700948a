#include "proxy/maintenance.h"

#include <chrono>

namespace secondsight::proxy {
namespace {

constexpr std::chrono::milliseconds kFilterInterval{20};  // how often the filter's sweep advances
constexpr std::chrono::seconds kDiskInterval{1};          // how often a failed disk is tried again

}  // namespace

Maintenance::Maintenance(const Clock& clock, admission::AdmissionPolicy& policy,
                         cache::Cache& cache, AccessLog* access_log)
    : clock_(clock), policy_(policy), cache_(cache), access_log_(access_log), thread_([this] {
        run();
      }) {}

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
  std::unique_lock lock(mutex_);
  while (!stop_requested_.wait_for(lock, kFilterInterval, [this] { return stopping_; })) {
    lock.unlock();
    const SteadyTime now = clock_.steady();
    policy_.maintain(now);
    cache_.sweep_purged(now);
    if (access_log_ != nullptr) access_log_->flush();
    if (now >= disk_due) {
      disk_due = now + kDiskInterval;
      cache_.try_disk_again();
    }
    lock.lock();
  }
}

}  // namespace secondsight::proxy
