#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "cache/key.h"
#include "cache/log/object_log.h"
#include "cache/object.h"

namespace secondsight::cache {

/// A body on its way to disk in parts, while its flight still runs. Nothing of it is visible in the
/// index until the writer has committed its head, so an abandoned fill leaves only dead bytes in
/// the log.
///
/// Two sides share one: the flight hands parts over (through Cache) and reads back what slow
/// readers still need; the writer thread notes what is on disk. All functions are thread-safe.
class Fill {
 public:
  /// `purges_seen`: as of an Object.
  Fill(CacheKey key, std::uint64_t purges_seen, const log::ObjectLog& log,
       std::function<void()> on_progress)
      : key_(std::move(key)),
        purges_seen_(purges_seen),
        log_(log),
        on_progress_(std::move(on_progress)) {}

  const CacheKey& key() const noexcept { return key_; }
  std::uint64_t purges_seen() const noexcept { return purges_seen_; }
  /// Handed over, not yet on disk.
  std::uint64_t waiting_bytes() const noexcept {
    return handed_bytes_.load(std::memory_order_acquire) -
           written_bytes_.load(std::memory_order_acquire);
  }
  /// The body's first so many bytes are on disk.
  std::uint64_t written_bytes() const noexcept {
    return written_bytes_.load(std::memory_order_acquire);
  }
  /// A write failed, or the flight gave up: no more parts are taken, what is written stays
  /// readable.
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  /// The head is in the index.
  bool committed() const noexcept { return committed_.load(std::memory_order_acquire); }

  /// Whether the body's beginning can still be read. A fill may take longer than the ring's turn.
  bool has_beginning() const;
  /// Copies body bytes from `offset` on, at most one part's; returns how many. Blocking unless
  /// `mode` says otherwise. Errors: as ObjectReader::read_body.
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out, ReadMode mode) const;

 private:
  friend class StoreWriter;
  void note_written(const log::PartRef& part);
  void note_failed();
  void give_up() noexcept { failed_.store(true, std::memory_order_release); }
  void note_committed();
  std::vector<log::PartRef> parts() const;

  const CacheKey key_;
  const std::uint64_t purges_seen_;
  const log::ObjectLog& log_;
  const std::function<void()> on_progress_;     // on the writer's thread, without a lock held
  std::atomic<std::uint64_t> handed_bytes_{0};  // release by the flight, acquire above
  std::atomic<std::uint64_t> written_bytes_{
      0};  // release in note_written after parts_ holds the part
  std::atomic<bool> failed_{false}, committed_{false};  // release / acquire, no data behind them
  mutable std::mutex mutex_;
  std::vector<log::PartRef> parts_;  // guarded by mutex_
};

}  // namespace secondsight::cache
