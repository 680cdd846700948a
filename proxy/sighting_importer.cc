#include "proxy/sighting_importer.h"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "config/log.h"

namespace secondsight::proxy {
namespace {

constexpr std::chrono::milliseconds kSweepPause{50};  // until a sweep is asked after again

}  // namespace

SightingImporter::SightingImporter(FileSystem& files, const Journal::Options& options,
                                   admission::TwoGenerationFilter& filter, const Clock& clock,
                                   WithJournal with_journal)
    : files_(files),
      options_(options),
      filter_(filter),
      clock_(clock),
      with_journal_(std::move(with_journal)),
      thread_([this] { run(); }) {}

SightingImporter::~SightingImporter() {
  stop();
}

void SightingImporter::import_offered(Done done) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(done));
  }
  wake_.notify_one();
}

void SightingImporter::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void SightingImporter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const Done done = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    SnapshotImport import = merge();
    if (import.new_bits > 0 || has_unkept_bits_) keep(import);
    log_line(LogLevel::Info, "sightings imported",
             {{"generations", std::to_string(import.merged)},
              {"refused", std::to_string(import.refused)},
              {"new_bits", std::to_string(import.new_bits)},
              {"damaged_bytes", std::to_string(import.damaged_bytes)},
              {"refusal", import.reason.empty() ? "none" : std::string_view(import.reason)}});
    lock.lock();
    if (stopping_) return;
    lock.unlock();
    done(std::move(import));
    lock.lock();
  }
}

/// What cannot be merged during a sweep is tried again a moment later.
SnapshotImport SightingImporter::merge() {
  SnapshotImport import;
  while (true) {
    import = proxy::import_offered(files_, filter_, options_.seed_id, options_.previous_rate_max,
                                   std::move(import));
    if (!import.is_busy) return import;
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, kSweepPause, [this] { return stopping_; }))
      return refuse_import("the proxy ends");
  }
}

void SightingImporter::keep(SnapshotImport& import) {
  Result<> kept;
  with_journal_([&](Journal& journal) {
    auto bits = journal.begin_bits(clock_.wall());
    kept = bits ? Result<>() : Result<>(bits.error());
    if (bits) bits_ = std::move(*bits);
  });
  if (kept) {
    const auto written = write_snapshot(*bits_.file, filter_, admission::SnapshotOf::Previous,
                                        options_.seed_id, clock_.wall());
    with_journal_([&](Journal& journal) { kept = journal.end_bits(std::move(bits_), written); });
  }
  has_unkept_bits_ = kept.has_error();
  if (has_unkept_bits_) note_unkept(import, kept.error());
}

}  // namespace secondsight::proxy
