#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <boost/program_options.hpp>

#include "admission/bloom_math.h"
#include "admission/filter_report.h"
#include "config/units.h"
#include "loadtest/commands.h"
#include "loadtest/workload_options.h"

namespace secondsight::loadtest {
namespace {

namespace po = boost::program_options;

struct FilterOptions {
  std::vector<std::uint64_t> keys{AdmissionSettings{}.expected_keys};
  double rate = AdmissionSettings{}.false_positive_rate;
  std::string window = "24h";
  std::vector<double> load_factors{std::begin(admission::kReportedTraffic),
                                   std::end(admission::kReportedTraffic)};
};

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

template <class Number>
std::vector<Number> read_list(std::string_view option, std::string_view list) {
  std::vector<Number> numbers;
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t to = std::min(list.find(',', from), list.size());
    const std::string_view text = list.substr(from, to - from);
    if (!read_number(text, numbers.emplace_back())) {
      throw UsageError("--" + std::string(option) + ": '" + std::string(text) +
                       "' is no number; several are separated by commas");
    }
    from = to + 1;
  }
  return numbers;
}

po::options_description describe(FilterOptions& options) {
  po::options_description description(
      "usage: secondsight-load filter [OPTION...]\n\n"
      "Tells what the proxy's admission filter would cost and do with these settings: memory, bits "
      "per key, the\nrate of false repeats on average and at the worst instant, what happens "
      "beyond "
      "the planned traffic, and\nwhat is to spare. Figures by formula; nothing is run.\n\noptions");
  description.add_options()(
      "keys", po::value<std::string>()->value_name("N,..")->notifier([&](const std::string& text) {
        options.keys = read_list<std::uint64_t>("keys", text);
      }),
      "expected keys of a generation (1000000)")(
      "rate", po::value(&options.rate)->value_name("R")->default_value(options.rate, "0.01"),
      "rate of false repeats, on average over the window")(
      "window", po::value(&options.window)->value_name("TIME")->default_value(options.window),
      "a generation's longest life")(
      "load-factor",
      po::value<std::string>()->value_name("F,..")->notifier([&](const std::string& text) {
        options.load_factors = read_list<double>("load-factor", text);
      }),
      "multiples of the planned keys to tell about (2,10)")("help,h", "this text");
  return description;
}

AdmissionSettings read_settings(const FilterOptions& options, std::uint64_t keys) {
  constexpr std::uint64_t kAnyBytes = ~std::uint64_t{0};  // the machine it is for is another one
  AdmissionSettings settings;
  settings.expected_keys = keys;
  settings.false_positive_rate = options.rate;
  if (const auto fault = admission::explain_bad_size(keys, options.rate, kAnyBytes))
    throw UsageError("--keys, --rate: " + *fault);
  const auto window = parse_duration(options.window);
  if (!window) throw UsageError("--window: '" + options.window + "' is no time (24h)");
  settings.window = *window;
  if (const auto fault = admission::explain_bad_window(*window))
    throw UsageError("--window: " + *fault);
  return settings;
}

}  // namespace

int command_filter(const std::vector<std::string>& arguments) {
  FilterOptions options;
  const po::options_description description = describe(options);
  po::variables_map values;
  po::store(po::command_line_parser(arguments).options(description).positional({}).run(), values);
  po::notify(values);
  if (values.count("help") > 0) {
    std::cout << description;
    return 0;
  }
  for (const double factor : options.load_factors) {
    if (!(factor > 1) || !std::isfinite(factor))
      throw UsageError("--load-factor: traffic beyond the plan is more than 1 times it");
  }
  std::string text;
  for (const std::uint64_t keys : options.keys) {
    if (!text.empty()) text += '\n';
    text +=
        admission::describe_filter(read_settings(options, keys), "filter  ", options.load_factors);
  }
  std::cout << text;
  return 0;
}

}  // namespace secondsight::loadtest
