#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace secondsight {

/// A number that only grows. Striped over cache lines, so that two workers that count the same
/// event do not take each other's line. add() from any thread, one relaxed add and no lock.
class Counter {
 public:
  void add(std::uint64_t n = 1) noexcept;
  /// Sum over the stripes: exact when nobody adds, never behind a value that was seen before by the
  /// same thread.
  std::uint64_t value() const noexcept;

 private:
  static constexpr std::size_t kStripes = 8;
  struct alignas(64) Stripe {
    std::atomic<std::uint64_t> count{0};  // relaxed: a statistic, orders nothing
  };
  std::array<Stripe, kStripes> stripes_{};
};

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

/// Every number the admin listener shows, under its Prometheus name. Registration happens at start
/// and takes a lock; counters are then used by reference, for as long as the registry lives.
/// Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// The counter of that name and labels; made on first use. Counters of one name share the help
  /// text.
  Counter& counter(const std::string& name, const std::string& help,
                   const MetricLabels& labels = {});
  /// A value read at each scrape, on the scraping thread. `read` must be thread-safe.
  void gauge(const std::string& name, const std::string& help, const MetricLabels& labels,
             std::function<double()> read);
  /// Same, exposed as a counter: for numbers that grow but are kept elsewhere.
  void counter_from(const std::string& name, const std::string& help, const MetricLabels& labels,
                    std::function<double()> read);

  /// Prometheus text exposition format 0.0.4.
  std::string expose() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace secondsight
