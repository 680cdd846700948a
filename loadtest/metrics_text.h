#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace secondsight::loadtest {

/// The samples of one Prometheus text exposition (0.0.4). Lines that are no sample are passed over.
class MetricsText {
 public:
  MetricsText() = default;
  explicit MetricsText(std::string_view text);

  /// Sum over all label sets of `name`; empty when there is none.
  std::optional<double> sum(std::string_view name) const;
  /// The samples of `name` by the value of one label (those that lack it are left out).
  std::map<std::string, double> by_label(std::string_view name, std::string_view label) const;
  bool empty() const noexcept { return samples_.empty(); }

 private:
  struct Sample {
    std::map<std::string, std::string> labels;
    double value = 0;
  };
  std::multimap<std::string, Sample, std::less<>> samples_;
};

}  // namespace secondsight::loadtest
