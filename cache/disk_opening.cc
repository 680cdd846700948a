#include "cache/disk_opening.h"

#include <algorithm>

#include "cache/replay.h"

namespace secondsight::cache {
namespace {

constexpr unsigned kPauseMax = 7;  // calls of look() between two that try

}  // namespace

DiskOpening::DiskOpening(log::ObjectLog& log, Index& index, PurgeList& purges, DiskHealth& health)
    : log_(log),
      index_(index),
      purges_(purges),
      health_(health),
      is_open_(log.is_open()),
      is_usable_(log.is_open()) {}

DiskOpening::Found DiskOpening::look(const log::ObjectLog::OnReclaimed& reclaimed) {
  const auto attached = log_.attach();
  if (!attached) {
    is_usable_.store(false, std::memory_order_relaxed);
    health_.note_failure("use the directory of the disk cache", attached.error());
    pause_ = 0;
    return Found::Nothing;
  }
  const bool is_new = *attached == FileSystem::Attached::Anew;
  if (is_new) pause_ = 0;
  if (is_new && is_open()) {
    must_start_over_ = true;
    health_.note_failure("keep the disk cache", DiskTrouble::Gone,
                         "its directory was deleted or replaced");
  }
  if (pause_ > 0) {
    --pause_;
    return Found::Nothing;
  }
  if (must_start_over_) return start_over(reclaimed);
  if (!log_.is_open()) return open();
  if (!is_usable_.exchange(true, std::memory_order_relaxed)) health_.note_success();
  return Found::Nothing;
}

void DiskOpening::start_over_soon(Serving serving) noexcept {
  must_start_over_ = true;
  if (serving == Serving::Ends) is_open_.store(false, std::memory_order_release);
  is_usable_.store(false, std::memory_order_relaxed);
}

DiskOpening::Found DiskOpening::open() {
  Replay replay(index_);
  const auto opened = log_.open(
      [&](const admission::Fingerprint& fingerprint, log::RecordKind kind,
          const log::Location& at) {
        if (kind == log::RecordKind::Purge)
          purges_.recover(fingerprint, at);  // what it concerns goes when it is found
        else
          replay.add(fingerprint, kind, at);
      },
      [&replay](std::uint64_t records) { replay.expect(records); });
  replay.finish();
  if (!opened) return fail(opened.error());
  failures_ = 0;
  is_usable_.store(true, std::memory_order_relaxed);
  health_.note_success();
  return Found::Replayed;
}

DiskOpening::Found DiskOpening::start_over(const log::ObjectLog::OnReclaimed& reclaimed) {
  is_usable_.store(false, std::memory_order_relaxed);
  if (const auto done = log_.start_over(reclaimed); !done) return fail(done.error());
  failures_ = 0;
  must_start_over_ = false;
  purges_.note_log_emptied();
  is_usable_.store(true, std::memory_order_relaxed);
  health_.note_success();
  return Found::StartedOver;
}

DiskOpening::Found DiskOpening::fail(const boost::system::error_code& error) {
  health_.note_failure("open the disk cache", error);
  pause_ = std::min(failures_, kPauseMax);
  ++failures_;
  return Found::Nothing;
}

}  // namespace secondsight::cache
