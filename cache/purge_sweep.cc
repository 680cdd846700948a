#include "cache/purge_sweep.h"

#include <vector>

namespace secondsight::cache {
namespace {

/// A step's share of the tier: some tens of microseconds.
constexpr std::size_t kSlotsAStep = 512;

}  // namespace

void PurgeSweep::step(SteadyTime now, MemoryTier* memory, std::uint32_t oldest_segment,
                      const std::function<void(const ObjectPtr&)>& judge) {
  if (!is_walking_) {
    if (now < due_) return;
    due_ = now + kInterval;
    begin(oldest_segment);
    if (!is_walking_) return;
  }
  std::vector<ObjectPtr> objects;
  const bool goes_on = memory != nullptr && memory->walk(walk_, kSlotsAStep, objects);
  for (const ObjectPtr& object : objects) judge(object);
  if (goes_on) return;
  is_walking_ = false;
  swept_ = walking_for_;
}

/// What was swept an interval ago can be forgotten; what came since is to be swept.
void PurgeSweep::begin(std::uint32_t oldest_segment) {
  if (swept_ != forgotten_ || oldest_segment != forgotten_segment_) {
    list_.forget(swept_, oldest_segment);
    forgotten_ = swept_;
    forgotten_segment_ = oldest_segment;
  }
  walking_for_ = list_.sequence();
  walk_ = {};
  is_walking_ = walking_for_ != swept_;
}

}  // namespace secondsight::cache
