#include "loadtest/written.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace secondsight::loadtest {
namespace {

constexpr long kTmpfsMagic = 0x01021994;    // statfs(2)
constexpr std::uint64_t kBlockBytes = 512;  // st_blocks' unit, whatever the file system's

std::optional<std::uint64_t> whole(std::optional<double> value) {
  if (!value) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(*value));
}

std::map<std::string, std::uint64_t> whole(const std::map<std::string, double>& values) {
  std::map<std::string, std::uint64_t> out;
  for (const auto& [name, value] : values) {
    out[name] = static_cast<std::uint64_t>(std::llround(value));
  }
  return out;
}

std::uint64_t slack_around(std::uint64_t bytes) {
  return kWriteSlackBytes +
         static_cast<std::uint64_t>(kWriteTolerance * static_cast<double>(bytes));
}

bool differ(std::uint64_t a, std::uint64_t b) {
  return (a > b ? a - b : b - a) > slack_around(a > b ? a : b);
}

}  // namespace

std::optional<ProcessIo> parse_process_io(std::string_view text) {
  const auto field = [text](std::string_view name) -> std::optional<std::uint64_t> {
    auto at = text.find(name);
    if (at == std::string_view::npos) return std::nullopt;
    at += name.size();
    std::uint64_t value = 0;
    const auto error = std::from_chars(text.data() + at, text.data() + text.size(), value).ec;
    if (error != std::errc{}) return std::nullopt;
    return value;
  };
  const auto written = field("\nwrite_bytes: ");
  const auto cancelled = field("\ncancelled_write_bytes: ");
  if (!written || !cancelled) return std::nullopt;
  return ProcessIo{*written, *cancelled};
}

Result<ProcessIo> read_process_io(pid_t pid) {
  errno = 0;
  std::ifstream file("/proc/" + std::to_string(pid) + "/io");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) {
    return boost::system::error_code(errno != 0 ? errno : EIO, boost::system::system_category());
  }
  const auto io = parse_process_io(text);
  if (!io) return make_error_code(boost::system::errc::bad_message);
  return *io;
}

Result<DirectoryUse> measure_directory(const std::string& path) {
  DirectoryUse use;
  struct statfs file_system {};
  if (statfs(path.c_str(), &file_system) != 0) {
    return boost::system::error_code(errno, boost::system::system_category());
  }
  use.on_tmpfs = file_system.f_type == kTmpfsMagic;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    struct stat status {};
    if (lstat(it->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    ++use.files;
    use.size_bytes += static_cast<std::uint64_t>(status.st_size);
    use.allocated_bytes += static_cast<std::uint64_t>(status.st_blocks) * kBlockBytes;
  }
  if (error) return boost::system::error_code(error);
  return use;
}

ProxyCounters read_proxy_counters(const MetricsText& metrics) {
  ProxyCounters counters;
  counters.objects_written = whole(metrics.sum("secondsight_objects_written_total"));
  counters.bytes_written = whole(metrics.sum("secondsight_written_bytes_total"));
  counters.bytes_by_cause = whole(metrics.by_label("secondsight_written_bytes_total", "cause"));
  counters.origin_fetches = whole(metrics.sum("secondsight_origin_fetches_total"));
  counters.requests_by_outcome = whole(metrics.by_label("secondsight_requests_total", "outcome"));
  counters.filter_fill = metrics.sum("secondsight_filter_fill_ratio");
  counters.filter_rate = metrics.sum("secondsight_filter_false_positive_rate");
  counters.filter_bytes = whole(metrics.sum("secondsight_filter_memory_bytes"));
  counters.index_objects = whole(metrics.sum("secondsight_index_objects"));
  counters.memory_bytes = whole(metrics.sum("secondsight_memory_bytes"));
  counters.writer_queue_bytes = whole(metrics.sum("secondsight_writer_queue_bytes"));
  return counters;
}

std::vector<std::string> disagreements(const WriteCounts& counts) {
  std::vector<std::string> found;
  const auto say = [&found](const std::string& what, std::uint64_t a, const std::string& other,
                            std::uint64_t b) {
    found.push_back(what + " " + std::to_string(a) + " bytes, " + other + " " + std::to_string(b));
  };
  const bool uncounted = counts.directory && counts.directory->on_tmpfs;
  if (uncounted) {
    found.emplace_back("the cache directory is on tmpfs, where the kernel counts no writes");
  } else if (counts.proxy_bytes && counts.kernel_bytes &&
             differ(*counts.proxy_bytes, *counts.kernel_bytes)) {
    say("the proxy counted", *counts.proxy_bytes, "the kernel", *counts.kernel_bytes);
  }
  if (counts.directory && counts.disk_limit_bytes > 0) {
    const std::uint64_t allocated = counts.directory->allocated_bytes;
    const std::uint64_t limit = counts.disk_limit_bytes;
    if (allocated > limit + slack_around(0)) {
      say("the cache directory takes", allocated, "its configured limit is", limit);
    }
    // What was written is still there as long as no segment had to make room.
    if (counts.proxy_bytes) {
      const std::uint64_t kept = *counts.proxy_bytes < limit ? *counts.proxy_bytes : limit;
      if (allocated + slack_around(kept) < kept) {
        say("the cache directory takes", allocated, "it should hold", kept);
      }
    }
  }
  return found;
}

}  // namespace secondsight::loadtest
