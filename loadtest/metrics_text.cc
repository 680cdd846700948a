#include "loadtest/metrics_text.h"

#include <charconv>

namespace secondsight::loadtest {
namespace {

std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return line;
}

/// Reads `name="value",...}` from the front of `rest`, brace included; false when it is malformed.
bool read_labels(std::string_view& rest, std::map<std::string, std::string>& labels) {
  while (!rest.empty() && rest.front() != '}') {
    const auto equals = rest.find("=\"");
    if (equals == std::string_view::npos) return false;
    const std::string name(rest.substr(0, equals));
    rest.remove_prefix(equals + 2);
    std::string value;
    while (!rest.empty() && rest.front() != '"') {
      if (rest.front() == '\\' && rest.size() > 1) {
        rest.remove_prefix(1);
        value += rest.front() == 'n' ? '\n' : rest.front();
      } else {
        value += rest.front();
      }
      rest.remove_prefix(1);
    }
    if (rest.empty()) return false;
    rest.remove_prefix(1);
    if (!rest.empty() && rest.front() == ',') rest.remove_prefix(1);
    labels[name] = value;
  }
  if (rest.empty()) return false;
  rest.remove_prefix(1);
  return true;
}

}  // namespace

MetricsText::MetricsText(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (line.empty() || line.front() == '#') continue;
    const auto name_end = line.find_first_of("{ ");
    if (name_end == std::string_view::npos || name_end == 0) continue;
    const std::string name(line.substr(0, name_end));
    Sample sample;
    const bool labelled = line[name_end] == '{';
    line.remove_prefix(name_end + (labelled ? 1 : 0));
    if (labelled && !read_labels(line, sample.labels)) continue;
    const auto number = line.find_first_not_of(' ');
    if (number == std::string_view::npos) continue;
    line.remove_prefix(number);
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), sample.value);
    // A time stamp may follow the value after a space.
    if (error != std::errc{} || (end != line.data() + line.size() && *end != ' ')) continue;
    samples_.emplace(name, std::move(sample));
  }
}

std::optional<double> MetricsText::sum(std::string_view name) const {
  const auto [first, last] = samples_.equal_range(name);
  if (first == last) return std::nullopt;
  double total = 0;
  for (auto it = first; it != last; ++it) total += it->second.value;
  return total;
}

std::map<std::string, double> MetricsText::by_label(std::string_view name,
                                                    std::string_view label) const {
  std::map<std::string, double> values;
  const auto [first, last] = samples_.equal_range(name);
  for (auto it = first; it != last; ++it) {
    const auto found = it->second.labels.find(std::string(label));
    if (found != it->second.labels.end()) values[found->second] += it->second.value;
  }
  return values;
}

}  // namespace secondsight::loadtest
