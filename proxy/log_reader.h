#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "admission/access_log.h"
#include "config/result.h"

namespace secondsight::proxy {

/// What was not used of a log, and why.
struct LogFaults {
  static constexpr std::size_t kExamplesMax = 3;
  std::uint64_t lines = 0;            // read, bad ones included
  std::uint64_t bad_lines = 0;        // skipped
  std::uint64_t empty_lines = 0;      // likewise, without a word
  bool is_damaged = false;            // the file ended in the middle, or its gzip stream is broken
  std::vector<std::string> examples;  // "line 17: no status: ..." of the first bad lines

  void add(std::string_view reason, std::string_view line);
};

/// Reads an access log, plain or gzip, line by line. A line that says nothing is skipped and
/// counted, never fatal; so is one of more than kLineBytesMax.
class LogReader {
 public:
  static constexpr std::size_t kLineBytesMax = 64U << 10;

  /// "-": standard input. Errors: what open(2) says; is_a_directory.
  static Result<std::unique_ptr<LogReader>> open(const std::string& path);
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  /// The next line that says something. False at the end.
  bool next(admission::LoggedRequest& request);
  /// The line that next() gave is of no use after all.
  void refuse(std::string_view reason);

  const LogFaults& faults() const noexcept { return faults_; }

 private:
  LogReader();
  bool read_line();

  struct Input;
  std::unique_ptr<Input> input_;
  std::vector<char> buffer_;
  std::string_view line_;
  bool is_too_long_ = false;
  LogFaults faults_;
};

}  // namespace secondsight::proxy
