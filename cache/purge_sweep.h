#pragma once
#include <chrono>
#include <cstdint>
#include <functional>

#include "cache/memory_tier.h"
#include "cache/purge_list.h"
#include "config/clock.h"

namespace secondsight::cache {

/// Walks the memory tier after purges, a few objects at a time, so that what was purged makes room
/// though nobody asks for it, and lets go of purges that concern nothing any more. One thread.
class PurgeSweep {
 public:
  /// A purge is kept for at least so long, though nothing older is left: a fetch that began before
  /// it, and ends later than that, is not kept.
  static constexpr std::chrono::seconds kInterval{10};

  /// Must outlive it.
  explicit PurgeSweep(PurgeList& list) noexcept : list_(list) {}

  /// Every few milliseconds. `memory`: null: there is no tier. `oldest_segment`: of the log.
  /// `judge` lets go of an object of the tier that was purged.
  void step(SteadyTime now, MemoryTier* memory, std::uint32_t oldest_segment,
            const std::function<void(const ObjectPtr&)>& judge);

 private:
  void begin(std::uint32_t oldest_segment);

  PurgeList& list_;
  SteadyTime due_{};
  bool is_walking_ = false;
  MemoryTier::Walk walk_;
  std::uint64_t walking_for_ = 0;  // the latest purge when the walk began
  std::uint64_t swept_ = 0;        // no object in memory is to be judged for purges up to this one
  std::uint64_t forgotten_ = 0;    // what the list was last told
  std::uint32_t forgotten_segment_ = 0;
};

}  // namespace secondsight::cache
