#include "proxy/log_sightings.h"

#include <algorithm>
#include <utility>

#include "proxy/request_fault.h"

namespace secondsight::proxy {
namespace {

constexpr std::size_t kMarksAtOnce = 4096;
/// Marks are held back for at most that share of the window, so that a rotation by fill has its
/// time.
constexpr int kWindowShare = 64;
/// Clocks of two machines differ.
constexpr std::chrono::minutes kClockSkew{1};
constexpr int kNotModified = 304;
/// Stands where the target has the host: that one counts. RFC 9112 3.2.2.
constexpr std::string_view kNoHost = "host.invalid";

bool is_sighting(const admission::LoggedRequest& request) noexcept {
  const bool is_success = request.status >= 200 && request.status < 300;
  return request.method == "GET" && (is_success || request.status == kNotModified);
}

/// What has blanks or control bytes is no part of a head, and could pass for more than a part.
bool is_plain(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > 0x20 && byte != 0x7f;
  });
}

}  // namespace

LogSightings::LogSightings(const Settings& settings, const admission::FingerprintSeed& seed,
                           admission::TwoGenerationFilter& filter, std::string host, WallTime now)
    : window_(settings.admission.window),
      now_(now),
      host_(std::move(host)),
      sites_(settings, seed),
      filter_(filter),
      parser_({.header_bytes = settings.proxy.max_header_bytes,
               .header_fields = settings.proxy.max_header_fields,
               .body_bytes = 0}) {
  marks_.reserve(kMarksAtOnce);
}

std::string_view LogSightings::add(const admission::LoggedRequest& request) {
  if (request.time > now_ + kClockSkew) return "its time is yet to come";
  go_on_to(steady(std::min(request.time, now_)));
  if (!is_sighting(request)) return {};
  std::string_view host = request.host.empty() ? std::string_view(host_) : request.host;
  if (host.empty()) {
    if (request.target.starts_with('/')) return "it names no host: say which with --host";
    host = kNoHost;
  }
  if (!is_plain(request.target) || !is_plain(host)) return "no target or host of a request";
  head_.assign("GET ").append(request.target).append(" HTTP/1.1\r\nHost: ");
  head_.append(host).append("\r\n\r\n");
  parser_.reset();
  if (parser_.parse(head_, request_) != RequestParser::Outcome::Complete)
    return word_of(parser_.fault());
  const auto key = sites_.primary_key(request_.host, request_.target, {});
  if (marks_.empty()) marks_since_ = time_;
  marks_.push_back(key.fingerprint().high);
  ++sightings_;
  if (marks_.size() == kMarksAtOnce || time_ - marks_since_ >= window_ / kWindowShare) flush();
  return {};
}

void LogSightings::finish() {
  go_on_to(steady(now_));
  flush();
}

void LogSightings::flush() {
  filter_.replay(marks_, time_);
  marks_.clear();
}

void LogSightings::go_on_to(SteadyTime time) {
  if (!std::exchange(has_begun_, true)) {
    filter_.set_generation_start(time);
    time_ = time;
  }
  if (time - filter_.generation_start() >= window_) flush();
  time_ = std::max(time_, time);
  SteadyTime began = filter_.generation_start();
  if (time_ - began < window_) return;
  // A log may be silent for years: after two rotations there is nothing left to forget.
  for (int rotations = 0; rotations < 2 && time_ - began >= window_; ++rotations)
    filter_.rotate_at_once(began += window_);
  filter_.set_generation_start(began + (time_ - began) / window_ * window_);
}

}  // namespace secondsight::proxy
