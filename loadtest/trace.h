#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/result.h"
#include "loadtest/request_source.h"

namespace secondsight::loadtest {

/// What a trace file had that was not a request. Never fatal.
struct TraceFaults {
  static constexpr std::size_t kExamplesMax = 5;
  std::uint64_t lines = 0;  // read, header and empty lines included
  std::uint64_t bad_lines = 0;
  std::vector<std::string> examples;  // "line 7: size is not a number: ..."; the first few
  bool damaged = false;               // the gzip stream ended early or failed its checksum
};

/// Reads one line `timestamp_seconds,key,size_bytes` into `request`; else what is wrong with it.
/// The key is any bytes but a comma, 1 to 1,024 of them, and not "." or "..".
std::string_view parse_trace_line(std::string_view line, SourceRequest& request);

/// A trace file, plain or gzip (found by its first bytes), read as a stream. A header line is
/// skipped.
class TraceReader final : public RequestSource {
 public:
  /// Errors: no_such_file_or_directory, permission_denied, is_a_directory, I/O.
  static Result<std::unique_ptr<TraceReader>> open(const std::string& path);
  ~TraceReader() override;

  bool next(SourceRequest& request) override;
  const TraceFaults& faults() const noexcept { return faults_; }

 private:
  TraceReader();
  bool read_line();
  struct Input;
  std::unique_ptr<Input> input_;
  std::string line_;
  TraceFaults faults_;
};

}  // namespace secondsight::loadtest
