#include "loadtest/progress.h"

#include <array>
#include <cmath>
#include <unistd.h>
#include <utility>

namespace secondsight::loadtest {

std::string with_commas(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

std::string progress_text(const std::string& label, const DriveProgress& progress) {
  const double seconds = std::chrono::duration<double>(progress.elapsed).count();
  const auto done = static_cast<double>(progress.done);
  const auto total = static_cast<double>(progress.total);
  const double rate = seconds > 0 ? done / seconds : 0;
  const double percent = total > 0 ? 100 * done / total : 100;
  const double hit_percent = done > 0 ? 100 * static_cast<double>(progress.hits) / done : 0;
  std::array<char, 256> text{};
  const int length = std::snprintf(text.data(), text.size(),
                                   "%s  %3.0f %%  %s of %s  %.0f/s  hits %.1f %%  failed %llu  ",
                                   label.c_str(), percent, with_commas(progress.done).c_str(),
                                   with_commas(progress.total).c_str(), rate, hit_percent,
                                   static_cast<unsigned long long>(progress.failed));
  std::string line(text.data(), std::min(static_cast<std::size_t>(length), text.size() - 1));
  if (rate <= 0) return line + "ETA ?";
  return line + "ETA " + std::to_string(std::lround((total - done) / rate)) + " s";
}

ProgressView::ProgressView(std::FILE* out, std::string label)
    : out_(out), label_(std::move(label)), terminal_(isatty(fileno(out)) != 0) {}

void ProgressView::show(const DriveProgress& progress) {
  const bool last = progress.done == progress.total;
  const std::string line = progress_text(label_, progress);
  if (terminal_) {
    std::fprintf(out_, "\r\033[K%s%s", line.c_str(), last ? "\n" : "");
  } else {
    constexpr auto kInterval = std::chrono::seconds(10);
    if (!last && progress.elapsed - last_shown_ < kInterval) return;
    last_shown_ = progress.elapsed;
    std::fprintf(out_, "%s\n", line.c_str());
  }
  std::fflush(out_);
}

}  // namespace secondsight::loadtest
