#include "proxy/access_log.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace secondsight::proxy {
namespace {

std::string text_of(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()),
                static_cast<int>(clock.subseconds().count()));
  return text.data();
}

}  // namespace

std::string format_access_line(const AccessRecord& record) {
  boost::json::object line;
  line["time"] = text_of(record.time);
  line["method"] = record.method;
  line["host"] = record.host;
  line["target"] = record.target;
  line["status"] = record.status;
  line["body_bytes"] = record.body_bytes;
  line["duration_us"] = record.duration.count();
  line["outcome"] = record.outcome;
  if (!record.detail.empty()) line["detail"] = record.detail;
  return boost::json::serialize(line) + '\n';
}

Result<std::unique_ptr<AccessLog>> AccessLog::open(const std::string& path, Metrics& metrics) {
  const int fd = path == "-"
                     ? ::dup(STDOUT_FILENO)
                     : ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
  if (fd < 0) return boost::system::error_code(errno, boost::system::system_category());
  return std::unique_ptr<AccessLog>(new AccessLog(fd, metrics));
}

AccessLog::AccessLog(int fd, Metrics& metrics)
    : fd_(fd),
      dropped_(metrics.counter("secondsight_access_log_dropped_total",
                               "Access-log lines dropped because the file took them too slowly.")) {
}

AccessLog::~AccessLog() {
  flush();
  ::close(fd_);
}

void AccessLog::note(const AccessRecord& record) noexcept {
  try {
    const std::string line = format_access_line(record);
    const std::lock_guard lock(mutex_);
    if (buffer_.size() + line.size() > kBufferBytesMax) return dropped_.add();
    buffer_ += line;
  } catch (const std::exception&) {
    dropped_.add();  // no memory for a line: the request goes on
  }
}

void AccessLog::flush() noexcept {
  writing_.clear();
  {
    const std::lock_guard lock(mutex_);
    std::swap(buffer_, writing_);
  }
  std::string_view left = writing_;
  while (!left.empty()) {
    const auto written = ::write(fd_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return dropped_.add();  // a full disk, a closed pipe: the rest is lost
    left.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace secondsight::proxy
