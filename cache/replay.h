#pragma once
#include <array>
#include <cstddef>

#include "cache/index.h"
#include "cache/log/record.h"

namespace secondsight::cache {

/// Fills an index with what a log holds, in the log's order. Each record waits behind a few others
/// while the memory it will touch is fetched: an index of millions of objects is in no cache, and
/// to wait for it each time would take most of a start. One thread.
class Replay {
 public:
  explicit Replay(Index& index) : index_(index) {}

  /// About so many are coming.
  void expect(std::uint64_t records) { index_.reserve(records); }
  void add(const admission::Fingerprint&, log::RecordKind, const log::Location&);
  /// What still waits; gives back memory that the expectation took too much.
  void finish();

 private:
  struct Record {
    admission::Fingerprint fingerprint;
    Index::Entry entry;
  };
  void apply(const Record& record);

  static constexpr std::size_t kWaiting = 16;
  Index& index_;
  std::array<Record, kWaiting> waiting_;
  std::size_t added_ = 0;
};

}  // namespace secondsight::cache
