#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <boost/unordered/unordered_flat_set.hpp>

#include "admission/fingerprint.h"
#include "cache/log/segment.h"
#include "cache/log/segment_format.h"
#include "cache/log/segment_writer.h"
#include "config/file_system.h"
#include "config/result.h"

namespace secondsight::cache::log {

/// The segment files: makes and removes them, in the order that keeps removed objects removed.
/// One thread, but for table().
class SegmentRing {
 public:
  struct Options {
    std::uint64_t capacity_bytes = 0;
    std::uint32_t segment_bytes = 0;
    std::uint64_t seed_id = 0;
  };
  /// A segment of an earlier run.
  struct Existing {
    std::shared_ptr<Segment> segment;
    bool can_be_sealed = false;  // its length is known, so that a footer has a place
  };

  SegmentRing(FileSystem& files, const Options& options);

  /// What is there of this format and seed, oldest first, not yet in the table. Older formats,
  /// other seeds and what is beyond the capacity are removed. Errors: not_supported (a newer
  /// format: nothing was touched), I/O.
  Result<std::vector<Existing>> find_existing();
  /// Removes all files, oldest first, whatever the table holds, and syncs. Numbers go on behind
  /// theirs. Errors: not_supported (a newer format: nothing was touched), I/O.
  Result<> remove_all_files();
  void adopt(std::shared_ptr<Segment> segment) { table_->push_back(std::move(segment)); }

  /// Makes the next segment. Errors: no_space_on_device, I/O; value_too_large (out of numbers).
  Result<std::unique_ptr<SegmentWriter>> start_segment();
  /// Removes the file and lets go of the segment, which is in the table. `contents`: what it holds;
  /// null when that cannot be read. Errors: I/O (it stays).
  Result<> remove(const Segment& segment, const Footer* contents);
  /// Same for one without records, in the table or not: should it come back, nothing comes with it,
  /// so it needs no syncs.
  Result<> discard(const Segment& segment);
  /// Makes the removals and creations so far durable.
  Result<> sync_directory();

  bool has_room_for_segment() const noexcept {
    return bytes_on_disk() + options_.segment_bytes <= options_.capacity_bytes;
  }
  std::uint64_t bytes_on_disk() const noexcept { return ledger_->load(); }
  const std::shared_ptr<SegmentTable>& table() const noexcept { return table_; }

 private:
  Result<> remove_file(std::uint32_t number, const Footer* contents);
  bool must_sync_before_removing(const Footer* contents) const;

  FileSystem& files_;
  Options options_;
  std::shared_ptr<DiskLedger> ledger_ = std::make_shared<DiskLedger>(0);
  std::shared_ptr<SegmentTable> table_;
  std::uint32_t next_number_ = 1;
  bool directory_is_dirty_ = false;
  // Of the removals that a power cut may still undo: what the removed segments held, or that it is
  // unknown.
  bool has_unsynced_removal_ = false;
  bool is_removal_unknown_ = false;
  boost::unordered_flat_set<admission::Fingerprint, admission::FingerprintHash> removed_;
};

}  // namespace secondsight::cache::log
