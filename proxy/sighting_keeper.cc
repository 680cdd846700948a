#include "proxy/sighting_keeper.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "config/log.h"
#include "config/units.h"

namespace secondsight::proxy {
namespace {

constexpr std::chrono::milliseconds kTakePause{50};
// Half of what a kill may cost, so that a thread that wakes late keeps the promise, too.
constexpr std::chrono::milliseconds kWritePause{500};
constexpr std::chrono::seconds kSyncPause{10};
/// Marks that wait for a disk in trouble: 2 MiB.
constexpr std::size_t kWaitingMax = std::size_t{1} << 18U;

using Restored = admission::SightingJournal::Restored;

}  // namespace

SightingKeeper::SightingKeeper(FileSystem& files,
                               const admission::SightingJournal::Options& options,
                               admission::TwoGenerationFilter& filter, const Clock& clock,
                               Metrics& metrics, std::function<bool()> is_usable)
    : files_(files),
      options_(options),
      filter_(filter),
      clock_(clock),
      is_usable_(std::move(is_usable)),
      journal_(files, options),
      written_(metrics.counter("secondsight_written_bytes_total",
                               "Bytes handed to the disk cache's file system, by cause.",
                               {{"cause", "journal"}})),
      lost_(metrics.counter("secondsight_sightings_lost_total",
                            "First sightings that a restart will not remember, as they did not "
                            "reach the journal.")),
      restored_(metrics.counter("secondsight_sightings_restored_total",
                                "Sightings of an earlier process that the filter was given.")) {}

SightingKeeper::~SightingKeeper() {
  stop();
}

void SightingKeeper::start() {
  if (is_usable_()) {
    const auto restored = journal_.restore(filter_, clock_.wall(), clock_.steady());
    if (restored) {
      is_restored_ = true;
      tell(*restored);
    } else {
      check(restored.error());
    }
  }
  filter_.keep_marks();  // not before: what was restored is in the journal
  epoch_ = filter_.epoch();
  batch_.reserve(kWaitingMax);
  thread_ = std::thread([this] { run(); });
  importer_ = std::make_unique<SightingImporter>(
      files_, options_, filter_, clock_,
      [this](const std::function<void(admission::SightingJournal&)>& use) {
        const std::lock_guard lock(journal_mutex_);
        use(journal_);
      });
}

void SightingKeeper::stop() {
  if (importer_) importer_->stop();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void SightingKeeper::import_offered(SightingImporter::Done done) {
  importer_->import_offered(std::move(done));
}

void SightingKeeper::run() {
  write_due_ = clock_.steady() + kWritePause;
  sync_due_ = clock_.steady() + kSyncPause;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait_for(lock, kTakePause, [this] { return stopping_; });
    const bool is_last = stopping_;
    lock.unlock();
    const SteadyTime now = clock_.steady();
    if (is_last) write_due_ = sync_due_ = now;
    {
      const std::lock_guard journal_lock(journal_mutex_);
      tick(now);
    }
    if (is_last) return end();
    lock.lock();
  }
}

void SightingKeeper::end() {
  if (batch_.empty()) return;
  lost_.add(batch_.size());
  log_line(LogLevel::Warning, "sightings are lost: the disk did not take them",
           {{"count", std::to_string(batch_.size())}});
}

void SightingKeeper::tick(SteadyTime now) {
  if (!is_restored_ && is_usable_()) restore_late();
  const std::size_t fresh = take_marks();
  if (filter_.epoch() != epoch_) follow_rotation(fresh);
  if (now >= write_due_) {
    write_due_ = now + kWritePause;
    write();
    count_written();
  }
  if (now >= sync_due_ && is_usable_()) {
    sync_due_ = now + kSyncPause;
    if (const auto synced = journal_.sync(); !synced) check(synced);
  }
}

/// The directory came after the start.
void SightingKeeper::restore_late() {
  const auto restored = journal_.restore_late(filter_, clock_.wall());
  if (!restored) {
    if (restored.error() != boost::system::errc::device_or_resource_busy) check(restored.error());
    return;
  }
  is_restored_ = true;
  tell(*restored);
}

std::size_t SightingKeeper::take_marks() {
  const std::size_t before = batch_.size();
  lost_.add(filter_.take_marks(batch_));
  const std::size_t fresh = batch_.size() - before;
  if (batch_.size() <= kWaitingMax) return fresh;
  const std::size_t excess = batch_.size() - kWaitingMax;
  lost_.add(excess);
  batch_.erase(batch_.begin(), batch_.begin() + static_cast<std::ptrdiff_t>(excess));
  return std::min(fresh, batch_.size());
}

/// No mark goes to an older generation's file than the filter put it in. The other way round costs
/// nothing: the last marks before a rotation may be remembered a little longer.
void SightingKeeper::follow_rotation(std::size_t fresh) {
  epoch_ = filter_.epoch();
  if (!is_restored_ || !is_usable_()) return journal_.note_rotation();
  const auto of_before = std::span(batch_).first(batch_.size() - fresh);
  if (check(journal_.append(of_before, clock_.wall())))
    batch_.erase(batch_.begin(), batch_.begin() + static_cast<std::ptrdiff_t>(of_before.size()));
  if (const auto rotated = journal_.rotate(clock_.wall()); !rotated) check(rotated);
}

void SightingKeeper::write() {
  if (batch_.empty() || !is_restored_ || !is_usable_()) return;
  if (check(journal_.append(batch_, clock_.wall()))) batch_.clear();
}

/// What the importer had written is counted with it.
void SightingKeeper::count_written() {
  const std::uint64_t written = journal_.written_bytes();
  written_.add(written - std::exchange(counted_bytes_, written));
  const std::uint64_t given_up = journal_.given_up_marks();
  if (given_up > counted_given_up_ && counted_given_up_ == 0) {
    log_line(LogLevel::Warning,
             "the disk has no room for all sightings: a restart will forget the oldest",
             {{"journal", format_bytes(options_.bytes_max)},
              {"wanted", format_bytes(admission::SightingJournal::bytes_for(options_.size,
                                                                            options_.window))}});
  }
  lost_.add(given_up - std::exchange(counted_given_up_, given_up));
}

/// That marks are kept again, only marks can show: a sync may go well on a disk that is full.
bool SightingKeeper::check(const Result<>& done) {
  if (done.has_error() && !has_failed_) {
    log_line(LogLevel::Warning, "cannot keep sightings for a restart",
             {{"error", done.error().message()}});
  } else if (!done.has_error() && has_failed_) {
    log_line(LogLevel::Info, "sightings are kept for a restart again");
  }
  has_failed_ = done.has_error();
  return !done.has_error();
}

void SightingKeeper::tell(const Restored& restored) {
  restored_.add(restored.marks);
  for (const std::string& file : restored.skipped)
    log_line(LogLevel::Warning, "sightings skipped", {{"file", file}});
  if (restored.damaged_bytes > 0) {
    log_line(LogLevel::Warning, "damaged sightings skipped",
             {{"bytes", std::to_string(restored.damaged_bytes)}});
  }
  if (restored.cut_off_bytes > 0) {
    log_line(LogLevel::Warning, "sightings at the end of the journal were cut off or damaged",
             {{"bytes", std::to_string(restored.cut_off_bytes)}});
  }
  if (restored.marks == 0 && !restored.has_bits) return;
  const std::string age =
      restored.last_mark_age ? format_duration(*restored.last_mark_age) : "unknown";
  log_line(LogLevel::Info, "sightings restored",
           {{"marks", std::to_string(restored.marks)},
            {"latest", age},
            {"imported", restored.has_bits ? "yes" : "no"}});
}

}  // namespace secondsight::proxy
