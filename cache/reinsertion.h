#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "cache/index.h"
#include "cache/log/object_log.h"
#include "cache/purge_list.h"

namespace secondsight::cache {

/// What gives a log's first-in-first-out eviction a memory: FIFO with reinsertion (CLOCK). Shortly
/// before the oldest segment goes, what was hit in it is appended once more, as far as a write
/// budget allows: those first that are likeliest to be hit again per byte. Nothing is missing
/// meanwhile, as old and new record are both there until the segment goes.
///
/// An object that was not hit since it was last written loses a quarter of a hit, so that what has
/// cooled off leaves after some turns (decision 0005). The budget is a share of the admitted
/// bytes, so that it never drives the disk itself. What lies in several parts is not moved: its
/// turn costs as much as a fetch saves. One thread.
class Reinsertion {
 public:
  static constexpr std::uint64_t kBudgetPercent = 10;
  using Write = std::function<Result<log::Location>(const log::RecordView&)>;

  Reinsertion(log::ObjectLog& log, Index& index, const PurgeList& purges,
              std::uint64_t budget_percent = kBudgetPercent)
      : log_(log), index_(index), purges_(purges), budget_percent_(budget_percent) {}

  void note_admitted(std::uint64_t bytes) noexcept;
  /// Before a record of that size is appended: does its work when that is due. `write` appends.
  void before_append(std::uint64_t record_bytes, const Write& write);

 private:
  struct Candidate {
    admission::Fingerprint fingerprint;
    Index::Entry entry;
    std::uint64_t bytes = 0;  // at least what it will take
    Index::Hits hits;
    double worth = 0;  // hits to be expected per byte, in no particular unit
  };
  std::uint64_t budget_bytes() const noexcept { return earned_hundredths_ / 100; }
  std::vector<Candidate> candidates(std::uint32_t segment) const;
  bool is_purged(const log::Location& at, const log::RecordHead& head) const;
  /// Bytes written. Errors: those of the write.
  Result<std::uint64_t> reinsert(const Candidate& candidate, const Write& write);

  log::ObjectLog& log_;
  Index& index_;
  const PurgeList& purges_;
  const std::uint64_t budget_percent_;
  std::uint64_t earned_hundredths_ = 0;  // of bytes; not spent yet
  std::uint32_t done_segment_ = 0;
};

}  // namespace secondsight::cache
