#include "loadtest/simulate_report.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include <boost/json/array.hpp>

#include "config/units.h"
#include "loadtest/progress.h"

namespace secondsight::loadtest {
namespace {

namespace json = boost::json;

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

template <class... Arguments>
std::string formatted(const char* format, Arguments... arguments) {
  std::array<char, 256> text{};
  const int length = std::snprintf(text.data(), text.size(), format, arguments...);
  return {text.data(), static_cast<std::size_t>(length)};
}

std::string size_cell(std::uint64_t bytes, std::uint64_t unique_bytes) {
  if (bytes == 0) return "-";
  return formatted("%s (%.3g %%)", format_bytes(bytes).c_str(), percent(bytes, unique_bytes));
}

std::string line_of(const Comparison& comparison, const ComparedRun& run) {
  const std::uint64_t requests = comparison.workload.requests;
  const auto objects = [&](std::uint64_t hits) { return percent(hits, requests); };
  const auto bytes = [&](std::uint64_t hit) { return percent(hit, comparison.requested_bytes); };
  std::string line =
      formatted("%21s %21s %7.2f %7.2f %7.2f %7.2f %7.2f %7.2f %8.2f %7.2f",
                size_cell(run.sizes.disk_bytes, comparison.workload.unique_bytes).c_str(),
                size_cell(run.sizes.memory_bytes, comparison.workload.unique_bytes).c_str(),
                objects(run.cache.hits()), objects(run.fifo.hits), objects(run.lru.hits),
                objects(run.lru_all.hits), objects(run.clairvoyant.hits), objects(run.hits_bound),
                bytes(run.cache.hit_bytes), bytes(run.lru.hit_bytes));
  if (run.sizes.disk_bytes > 0) {
    line +=
        formatted(" %8.1f %10.2f", percent(run.cache.reappended_bytes, run.cache.admitted_bytes),
                  static_cast<double>(run.cache.written_bytes) / 1e6);
  }
  return line + '\n';
}

/// ", which took 2 MiB and rotated 3 times (2 of them full)", of the run where it took most.
std::string admission_words(const Comparison& comparison) {
  const SimulationResult* most = nullptr;
  for (const ComparedRun& run : comparison.runs)
    if (most == nullptr || run.cache.admission_bytes > most->admission_bytes) most = &run.cache;
  if (most == nullptr || most->admission_bytes == 0) return {};
  return formatted(
      ", which took %s and rotated %llu times (%llu of them full)",
      format_bytes(most->admission_bytes).c_str(),
      static_cast<unsigned long long>(most->rotations_by_age + most->rotations_by_fill),
      static_cast<unsigned long long>(most->rotations_by_fill));
}

json::object json_of(const ModelResult& model) {
  return {{"hits", model.hits},
          {"hit_bytes", model.hit_bytes},
          {"admitted_bytes", model.admitted_bytes}};
}

json::object json_of(const ComparedRun& run) {
  json::object out;
  out["disk_bytes"] = run.sizes.disk_bytes;
  out["memory_bytes"] = run.sizes.memory_bytes;
  out["max_object_bytes"] = run.sizes.max_object;
  out["hits"] = run.cache.hits();
  out["memory_hits"] = run.cache.memory_hits;
  out["disk_hits"] = run.cache.disk_hits;
  out["hit_bytes"] = run.cache.hit_bytes;
  out["written_bytes"] = run.cache.written_bytes;
  out["admitted_bytes"] = run.cache.admitted_bytes;
  out["reappended_bytes"] = run.cache.reappended_bytes;
  out["disk_bytes_peak"] = run.cache.disk_bytes_peak;
  out["memory_bytes_peak"] = run.cache.memory_bytes_peak;
  out["admission_bytes"] = run.cache.admission_bytes;
  out["rotations_by_age"] = run.cache.rotations_by_age;
  out["rotations_by_fill"] = run.cache.rotations_by_fill;
  out["fifo"] = json_of(run.fifo);
  out["lru"] = json_of(run.lru);
  out["lru_admit_all"] = json_of(run.lru_all);
  out["clairvoyant"] = json_of(run.clairvoyant);
  out["hits_bound"] = run.hits_bound;
  return out;
}

}  // namespace

std::string table_of(const Comparison& comparison) {
  const WorkloadFacts& workload = comparison.workload;
  std::string text =
      workload.name + ": " + with_commas(workload.requests) + " requests for " +
      with_commas(workload.objects) + " objects (" + format_bytes(workload.unique_bytes) + "), " +
      comparison.policy + admission_words(comparison) + "\n" +
      formatted("%21s %21s %7s %7s %7s %7s %7s %7s %8s %7s", "disk", "memory", "objects", "FIFO",
                "LRU", "LRU all", "clairv.", "bound", "bytes", "LRU");
  const bool has_disk = !comparison.runs.empty() && comparison.runs.front().sizes.disk_bytes > 0;
  if (has_disk) text += formatted(" %8s %10s", "again", "MB written");
  text += '\n';
  std::size_t below = 0;
  double worst = 0;
  for (const ComparedRun& run : comparison.runs) {
    text += line_of(comparison, run);
    if (run.cache.hits() >= run.lru.hits) continue;
    ++below;
    worst = std::max(worst, percent(run.lru.hits - run.cache.hits(), workload.requests));
  }
  return text + formatted("below LRU: %zu of %zu, by at most %.2f points\n", below,
                          comparison.runs.size(), worst);
}

boost::json::object json_of(const Comparison& comparison) {
  json::object out;
  out["trace"] = comparison.workload.name;
  out["policy"] = comparison.policy;
  out["workload"] = {{"requests", comparison.workload.requests},
                     {"objects", comparison.workload.objects},
                     {"one_hit_objects", comparison.workload.one_hit_objects},
                     {"unique_bytes", comparison.workload.unique_bytes},
                     {"requested_bytes", comparison.requested_bytes}};
  json::array runs;
  for (const ComparedRun& run : comparison.runs) runs.emplace_back(json_of(run));
  out["runs"] = std::move(runs);
  return out;
}

}  // namespace secondsight::loadtest
