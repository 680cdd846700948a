#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include <boost/unordered/unordered_flat_set.hpp>

#include "cache/index.h"
#include "cache/log/object_log.h"
#include "cache/log/segment_scrub.h"
#include "cache/memory_tier.h"
#include "config/metrics.h"

namespace secondsight::cache {

/// Reads what is on disk before a client does, at its own slow pace, so that what the device lost
/// is found while it can still be fetched again. A damaged record that the index points to, itself
/// or as a large object's part, leaves the index: its next request is a miss. Each is counted and
/// logged once.
///
/// check_next() and check_for() on one thread, the scrubber's own once start() was called. The
/// cache goes on meanwhile. The log, the index and the tier outlive it.
class Scrubber {
 public:
  /// `memory` null: no tier.
  Scrubber(const log::ObjectLog& log, Index& index, MemoryTier* memory, Metrics& metrics);
  ~Scrubber();  // as stop()

  /// Begins to read at that pace, on a thread of its own.
  void start(std::uint64_t bytes_a_second);
  /// Returns when the record in hand is read.
  void stop();

  struct Turn {
    std::uint64_t bytes = 0;
    bool ends_round = false;
  };
  /// Checks records until so many bytes were read or the round is over.
  Turn check_for(std::uint64_t bytes);

 private:
  void run(std::uint64_t bytes_a_second);
  void check(const log::ScrubbedRecord& scrubbed);
  bool drop(const log::LoggedRecord& damaged);
  void forget_reclaimed();

  const log::ObjectLog& log_;
  Index& index_;
  MemoryTier* memory_;
  log::SegmentScrub scrub_;
  /// Damaged records that were reported, as segment and offset. When it is full others go
  /// unreported.
  boost::unordered_flat_set<std::uint64_t> reported_;

  Counter& bytes_;
  Counter& records_;
  Counter& damaged_;
  Counter& rounds_;
  std::mutex mutex_;
  std::condition_variable stop_requested_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

/// How long to wait after so many bytes for that pace.
std::chrono::nanoseconds scrub_pause(std::uint64_t bytes, std::uint64_t bytes_a_second) noexcept;

}  // namespace secondsight::cache
