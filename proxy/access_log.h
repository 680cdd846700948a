#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "config/clock.h"
#include "config/metrics.h"
#include "config/result.h"

namespace secondsight::proxy {

/// One answered request, as a line tells it. Views last for the call.
struct AccessRecord {
  WallTime time;  // when its head was read
  std::chrono::microseconds duration{0};
  std::string_view method, host, target;
  int status = 0;                // 0: the client got no head
  std::uint64_t body_bytes = 0;  // handed to the connection
  std::string_view outcome;      // as in secondsight_requests_total
  std::string_view detail;       // as in Cache-Status; may be empty
};

/// One JSON object per request and line. note() only appends to a bounded buffer; flush() writes
/// it, on Maintenance's thread, so that no event loop waits for a file. What does not fit is
/// dropped and counted in secondsight_access_log_dropped_total. Thread-safe.
class AccessLog {
 public:
  static constexpr std::size_t kBufferBytesMax = 4U << 20;

  /// `path`: a file, appended to; "-": standard output. Errors: what open(2) says.
  static Result<std::unique_ptr<AccessLog>> open(const std::string& path, Metrics& metrics);
  ~AccessLog();  // flushes
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  void note(const AccessRecord& record) noexcept;
  void flush() noexcept;

 private:
  AccessLog(int fd, Metrics& metrics);
  const int fd_;
  Counter& dropped_;
  std::mutex mutex_;
  std::string buffer_;   // guarded by mutex_
  std::string writing_;  // flush() only
};

/// The line of one record, with its newline.
std::string format_access_line(const AccessRecord& record);

}  // namespace secondsight::proxy
