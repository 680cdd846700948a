#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "admission/sighting_journal.h"
#include "admission/two_generation_filter.h"
#include "config/clock.h"
#include "config/file_system.h"
#include "proxy/sighting_import.h"

namespace secondsight::proxy {

/// Takes offered snapshots into a filter in use, one after the other, on a thread of its own: what
/// reads, merges and writes hundreds of megabytes does not hold up the marks on their way to the
/// journal.
class SightingImporter {
 public:
  /// `with_journal` lets its argument have the journal to itself. All outlive the importer.
  using Journal = admission::SightingJournal;
  using WithJournal = std::function<void(const std::function<void(Journal&)>&)>;
  SightingImporter(FileSystem& files, const Journal::Options& options,
                   admission::TwoGenerationFilter& filter, const Clock& clock,
                   WithJournal with_journal);
  ~SightingImporter();

  /// Merges the snapshot that lies in the directory (kOfferedSnapshot) into the filter's
  /// `previous`, and keeps it for a restart. `done` is told on the importer's thread; not once
  /// stop() was called. Any thread.
  using Done = std::function<void(SnapshotImport)>;
  void import_offered(Done done);
  /// Waits for an import that is under way, as far as its next step.
  void stop();

 private:
  void run();
  SnapshotImport merge();
  void keep(SnapshotImport& import);

  FileSystem& files_;
  const Journal::Options options_;
  admission::TwoGenerationFilter& filter_;
  const Clock& clock_;
  const WithJournal with_journal_;
  Journal::Bits bits_;            // that are being written
  bool has_unkept_bits_ = false;  // merged, and not to be found by a restart

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;     // guarded by mutex_
  std::deque<Done> waiting_;  // likewise
  std::thread thread_;
};

}  // namespace secondsight::proxy
