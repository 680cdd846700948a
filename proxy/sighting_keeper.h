#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "admission/sighting_journal.h"
#include "admission/two_generation_filter.h"
#include "config/clock.h"
#include "config/file_system.h"
#include "config/metrics.h"
#include "proxy/sighting_importer.h"

namespace secondsight::proxy {

/// The one thread between the filter and the journal of sightings: takes the marks twenty times a
/// second, hands them to the journal twice a second, syncs it every ten seconds. No request waits
/// for it, and no error of the disk goes further: what cannot be written waits, up to a bound, and
/// is then lost to the journal, not to the filter.
class SightingKeeper {
 public:
  /// `is_usable`: whether the directory behind `files` is there and ours. All outlive the keeper.
  SightingKeeper(FileSystem& files, const admission::SightingJournal::Options& options,
                 admission::TwoGenerationFilter& filter, const Clock& clock, Metrics& metrics,
                 std::function<bool()> is_usable);
  ~SightingKeeper();

  /// Gives the filter back what it knew, if the directory can be used (later otherwise), and starts
  /// the thread. Call before any thread sights. Throws std::bad_alloc.
  void start();
  /// Hands over the last marks, syncs, ends the thread.
  void stop();

  /// SightingImporter::import_offered(). Not before start().
  void import_offered(SightingImporter::Done done);

  /// First sightings that did not reach the journal so far. Any thread.
  std::uint64_t lost() const noexcept { return lost_.value(); }

 private:
  void run();
  void tick(SteadyTime now);
  void end();
  void restore_late();
  /// How many of the batch are new.
  std::size_t take_marks();
  void follow_rotation(std::size_t fresh);
  void write();
  void count_written();
  void tell(const admission::SightingJournal::Restored& restored);
  /// Whether it went well; the first failure after a success is logged, and the next success.
  bool check(const Result<>& done);

  FileSystem& files_;
  const admission::SightingJournal::Options options_;
  admission::TwoGenerationFilter& filter_;
  const Clock& clock_;
  const std::function<bool()> is_usable_;
  std::mutex journal_mutex_;
  admission::SightingJournal journal_;  // guarded by journal_mutex_
  bool is_restored_ = false;
  bool has_failed_ = false;
  std::uint64_t epoch_ = 0;  // of the filter, when the journal's file began
  std::vector<std::uint64_t> batch_;
  std::uint64_t counted_given_up_ = 0;  // by the journal, in lost_
  std::uint64_t counted_bytes_ = 0;     // of the journal, in written_
  SteadyTime write_due_{};
  SteadyTime sync_due_{};
  Counter& written_;
  Counter& lost_;
  Counter& restored_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
  std::unique_ptr<SightingImporter> importer_;
};

}  // namespace secondsight::proxy
