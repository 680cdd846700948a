#pragma once
#include <cstdio>
#include <string>

#include "loadtest/driver.h"

namespace secondsight::loadtest {

/// "  demo  43 %  28,800 of 66,987  6,231/s  hits 12.3 %  failed 0  ETA 6 s"
std::string progress_text(const std::string& label, const DriveProgress& progress);

/// 1234567 -> "1,234,567".
std::string with_commas(std::uint64_t number);

/// Shows progress on a stream: one line that is rewritten on a terminal, else a line every ten
/// seconds and one at the end.
class ProgressView {
 public:
  ProgressView(std::FILE* out, std::string label);
  void show(const DriveProgress& progress);

 private:
  std::FILE* out_;
  std::string label_;
  bool terminal_;
  std::chrono::steady_clock::duration last_shown_{};
};

}  // namespace secondsight::loadtest
