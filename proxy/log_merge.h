#pragma once
#include <memory>
#include <string>
#include <vector>

#include "admission/access_log.h"
#include "config/result.h"
#include "proxy/log_reader.h"
#include "proxy/log_sightings.h"

namespace secondsight::proxy {

/// Several access logs, read side by side in the order of their times: rotated files in any order,
/// or those of servers that stood beside each other. Each by itself is in order, more or less.
class LogMerge {
 public:
  struct Log {
    std::string path;
    std::unique_ptr<LogReader> reader;
    admission::LoggedRequest next;
  };

  /// Errors: what LogReader::open says.
  Result<> open(const std::string& path);
  /// Reads all to their ends.
  void run(LogSightings& sightings);
  const std::vector<Log>& logs() const noexcept { return logs_; }

 private:
  std::vector<Log> logs_;
};

}  // namespace secondsight::proxy
