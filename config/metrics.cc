#include "config/metrics.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <prometheus/check_names.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sstream>

#include "config/check.h"

namespace secondsight {
namespace {

/// Threads take stripes in turn, so that the first kStripes threads never share one.
std::size_t stripe_of_this_thread() noexcept {
  static std::atomic<std::size_t> next{0};  // relaxed: only spreads, orders nothing
  thread_local const std::size_t stripe = next.fetch_add(1, std::memory_order_relaxed);
  return stripe;
}

prometheus::ClientMetric to_client_metric(const MetricLabels& labels) {
  prometheus::ClientMetric metric;
  for (const auto& [name, value] : labels) metric.label.push_back({name, value});
  return metric;
}

}  // namespace

void Counter::add(std::uint64_t n) noexcept {
  stripes_[stripe_of_this_thread() % kStripes].count.fetch_add(n, std::memory_order_relaxed);
}

std::uint64_t Counter::value() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& stripe : stripes_) sum += stripe.count.load(std::memory_order_relaxed);
  return sum;
}

struct Metrics::Impl {
  /// A value of a family: a counter of ours, or one that is kept elsewhere and read at the scrape.
  struct Series {
    Counter counter;
    std::function<double()> read;
    double value() const { return read ? read() : static_cast<double>(counter.value()); }
  };
  struct Family {
    std::string help;
    prometheus::MetricType type;
    std::map<MetricLabels, Series> series;  // nodes stay where they are: counters go by reference
  };

  std::mutex mutex;  // guards the maps; not held while a series is read
  std::map<std::string, Family> families;

  Family& family(const std::string& name, const std::string& help, prometheus::MetricType type) {
    CHECK(prometheus::CheckMetricName(name));
    Family& family = families.try_emplace(name, Family{help, type, {}}).first->second;
    CHECK(family.type == type);
    CHECK(family.help == help);
    return family;
  }

  void add_read(const std::string& name, const std::string& help, MetricLabels labels,
                std::function<double()> read, prometheus::MetricType type) {
    CHECK(read != nullptr);
    std::sort(labels.begin(), labels.end());
    const std::scoped_lock lock{mutex};
    const auto [series, is_new] = family(name, help, type).series.try_emplace(std::move(labels));
    CHECK(is_new);
    series->second.read = std::move(read);
  }
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

Counter& Metrics::counter(const std::string& name, const std::string& help,
                          const MetricLabels& labels) {
  MetricLabels sorted = labels;
  std::sort(sorted.begin(), sorted.end());
  const std::scoped_lock lock{impl_->mutex};
  Impl::Family& family = impl_->family(name, help, prometheus::MetricType::Counter);
  Impl::Series& series = family.series[std::move(sorted)];
  CHECK(series.read == nullptr);
  return series.counter;
}

void Metrics::gauge(const std::string& name, const std::string& help, const MetricLabels& labels,
                    std::function<double()> read) {
  impl_->add_read(name, help, labels, std::move(read), prometheus::MetricType::Gauge);
}

void Metrics::counter_from(const std::string& name, const std::string& help,
                           const MetricLabels& labels, std::function<double()> read) {
  impl_->add_read(name, help, labels, std::move(read), prometheus::MetricType::Counter);
}

std::string Metrics::expose() const {
  std::vector<prometheus::MetricFamily> families;
  std::vector<std::vector<const Impl::Series*>> series;
  {
    const std::scoped_lock lock{impl_->mutex};
    for (const auto& [name, family] : impl_->families) {
      families.push_back({name, family.help, family.type, {}});
      series.emplace_back();
      for (const auto& [labels, one] : family.series) {
        families.back().metric.push_back(to_client_metric(labels));
        series.back().push_back(&one);
      }
    }
  }
  // A read may take its own locks, so ours is free by now. A series is never removed.
  for (std::size_t i = 0; i < families.size(); ++i) {
    for (std::size_t j = 0; j < series[i].size(); ++j) {
      const double value = series[i][j]->value();
      families[i].metric[j].counter.value = value;
      families[i].metric[j].gauge.value = value;
    }
  }
  std::ostringstream text;
  prometheus::TextSerializer{}.Serialize(text, families);
  return std::move(text).str();
}

}  // namespace secondsight
