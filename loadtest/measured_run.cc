#include "loadtest/measured_run.h"

#include <chrono>
#include <thread>

#include "loadtest/http_get.h"

namespace secondsight::loadtest {
namespace {

using std::chrono::milliseconds;

/// Everything that is counted, at one moment.
struct Snapshot {
  std::optional<ProxyCounters> counters;
  std::optional<ProcessIo> kernel;
  std::uint64_t origin_fetches = 0;
  double origin_cpu = 0;
};

std::optional<ProxyCounters> read_counters(const ProxyUnderTest& proxy,
                                           std::vector<std::string>& notes) {
  if (!proxy.admin) return std::nullopt;
  constexpr milliseconds kTimeout(5'000);
  const auto text = http_get(*proxy.admin, "/metrics", kTimeout);
  if (!text) {
    notes.push_back("the proxy's metrics cannot be read: " + text.error().message());
    return std::nullopt;
  }
  return read_proxy_counters(MetricsText(*text));
}

/// The log is written behind the responses: waits until nothing is queued and the counts stand
/// still.
void wait_for_writer(const ProxyUnderTest& proxy, std::vector<std::string>& notes) {
  constexpr milliseconds kPause(100);
  constexpr milliseconds kLongest(10'000);
  std::vector<std::string> ignored;  // read_counters() is asked again, and noted, afterwards
  std::optional<std::uint64_t> before;
  for (milliseconds waited(0); waited < kLongest; waited += kPause) {
    const auto counters = read_counters(proxy, ignored);
    if (!counters) return;
    const bool empty = counters->writer_queue_bytes.value_or(0) == 0;
    const std::uint64_t written = counters->bytes_written.value_or(0);
    if (empty && before == written) return;
    before = written;
    std::this_thread::sleep_for(kPause);
  }
  notes.emplace_back("the proxy was still writing 10 s after the last response");
}

Snapshot take_snapshot(const ProxyUnderTest& proxy, const Origin* origin,
                       std::vector<std::string>& notes) {
  Snapshot snapshot;
  snapshot.counters = read_counters(proxy, notes);
  if (proxy.pid) {
    const auto io = read_process_io(*proxy.pid);
    if (io) {
      snapshot.kernel = *io;
    } else {
      notes.push_back("the kernel's counts cannot be read: " + io.error().message());
    }
  }
  if (origin != nullptr) {
    snapshot.origin_fetches = origin->counters().fetches.load(std::memory_order_relaxed);
    snapshot.origin_cpu = origin->cpu_seconds();
  }
  return snapshot;
}

std::uint64_t grown(std::uint64_t after, std::uint64_t before) {
  return after > before ? after - before : 0;
}

std::optional<std::uint64_t> grown(std::optional<std::uint64_t> after,
                                   std::optional<std::uint64_t> before) {
  if (!after) return std::nullopt;
  return grown(*after, before.value_or(0));
}

using Counts = std::map<std::string, std::uint64_t>;
Counts grown(Counts after, const Counts& before) {
  for (auto& [name, value] : after) {
    const auto old = before.find(name);
    if (old != before.end()) value = grown(value, old->second);
  }
  return after;
}

ProxyCounters grown(const ProxyCounters& after, const ProxyCounters& before) {
  ProxyCounters run = after;  // gauges stay
  run.objects_written = grown(after.objects_written, before.objects_written);
  run.bytes_written = grown(after.bytes_written, before.bytes_written);
  run.bytes_by_cause = grown(after.bytes_by_cause, before.bytes_by_cause);
  run.origin_fetches = grown(after.origin_fetches, before.origin_fetches);
  run.requests_by_outcome = grown(after.requests_by_outcome, before.requests_by_outcome);
  return run;
}

/// A processor that one thread of ours fills bounds the result more than the proxy does.
void note_bottleneck(RunReport& report, double origin_cpu) {
  constexpr double kFull = 0.9;
  if (report.drive.seconds < 1) return;
  if (report.drive.cpu_seconds > kFull * report.drive.seconds) {
    report.notes.emplace_back(
        "the load generator filled its core: the rate is its own, not the proxy's");
  }
  if (origin_cpu > kFull * report.drive.seconds) {
    report.notes.emplace_back("the origin filled its core: the rate is its own, not the proxy's");
  }
}

void note_disagreements(RunReport& report, const ProxyUnderTest& proxy) {
  WriteCounts counts;
  counts.proxy_bytes = report.counters.bytes_written;
  if (report.kernel) counts.kernel_bytes = report.kernel->written;
  counts.directory = report.directory;
  counts.disk_limit_bytes = proxy.disk_limit_bytes;
  for (std::string& sentence : disagreements(counts)) report.notes.push_back(std::move(sentence));
  const auto told = report.counters.origin_fetches;
  const auto seen = report.origin_fetches;
  // Fetches that had not ended at one of the two moments may be on one side only.
  const std::uint64_t slack = report.connections;
  if (told && seen && grown(*told, *seen) + grown(*seen, *told) > slack) {
    report.notes.push_back("the proxy counted " + std::to_string(*told) +
                           " origin fetches, the origin " + std::to_string(*seen));
  }
}

}  // namespace

RunReport measured_run(const Plan& plan, const ProxyUnderTest& proxy, const Origin* origin,
                       const DriveOptions& options) {
  RunReport report;
  report.policy = proxy.policy;
  report.connections = options.connections;
  report.rate = options.rate;
  const Snapshot before = take_snapshot(proxy, origin, report.notes);

  report.drive = drive(plan, options);
  if (report.drive.interrupted_by != 0) return report;

  if (before.counters) wait_for_writer(proxy, report.notes);
  const Snapshot after = take_snapshot(proxy, origin, report.notes);
  if (after.counters) {
    report.counters = grown(*after.counters, before.counters.value_or(ProxyCounters{}));
    if (!report.counters.objects_written || !report.counters.bytes_written) {
      report.notes.emplace_back("the proxy's metrics do not say what it wrote");
    }
  }
  if (after.kernel) {
    const ProcessIo base = before.kernel.value_or(ProcessIo{});
    report.kernel = ProcessIo{grown(after.kernel->written, base.written),
                              grown(after.kernel->cancelled, base.cancelled)};
  }
  if (origin != nullptr) report.origin_fetches = after.origin_fetches - before.origin_fetches;
  if (!proxy.cache_directory.empty()) {
    const auto use = measure_directory(proxy.cache_directory);
    if (use) {
      report.directory = *use;
    } else {
      report.notes.push_back("the cache directory cannot be read: " + use.error().message());
    }
  }
  note_disagreements(report, proxy);
  note_bottleneck(report, after.origin_cpu - before.origin_cpu);
  return report;
}

}  // namespace secondsight::loadtest
