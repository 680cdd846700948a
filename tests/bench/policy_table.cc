// What each structure of sightings takes, promises, delivers and costs: make bench-policies. The
// table in docs/admission.md, "The alternatives", is a run of it.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/program_options.hpp>

#include "admission/admission_policy.h"
#include "admission/classic_filter.h"
#include "admission/cuckoo_filter.h"
#include "admission/exact_set.h"
#include "admission/scalable_filter.h"
#include "admission/two_generation_filter.h"
#include "tests/admission/keys.h"

namespace {

using namespace secondsight;
using namespace secondsight::admission;
using test::Keys;

constexpr std::chrono::hours kWindow{24};
constexpr std::size_t kBatch = 16;

/// One structure behind the calls that are measured. A round is one virtual call, so that its cost
/// is not in the figures.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Sights `count` strangers from `strangers` on; how many of them were taken for repeats.
  virtual std::uint64_t sight_strangers(Keys& strangers, std::uint64_t count) = 0;
  /// Three strangers in four, the rest keys of the previous generation: a CDN edge's mix. One after
  /// another, the processor overlaps what it can.
  virtual std::uint64_t sight_mixed(const Keys& known, std::uint64_t known_count, Keys& strangers,
                                    std::uint64_t count) = 0;
  /// The same keys' like in batches of 16, each prefetched.
  virtual std::uint64_t sight_batches(const Keys& known, std::uint64_t known_count, Keys& strangers,
                                      std::uint64_t count) = 0;
  virtual void maintain() = 0;
  virtual void rotate() = 0;
  virtual std::uint64_t memory_bytes() const = 0;
  virtual std::uint64_t rotations() const = 0;
};

template <typename Structure>
class SubjectOf final : public Subject {
 public:
  template <typename... Size>
  explicit SubjectOf(const Size&... size) : structure_(size..., kWindow, now_) {}

  std::uint64_t sight_strangers(Keys& strangers, std::uint64_t count) override {
    std::uint64_t repeats = 0;
    for (std::uint64_t i = 0; i < count; ++i) repeats += sight(strangers.next());
    return repeats;
  }
  std::uint64_t sight_mixed(const Keys& known, std::uint64_t known_count, Keys& strangers,
                            std::uint64_t count) override {
    std::uint64_t repeats = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      repeats += sight(mixed_key(known, known_count, strangers));
    }
    return repeats;
  }
  std::uint64_t sight_batches(const Keys& known, std::uint64_t known_count, Keys& strangers,
                              std::uint64_t count) override {
    std::uint64_t repeats = 0;
    std::array<Fingerprint, kBatch> batch;
    for (std::uint64_t i = 0; i < count; i += kBatch) {
      for (Fingerprint& key : batch) {
        key = mixed_key(known, known_count, strangers);
        structure_.prefetch(key);
      }
      for (const Fingerprint& key : batch) repeats += sight(key);
    }
    return repeats;
  }
  void maintain() override { structure_.maintain(now_); }
  void rotate() override {
    structure_.maintain(now_ += kWindow);
    // Enough for a paced sweep; no structure rotates twice in one moment.
    for (std::uint64_t i = 0; i < 2 * TwoGenerationFilter::kSweepSteps; ++i) maintain();
  }
  std::uint64_t memory_bytes() const override { return structure_.status(now_).memory_bytes; }
  std::uint64_t rotations() const override {
    const FilterStatus status = structure_.status(now_);
    return status.rotations_by_age + status.rotations_by_fill;
  }

 private:
  std::uint64_t sight(const Fingerprint& key) {
    return structure_.sight(key) == Sighting::Repeat ? 1U : 0U;
  }
  static Fingerprint mixed_key(const Keys& known, std::uint64_t known_count, Keys& strangers) {
    const Fingerprint stranger = strangers.next();
    const std::uint64_t i = strangers.taken();
    // Known keys in an order that jumps about the table.
    return i % 4 == 0 ? known.at(i * 2'654'435'761U % known_count) : stranger;
  }

  SteadyTime now_{std::chrono::hours(1)};
  Structure structure_;
};

/// A policy that has no structure of its own, as the proxy would make it; a Repeat is what it
/// admits.
class WholePolicy {
 public:
  WholePolicy(const AdmissionSettings& settings, SteadyTime::duration /*window*/, SteadyTime now)
      : policy_(make_policy(settings, now, test::test_seed())) {}

  void prefetch(const Fingerprint& key) const noexcept { policy_->prefetch(key); }
  Sighting sight(const Fingerprint& key) noexcept {
    constexpr std::uint64_t kBodyBytes = 64 * 1024;  // the default scale of size-probability
    return admits(policy_->sight(key, kBodyBytes)) ? Sighting::Repeat : Sighting::First;
  }
  void maintain(SteadyTime now) noexcept { policy_->maintain(now); }
  FilterStatus status(SteadyTime now) const noexcept { return policy_->status(now); }

 private:
  std::unique_ptr<AdmissionPolicy> policy_;
};

struct Row {
  std::string name;
  FilterPrediction predicted;
  std::unique_ptr<Subject> subject;
  unsigned filters = 1;            // each rotates for itself; 0: it remembers nothing
  std::uint64_t memory_bytes = 0;  // with both generations as planned
  double measured_rate = 0;
  double standard_error = 0;
  std::vector<double> streamed_ns;  // one for each round
  std::vector<double> batched_ns;
};

template <typename Structure>
Row row_of(std::string name, std::uint64_t keys, double rate) {
  Row row;
  row.name = std::move(name);
  row.predicted = Structure::predict(keys, rate);
  row.subject = std::make_unique<SubjectOf<Structure>>(keys, rate);
  return row;
}

/// `expected`: the share of strangers that the policy admits, on average and at worst.
Row row_of(PolicyName policy, const WindowRates& expected, unsigned filters, std::uint64_t keys,
           double rate) {
  AdmissionSettings settings;
  settings.policy = policy;
  settings.expected_keys = keys;
  settings.false_positive_rate = rate;
  settings.window = kWindow;
  Row row;
  row.name = to_string(policy);
  row.predicted = {filters * size_filter(keys, rate).memory_bytes(), expected};
  row.subject = std::make_unique<SubjectOf<WholePolicy>>(settings);
  row.filters = filters;
  return row;
}

std::vector<Row> all_rows(std::uint64_t keys, double rate) {
  std::vector<Row> rows;
  Row& blocked = rows.emplace_back();
  const FilterSize size = size_filter(keys, rate);
  blocked.name = "second-sighting";
  const WindowRates blocked_rates = window_rates(size.keys_per_line());
  blocked.predicted = {size.memory_bytes(), blocked_rates};
  blocked.subject = std::make_unique<SubjectOf<TwoGenerationFilter>>(size);
  rows.push_back(row_of<ClassicFilter>("classic", keys, rate));
  rows.push_back(row_of<ScalableFilter>("scalable", keys, rate));
  rows.push_back(row_of<CuckooFilter>("cuckoo", keys, rate));
  rows.push_back(row_of<ExactSet>("exact", keys, rate));
  // Three sightings: a stranger must be mistaken by both filters, of which the second is nearly
  // empty as long as there are strangers only.
  const double squared = blocked_rates.worst * blocked_rates.worst;
  rows.push_back(row_of(PolicyName::NthSighting, {squared, squared}, 2, keys, rate));
  const AdmissionSettings defaults;
  const double by_size = std::exp(-1.0);
  rows.push_back(
      row_of(PolicyName::Probability, {defaults.probability, defaults.probability}, 0, keys, rate));
  rows.push_back(row_of(PolicyName::SizeProbability, {by_size, by_size}, 0, keys, rate));
  rows.push_back(row_of(PolicyName::Always, {1, 1}, 0, keys, rate));
  rows.push_back(row_of(PolicyName::Never, {0, 0}, 0, keys, rate));
  return rows;
}

/// CPU time: the machine may be shared.
double cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// `previous` full, then the rate over the filling of `current`, then a `previous` full of `known`
/// keys and a `current` half full, as on an average day.
void fill(Row& row, std::uint64_t keys, Keys& known, Keys& strangers) {
  constexpr std::uint64_t kCalls = 1000;  // of maintain() in a generation
  Subject& subject = *row.subject;
  const auto sight = [&](Keys& from, std::uint64_t count) {
    std::uint64_t repeats = 0;
    for (std::uint64_t done = 0; done < count;) {
      subject.maintain();  // before the marks: after the last of them it would rotate by fill
      const std::uint64_t some = std::min(count - done, keys / kCalls + 1);
      repeats += subject.sight_strangers(from, some);
      done += some;
    }
    return repeats;
  };
  sight(strangers, keys);
  subject.rotate();
  const std::uint64_t repeats = sight(known, keys);
  row.memory_bytes = subject.memory_bytes();
  row.measured_rate = static_cast<double>(repeats) / static_cast<double>(keys);
  row.standard_error =
      std::sqrt(row.measured_rate * (1 - row.measured_rate) / static_cast<double>(keys));
  subject.rotate();
  sight(strangers, keys / 2);
  if (subject.rotations() != 2 * row.filters) {
    std::cerr << row.name << " rotated " << subject.rotations() << " times instead of twice\n";
    std::exit(1);
  }
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string format(const char* pattern, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, value);
  return text.data();
}

std::string percent(double share) {
  if (share < 1e-9) return "0";
  return format(share < 0.001 ? "%.4f %%" : share < 0.05 ? "%.3f %%" : "%.1f %%", 100 * share);
}

void print_table(const std::vector<Row>& rows, std::uint64_t keys) {
  std::cout << "| policy | bytes per key, both generations | MB | rate, predicted | at worst "
               "| rate, measured | ns | in batches of 16 | ratio |\n"
               "|---|---|---|---|---|---|---|---|---|\n";
  const double yardstick = median(rows.front().streamed_ns);
  for (const Row& row : rows) {
    const auto memory = static_cast<double>(row.memory_bytes);
    const double streamed = median(row.streamed_ns);
    const std::string per_key = format("%.2f", memory / static_cast<double>(keys));
    const std::string megabytes = format("%.1f", memory / 1e6);
    std::cout << "| " << row.name << " | " << (row.filters > 0 ? per_key : "-") << " | "
              << (row.filters > 0 ? megabytes : "-") << " | "
              << percent(row.predicted.rates.average) << " | " << percent(row.predicted.rates.worst)
              << " | " << percent(row.measured_rate) << " ± " << percent(row.standard_error)
              << " | " << format("%.0f", streamed) << " | "
              << format("%.0f", median(row.batched_ns)) << " | "
              << format("%.2f", streamed / yardstick) << " |\n";
  }
}

boost::json::object to_json(const Row& row, std::uint64_t keys, double yardstick) {
  const double streamed = median(row.streamed_ns);
  return {
      {"policy", row.name},
      {"bytes_per_key", static_cast<double>(row.memory_bytes) / static_cast<double>(keys)},
      {"memory_bytes", row.memory_bytes},
      {"predicted_memory_bytes", row.predicted.memory_bytes},
      {"predicted_rate", row.predicted.rates.average},
      {"predicted_worst_rate", row.predicted.rates.worst},
      {"measured_rate", row.measured_rate},
      {"measured_rate_standard_error", row.standard_error},
      {"ns", streamed},
      {"ns_in_batches", median(row.batched_ns)},
      {"ratio", streamed / yardstick},
  };
}

struct Request {
  std::uint64_t keys = 0;
  double rate = 0;
  unsigned rounds = 0;
  std::string json;
};

/// Empty: help was asked for and given. Throws boost::program_options::error.
std::optional<Request> read_request(int argc, char** argv) {
  namespace options = boost::program_options;
  Request request;
  options::options_description known("usage: policy_table [options]");
  known.add_options()("keys", options::value(&request.keys)->default_value(5'000'000),
                      "per generation")("rate", options::value(&request.rate)->default_value(0.01),
                                        "configured, both generations together")(
      "rounds", options::value(&request.rounds)->default_value(9),
      "of timing, all structures in each")("json", options::value(&request.json),
                                           "where the figures go as JSON")("help", "print this");
  options::variables_map given;
  options::store(options::command_line_parser(argc, argv).options(known).positional({}).run(),
                 given);
  options::notify(given);
  if (given.count("help") > 0) {
    std::cout << known;
    return std::nullopt;
  }
  if (request.keys < 100'000) throw options::error("--keys: 100000 at least, or caches hide all");
  if (request.rounds == 0) throw options::error("--rounds: 1 at least");
  auto fault = explain_bad_size(request.keys, request.rate, ~std::uint64_t{0});
  if (!fault) fault = explain_bad_cuckoo_rate(request.rate);
  if (fault) throw options::error(*fault);
  return request;
}

void measure(const Request& request) {
  std::vector<Row> rows = all_rows(request.keys, request.rate);
  std::uint64_t stream = 0;
  std::vector<Keys> known;
  for (Row& row : rows) {
    known.emplace_back(++stream);
    Keys strangers(++stream);
    fill(row, request.keys, known.back(), strangers);
  }
  // A quarter of a generation more, over all rounds: from half full to three quarters.
  const std::uint64_t sightings = request.keys / request.rounds / 8 / kBatch * kBatch;
  Keys strangers(++stream);
  std::uint64_t repeats = 0;
  for (unsigned round = 0; round < request.rounds; ++round) {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const double began = cpu_ns();
      repeats += rows[r].subject->sight_mixed(known[r], request.keys, strangers, sightings);
      const double between = cpu_ns();
      repeats += rows[r].subject->sight_batches(known[r], request.keys, strangers, sightings);
      const double ended = cpu_ns();
      const auto count = static_cast<double>(sightings);
      rows[r].streamed_ns.push_back((between - began) / count);
      rows[r].batched_ns.push_back((ended - between) / count);
    }
  }
  if (repeats == 0) {
    std::cerr << "no known key was recognised\n";
    std::exit(1);
  }
  std::cout << request.keys << " keys per generation at " << request.rate << ", seed "
            << test::test_seed() << ", " << request.rounds << " rounds of " << sightings
            << " sightings each\n\n";
  print_table(rows, request.keys);
  if (request.json.empty()) return;
  boost::json::array structures;
  for (const Row& row : rows) {
    structures.push_back(to_json(row, request.keys, median(rows.front().streamed_ns)));
  }
  std::ofstream(request.json) << boost::json::object{{"keys_per_generation", request.keys},
                                                     {"rate", request.rate},
                                                     {"seed", test::test_seed()},
                                                     {"structures", std::move(structures)}}
                              << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::optional<Request> request = read_request(argc, argv);
    if (request) measure(*request);
    return 0;
  } catch (const boost::program_options::error& error) {
    std::cerr << error.what() << '\n';
    return 2;
  } catch (const std::bad_alloc&) {
    std::cerr << "not enough memory for so many keys\n";
    return 1;
  }
}
