#include "cache/log/segment.h"

#include <algorithm>
#include <utility>

#include "config/check.h"

namespace secondsight::cache::log {

Segment::Segment(std::unique_ptr<File> file, std::uint32_t number, std::uint64_t bytes,
                 std::shared_ptr<DiskLedger> ledger)
    : file_(std::move(file)), number_(number), bytes_(bytes), ledger_(std::move(ledger)) {
  ledger_->fetch_add(bytes_);
}

Segment::~Segment() {
  file_.reset();  // the space is free only once the file is closed
  ledger_->fetch_sub(bytes_);
}

SegmentTable::Segments::const_iterator SegmentTable::position_of(std::uint32_t number) const {
  const auto at = std::lower_bound(
      segments_.begin(), segments_.end(), number,
      [](const auto& segment, std::uint32_t wanted) { return segment->number() < wanted; });
  return at != segments_.end() && (*at)->number() == number ? at : segments_.end();
}

std::shared_ptr<const Segment> SegmentTable::find(std::uint32_t number) const {
  const std::lock_guard lock(mutex_);
  const auto at = position_of(number);
  return at == segments_.end() ? nullptr : *at;
}

void SegmentTable::push_back(std::shared_ptr<Segment> segment) {
  const std::lock_guard lock(mutex_);
  CHECK(segments_.empty() || segments_.back()->number() < segment->number());
  segments_.push_back(std::move(segment));
}

void SegmentTable::erase(std::uint32_t number) {
  std::shared_ptr<const Segment> dropped;  // may close its file: after the lock is released
  const std::lock_guard lock(mutex_);
  const auto at = position_of(number);
  CHECK(at != segments_.end());
  dropped = *at;
  segments_.erase(at);
}

std::shared_ptr<Segment> SegmentTable::oldest() const {
  const std::lock_guard lock(mutex_);
  return segments_.empty() ? nullptr : segments_.front();
}

std::uint32_t SegmentTable::next_after(std::uint32_t number) const {
  const std::lock_guard lock(mutex_);
  const auto at = std::upper_bound(
      segments_.begin(), segments_.end(), number,
      [](std::uint32_t wanted, const auto& segment) { return wanted < segment->number(); });
  return at == segments_.end() ? 0 : (*at)->number();
}

bool SegmentTable::any_unheld() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(segments_.begin(), segments_.end(),
                     [](const auto& segment) { return segment.use_count() == 1; });
}

}  // namespace secondsight::cache::log
