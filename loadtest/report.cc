#include "loadtest/report.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include <boost/json/array.hpp>

#include "loadtest/progress.h"

namespace secondsight::loadtest {
namespace {

namespace json = boost::json;

const std::string kUnknown = "?";

template <class... Arguments>
std::string formatted(const char* format, Arguments... arguments) {
  std::array<char, 64> text{};
  const int length = std::snprintf(text.data(), text.size(), format, arguments...);
  return {text.data(), static_cast<std::size_t>(length)};
}

std::string percent(double share) {
  return formatted("%.2f %%", 100 * share);
}
std::string megabytes(std::uint64_t bytes) {
  return formatted("%.2f MB", static_cast<double>(bytes) / 1e6);
}
double milliseconds(std::uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e6;
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

template <class T, class Show>
std::string shown(const std::optional<T>& value, Show show) {
  return value ? show(*value) : kUnknown;
}

struct Row {
  const char* label;
  std::function<std::string(const RunReport&)> cell;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows{
      {"requests", [](const RunReport& r) { return with_commas(r.drive.requests); }},
      {"errors", [](const RunReport& r) { return with_commas(r.drive.errors); }},
      {"corrupt bodies", [](const RunReport& r) { return with_commas(r.drive.corrupt_bodies); }},
      {"hit ratio, objects",
       [](const RunReport& r) { return percent(share(r.drive.hits, r.drive.requests)); }},
      {"hit ratio, bytes",
       [](const RunReport& r) { return percent(share(r.drive.hit_bytes, r.drive.body_bytes)); }},
      {"origin fetches", [](const RunReport& r) { return shown(r.origin_fetches, with_commas); }},
      {"objects written",
       [](const RunReport& r) { return shown(r.counters.objects_written, with_commas); }},
      {"written, the proxy's count",
       [](const RunReport& r) { return shown(r.counters.bytes_written, megabytes); }},
      {"written, the kernel's count",
       [](const RunReport& r) { return r.kernel ? megabytes(r.kernel->written) : kUnknown; }},
      {"cache directory, allocated",
       [](const RunReport& r) {
         return r.directory ? megabytes(r.directory->allocated_bytes) : kUnknown;
       }},
      {"one-hit objects on disk",
       [](const RunReport& r) { return with_commas(r.drive.one_hit_written); }},
      {"latency p50",
       [](const RunReport& r) {
         return formatted("%.3f ms", milliseconds(r.drive.latency.quantile(0.5)));
       }},
      {"latency p99",
       [](const RunReport& r) {
         return formatted("%.3f ms", milliseconds(r.drive.latency.quantile(0.99)));
       }},
      {"latency p99.9",
       [](const RunReport& r) {
         return formatted("%.3f ms", milliseconds(r.drive.latency.quantile(0.999)));
       }},
      {"latency max",
       [](const RunReport& r) {
         return formatted("%.3f ms", milliseconds(r.drive.latency.max()));
       }},
      {"requests per second",
       [](const RunReport& r) {
         return formatted("%.0f", r.drive.seconds > 0
                                      ? static_cast<double>(r.drive.requests) / r.drive.seconds
                                      : 0.0);
       }},
      {"filter fill", [](const RunReport& r) { return shown(r.counters.filter_fill, percent); }},
      {"filter false-positive rate",
       [](const RunReport& r) { return shown(r.counters.filter_rate, percent); }},
      {"filter memory",
       [](const RunReport& r) { return shown(r.counters.filter_bytes, megabytes); }},
  };
  return kRows;
}

template <class T>
json::value value_of(const std::optional<T>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}

json::object object_of(const std::map<std::string, std::uint64_t, std::less<>>& counts) {
  json::object out;
  for (const auto& [name, count] : counts) out[name] = count;
  return out;
}
json::object object_of(const std::map<std::string, std::uint64_t>& counts) {
  json::object out;
  for (const auto& [name, count] : counts) out[name] = count;
  return out;
}

json::object json_of(const RunReport& run) {
  const DriveResult& drive = run.drive;
  json::object out;
  out["policy"] = run.policy;
  out["requests"] = drive.requests;
  out["hits"] = drive.hits;
  out["hit_bytes"] = drive.hit_bytes;
  out["origin_fetches"] = value_of(run.origin_fetches);
  out["objects_written"] = value_of(run.counters.objects_written);
  out["bytes_written"] = value_of(run.counters.bytes_written);
  out["kernel_write_bytes"] = run.kernel ? json::value(run.kernel->written) : json::value(nullptr);
  out["errors"] = drive.errors;
  out["corrupt_bodies"] = drive.corrupt_bodies;
  out["p50_ms"] = milliseconds(drive.latency.quantile(0.5));
  out["p99_ms"] = milliseconds(drive.latency.quantile(0.99));

  out["p90_ms"] = milliseconds(drive.latency.quantile(0.9));
  out["p999_ms"] = milliseconds(drive.latency.quantile(0.999));
  out["max_ms"] = milliseconds(drive.latency.max());
  out["mean_ms"] = drive.latency.mean() / 1e6;
  out["body_bytes"] = drive.body_bytes;
  out["connections"] = run.connections;
  out["rate"] = run.rate;
  out["seconds"] = drive.seconds;
  out["generator_cpu_seconds"] = drive.cpu_seconds;
  out["reconnects"] = drive.reconnects;
  out["one_hit_objects_written"] = drive.one_hit_written;
  json::object outcomes;
  for (std::size_t i = 0; i < kOutcomes; ++i) {
    outcomes[facts_of(static_cast<Outcome>(i)).word] = drive.outcomes[i];
  }
  out["outcomes"] = std::move(outcomes);
  out["details"] = object_of(drive.details);
  out["bytes_written_by_cause"] = object_of(run.counters.bytes_by_cause);
  out["proxy_requests_by_outcome"] = object_of(run.counters.requests_by_outcome);
  out["proxy_origin_fetches"] = value_of(run.counters.origin_fetches);
  out["kernel_cancelled_write_bytes"] =
      run.kernel ? json::value(run.kernel->cancelled) : json::value(nullptr);
  out["directory_size_bytes"] =
      run.directory ? json::value(run.directory->size_bytes) : json::value(nullptr);
  out["directory_allocated_bytes"] =
      run.directory ? json::value(run.directory->allocated_bytes) : json::value(nullptr);
  out["filter_fill"] = value_of(run.counters.filter_fill);
  out["filter_false_positive_rate"] = value_of(run.counters.filter_rate);
  out["filter_memory_bytes"] = value_of(run.counters.filter_bytes);
  out["index_objects"] = value_of(run.counters.index_objects);
  out["memory_bytes"] = value_of(run.counters.memory_bytes);
  json::array notes;
  for (const std::string& note : run.notes) notes.emplace_back(note);
  for (const std::string& example : drive.examples) notes.emplace_back(example);
  out["notes"] = std::move(notes);
  return out;
}

std::optional<double> avoided_share(std::optional<std::uint64_t> first,
                                    std::optional<std::uint64_t> second) {
  if (!first || !second || *first == 0) return std::nullopt;
  return 1 - static_cast<double>(*second) / static_cast<double>(*first);
}

std::string padded(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

}  // namespace

bool clean(const RunReport& run) noexcept {
  return run.drive.errors == 0 && run.drive.corrupt_bodies == 0;
}

Avoided avoided(const RunReport& first, const RunReport& second) {
  return {avoided_share(first.counters.objects_written, second.counters.objects_written),
          avoided_share(first.counters.bytes_written, second.counters.bytes_written)};
}

WorkloadFacts workload_facts(const Plan& plan, std::string name) {
  return {std::move(name), plan.requests.size(), plan.objects.size(), plan.one_hit_objects,
          plan.unique_bytes};
}

std::string table_of(const WorkloadFacts& workload, const std::vector<RunReport>& runs) {
  constexpr std::size_t kLabel = 29;
  constexpr std::size_t kCell = 18;
  std::string text = workload.name + ": " + with_commas(workload.requests) + " requests for " +
                     with_commas(workload.objects) + " objects (" +
                     megabytes(workload.unique_bytes) + "), " +
                     percent(share(workload.one_hit_objects, workload.objects)) +
                     " of them asked once\n\n" + std::string(kLabel, ' ');
  for (const RunReport& run : runs) text += padded(run.policy, kCell);
  text += '\n';
  for (const Row& row : rows()) {
    const std::string label = row.label;
    text += label + std::string(kLabel - label.size(), ' ');
    for (const RunReport& run : runs) text += padded(row.cell(run), kCell);
    text += '\n';
  }
  if (runs.size() > 1) {
    const Avoided saved = avoided(runs.front(), runs.back());
    text += "\nwrites avoided: " + shown(saved.objects, percent) + " of objects, " +
            shown(saved.bytes, percent) + " of bytes\n";
  }
  for (const RunReport& run : runs) {
    for (const std::string& note : run.notes) text += "note: " + run.policy + ": " + note + '\n';
    for (const std::string& example : run.drive.examples) {
      text += "failed: " + run.policy + ": " + example + '\n';
    }
  }
  return text;
}

boost::json::object json_of(const WorkloadFacts& workload, const std::vector<RunReport>& runs) {
  json::object out;
  out["trace"] = workload.name;
  out["workload"] = {{"requests", workload.requests},
                     {"objects", workload.objects},
                     {"one_hit_objects", workload.one_hit_objects},
                     {"unique_bytes", workload.unique_bytes}};
  json::array all;
  for (const RunReport& run : runs) all.emplace_back(json_of(run));
  out["runs"] = std::move(all);
  if (runs.size() > 1) {
    const Avoided saved = avoided(runs.front(), runs.back());
    out["avoided"] = {{"objects", value_of(saved.objects)}, {"bytes", value_of(saved.bytes)}};
  }
  return out;
}

std::string write_file(const std::string& path, const std::string& text) {
  const std::string aside = path + ".new";
  errno = 0;
  std::ofstream file(aside, std::ios::binary);
  file << text;
  file.close();
  if (!file) return "cannot write " + aside + ": " + std::strerror(errno);
  std::error_code error;
  std::filesystem::rename(aside, path, error);
  return error ? "cannot write " + path + ": " + error.message() : std::string{};
}

}  // namespace secondsight::loadtest
