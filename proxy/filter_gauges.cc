#include "proxy/filter_gauges.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

namespace secondsight::proxy {
namespace {

using admission::FilterStatus;

/// A status takes a look at 16384 lines of the filter: not for each number of a scrape.
class RecentStatus {
 public:
  RecentStatus(const admission::AdmissionPolicy& policy, const Clock& clock)
      : policy_(policy), clock_(clock) {}

  FilterStatus get() {
    const SteadyTime now = clock_.steady();
    const std::lock_guard lock(mutex_);
    if (!taken_ || now - *taken_ > kGoodFor) {
      status_ = policy_.status(now);
      taken_ = now;
    }
    return status_;
  }

 private:
  static constexpr std::chrono::milliseconds kGoodFor{100};
  const admission::AdmissionPolicy& policy_;
  const Clock& clock_;
  std::mutex mutex_;
  std::optional<SteadyTime> taken_;
  FilterStatus status_;
};

double seconds(SteadyTime::duration time) noexcept {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

void register_filter_gauges(Metrics& metrics, const admission::AdmissionPolicy& policy,
                            const Clock& clock) {
  const auto recent = std::make_shared<RecentStatus>(policy, clock);
  const auto gauge = [&](const char* name, const char* help, auto read) {
    metrics.gauge(name, help, {},
                  [recent, read] { return static_cast<double>(read(recent->get())); });
  };
  using Status = FilterStatus;
  gauge("secondsight_filter_memory_bytes", "Memory of the admission filter, both generations.",
        [](const Status& s) { return s.memory_bytes; });
  gauge("secondsight_filter_fill_ratio", "Share of bits set in the filter's current generation.",
        [](const Status& s) { return s.fill; });
  gauge("secondsight_filter_marked_keys", "Keys marked in the filter's current generation.",
        [](const Status& s) { return s.marked_keys; });
  gauge(
      "secondsight_filter_false_positive_rate",
      "Chance that a key never seen is taken for a repeat now, from the bits of both generations.",
      [](const Status& s) { return s.false_positive_rate; });
  gauge("secondsight_filter_window_age_seconds", "Age of the filter's current generation.",
        [](const Status& s) { return seconds(s.window_age); });
  gauge("secondsight_filter_last_generation_seconds",
        "How long the filter's last complete generation took marks; 0 until there is one.",
        [](const Status& s) { return seconds(s.last_generation); });
  for (const bool by_age : {true, false}) {
    metrics.counter_from(
        "secondsight_filter_rotations_total", "Rotations of the filter, by cause.",
        {{"cause", by_age ? "age" : "fill"}}, [recent, by_age] {
          const Status s = recent->get();
          return static_cast<double>(by_age ? s.rotations_by_age : s.rotations_by_fill);
        });
  }
}

}  // namespace secondsight::proxy
