#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "config/file_system.h"

namespace secondsight::cache::log {

/// Bytes of all segment files that still take up space. Thread-safe: the last reader of a removed
/// segment takes its share off.
using DiskLedger = std::atomic<std::uint64_t>;

/// One segment file, held open. Shared by the table and by the readers inside it: removed by name
/// it stays readable, and charged, until the last of them lets go.
class Segment {
 public:
  Segment(std::unique_ptr<File> file, std::uint32_t number, std::uint64_t bytes,
          std::shared_ptr<DiskLedger> ledger);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  const File& file() const noexcept { return *file_; }
  File& file() noexcept { return *file_; }
  std::uint32_t number() const noexcept { return number_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::unique_ptr<File> file_;
  std::uint32_t number_;
  std::uint64_t bytes_;
  std::shared_ptr<DiskLedger> ledger_;
};

/// The segments that exist, oldest first. find() and next_after() from any thread; the rest: the
/// writer. The lock is never held during I/O.
class SegmentTable {
 public:
  explicit SegmentTable(std::uint64_t seed_id) noexcept : seed_id_(seed_id) {}

  /// Null: reclaimed, or never was.
  std::shared_ptr<const Segment> find(std::uint32_t number) const;
  /// The newest one; its number is above all others'.
  void push_back(std::shared_ptr<Segment> segment);
  /// Lets go of one that is in the table.
  void erase(std::uint32_t number);

  std::shared_ptr<Segment> oldest() const;
  /// The lowest number above `number`; 0: there is none. From any thread.
  std::uint32_t next_after(std::uint32_t number) const;
  /// Whether the table alone holds any of them: removing that one frees its space at once.
  bool any_unheld() const;

  std::uint64_t seed_id() const noexcept { return seed_id_; }

 private:
  using Segments = std::vector<std::shared_ptr<Segment>>;
  Segments::const_iterator position_of(std::uint32_t number) const;

  const std::uint64_t seed_id_;
  mutable std::mutex mutex_;
  Segments segments_;  // by number; tens of them, so a vector is the shortest search
};

}  // namespace secondsight::cache::log
