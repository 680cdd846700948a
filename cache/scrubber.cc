#include "cache/scrubber.h"

#include <algorithm>
#include <string>

#include "config/log.h"

namespace secondsight::cache {
namespace {

/// Small records are read in a row, so that a pause is worth its wake-up: this many turns a second.
constexpr std::uint64_t kTurnsASecond = 20;
/// Between two rounds, so that a small cache is not read over and over, nor an empty one asked.
constexpr std::chrono::seconds kRoundPause{5};
constexpr std::size_t kReportedMax = 64U << 10;

std::uint64_t place_of(const log::Location& at) noexcept {
  return (std::uint64_t{at.segment} << 32) | at.offset_bytes;
}

}  // namespace

std::chrono::nanoseconds scrub_pause(std::uint64_t bytes, std::uint64_t bytes_a_second) noexcept {
  const double seconds = static_cast<double>(bytes) / static_cast<double>(bytes_a_second);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

Scrubber::Scrubber(const log::ObjectLog& log, Index& index, MemoryTier* memory, Metrics& metrics)
    : log_(log),
      index_(index),
      memory_(memory),
      scrub_(log.segments()),
      bytes_(metrics.counter("secondsight_scrub_bytes_total",
                             "Bytes of stored records read to check them.")),
      records_(metrics.counter("secondsight_scrub_records_total", "Stored records checked.")),
      damaged_(metrics.counter("secondsight_scrub_damaged_total",
                               "Stored records found damaged, each once.")),
      rounds_(metrics.counter("secondsight_scrub_rounds_total",
                              "Times that every sealed segment was checked.")) {}

Scrubber::~Scrubber() {
  stop();
}

void Scrubber::start(std::uint64_t bytes_a_second) {
  thread_ = std::thread([this, bytes_a_second] { run(bytes_a_second); });
}

void Scrubber::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_requested_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Scrubber::run(std::uint64_t bytes_a_second) {
  const std::uint64_t turn_bytes = std::max<std::uint64_t>(bytes_a_second / kTurnsASecond, 1);
  std::chrono::nanoseconds pause{0};
  std::unique_lock lock(mutex_);
  while (!stop_requested_.wait_for(lock, pause, [this] { return stopping_; })) {
    lock.unlock();
    const Turn turn = check_for(turn_bytes);
    pause = scrub_pause(turn.bytes, bytes_a_second);
    if (turn.ends_round) pause += kRoundPause;
    lock.lock();
  }
}

Scrubber::Turn Scrubber::check_for(std::uint64_t bytes) {
  Turn turn;
  while (turn.bytes < bytes) {
    const auto scrubbed = scrub_.next();
    if (!scrubbed) {
      rounds_.add();
      forget_reclaimed();
      turn.ends_round = true;
      return turn;
    }
    if (scrubbed->bytes == 0) continue;
    turn.bytes += scrubbed->bytes;
    check(*scrubbed);
  }
  return turn;
}

void Scrubber::check(const log::ScrubbedRecord& scrubbed) {
  bytes_.add(scrubbed.bytes);
  records_.add();
  if (!scrubbed.damage) return;
  const bool is_dropped = drop(scrubbed.record);
  const log::Location& at = scrubbed.record.location;
  if (reported_.size() >= kReportedMax || !reported_.insert(place_of(at)).second) return;
  damaged_.add();
  log_line(LogLevel::Warning, "stored record damaged",
           {{"segment", std::to_string(at.segment)},
            {"offset", std::to_string(at.offset_bytes)},
            {"bytes", std::to_string(at.length_bytes)},
            {"error", scrubbed.damage.message()},
            {"dropped", is_dropped ? "yes" : "no"}});
}

/// What is found under its key now, if that needs the damaged record.
bool Scrubber::drop(const log::LoggedRecord& damaged) {
  const auto entry = index_.find(damaged.fingerprint);
  if (!entry) return false;
  bool needs_it = entry->location == damaged.location;
  if (!needs_it && entry->kind == log::RecordKind::LargeObject) {
    const auto reader = log_.open_object(entry->location, ReadMode::Blocking);
    if (!reader) return false;  // whoever asks for it finds out
    const auto& parts = (*reader)->head().parts;
    needs_it = std::any_of(parts.begin(), parts.end(), [&](const log::PartRef& part) {
      return part.record == damaged.location;
    });
  }
  if (!needs_it || !index_.erase_at(damaged.fingerprint, entry->location)) return false;
  // What is in memory is whole, and is written again at its next use.
  if (memory_ != nullptr) memory_->note_not_on_disk(damaged.fingerprint);
  return true;
}

void Scrubber::forget_reclaimed() {
  const std::uint64_t oldest = place_of({scrub_.oldest_segment(), 0, 0});
  erase_if(reported_, [oldest](std::uint64_t place) { return place < oldest; });
}

}  // namespace secondsight::cache
