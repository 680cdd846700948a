#include "proxy/descriptor_limit.h"

#include <algorithm>
#include <string>
#include <sys/resource.h>
#include <thread>

#include "cache/log/object_log.h"
#include "config/log.h"

namespace secondsight::proxy {
namespace {

/// Event loops, listeners, pipes, log files, libraries.
constexpr std::uint64_t kOwn = 64;
constexpr std::uint64_t kOwnOfWorker = 16;

}  // namespace

std::uint64_t descriptors_wanted(const Settings& settings, unsigned workers) noexcept {
  const std::uint64_t of_worker = std::uint64_t{settings.proxy.max_connections} +
                                  settings.origin.max_connections + kOwnOfWorker;
  const std::uint64_t disk_bytes = settings.cache.disk_bytes;
  // As many again while readers hold segments that were removed.
  const std::uint64_t segments =
      disk_bytes > 0 ? 2 * (disk_bytes / cache::log::ObjectLog::segment_bytes_for(disk_bytes)) : 0;
  return kOwn + workers * of_worker + segments;
}

void raise_descriptor_limit(const Settings& settings) noexcept {
  const unsigned workers = settings.proxy.workers > 0
                               ? settings.proxy.workers
                               : std::max(1U, std::thread::hardware_concurrency());
  const rlim_t wanted = descriptors_wanted(settings, workers);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  if (::setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == wanted) return;
  log_line(LogLevel::Warning, "the limit of open files is below what the settings may need",
           {{"wanted", std::to_string(wanted)}, {"limit", std::to_string(limit.rlim_cur)}});
}

}  // namespace secondsight::proxy
