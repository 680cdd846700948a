#include "cache/replay.h"

#include <algorithm>

namespace secondsight::cache {

void Replay::add(const admission::Fingerprint& fingerprint, log::RecordKind kind,
                 const log::Location& location) {
  if (kind == log::RecordKind::Part) return;  // visible through its LargeObject only
  index_.prefetch(fingerprint);
  Record& place = waiting_[added_ % kWaiting];
  if (added_ >= kWaiting) apply(place);
  place = {fingerprint, {location, kind}};
  ++added_;
}

void Replay::finish() {
  const std::size_t waiting = std::min(added_, kWaiting);
  for (std::size_t i = added_ - waiting; i < added_; ++i) apply(waiting_[i % kWaiting]);
  added_ = 0;
  index_.fit();
}

void Replay::apply(const Record& record) {
  if (record.entry.kind == log::RecordKind::Tombstone)
    index_.erase(record.fingerprint);
  else
    index_.insert(record.fingerprint, record.entry);
}

}  // namespace secondsight::cache
