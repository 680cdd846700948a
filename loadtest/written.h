#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "config/result.h"
#include "loadtest/metrics_text.h"

namespace secondsight::loadtest {

/// The kernel's count for one process, bytes. `written` grows when a page becomes dirty, by the
/// whole page, for the process that dirties it; `cancelled` when such a page is thrown away before
/// it is written. proc(5).
struct ProcessIo {
  std::uint64_t written = 0;
  std::uint64_t cancelled = 0;
};
std::optional<ProcessIo> parse_process_io(std::string_view text);
/// Errors: no_such_file_or_directory (no such process), permission_denied, bad_message.
Result<ProcessIo> read_process_io(pid_t pid);

/// What a directory's files take.
struct DirectoryUse {
  std::uint64_t files = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t allocated_bytes = 0;  // blocks, reserved ones included
  bool on_tmpfs = false;              // the kernel does not count writes there
};
/// Errors: I/O. Files that vanish while it looks are left out.
Result<DirectoryUse> measure_directory(const std::string& path);

/// What a proxy says of itself. Empty: it does not show that metric.
struct ProxyCounters {
  std::optional<std::uint64_t> objects_written;
  std::optional<std::uint64_t> bytes_written;  // all causes
  std::map<std::string, std::uint64_t> bytes_by_cause;
  std::optional<std::uint64_t> origin_fetches;
  std::map<std::string, std::uint64_t> requests_by_outcome;
  std::optional<double> filter_fill;
  std::optional<double> filter_rate;
  std::optional<std::uint64_t> filter_bytes;
  std::optional<std::uint64_t> index_objects;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> writer_queue_bytes;
};
ProxyCounters read_proxy_counters(const MetricsText& metrics);

/// One run's writes, each counted in its own way; before and after are taken apart already.
struct WriteCounts {
  std::optional<std::uint64_t> proxy_bytes;
  std::optional<std::uint64_t> kernel_bytes;
  std::optional<DirectoryUse> directory;
  std::uint64_t disk_limit_bytes = 0;  // configured; 0: unknown
};

/// How far two counts may lie apart: the kernel counts whole pages, and a page again when it is
/// dirtied again after it was written out.
inline constexpr double kWriteTolerance = 0.10;
inline constexpr std::uint64_t kWriteSlackBytes = 1u << 20;

/// What the counts contradict each other in, one sentence each; empty when they agree.
std::vector<std::string> disagreements(const WriteCounts& counts);

}  // namespace secondsight::loadtest
