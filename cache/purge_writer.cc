#include "cache/purge_writer.h"

#include <string>
#include <utility>

#include "config/log.h"

namespace secondsight::cache {
namespace {

/// What a record's key says, for people.
std::string words_of(const Purge& purge) {
  std::string words(to_string(purge.scope));
  if (!purge.text.empty()) words.append(" ").append(purge.text);
  return words;
}

}  // namespace

PurgeWriter::PurgeWriter(PurgeList& list, Append append, Sync sync, GiveUp give_up)
    : list_(list),
      append_(std::move(append)),
      sync_(std::move(sync)),
      give_up_(std::move(give_up)) {}

void PurgeWriter::write(Job job) {
  Unsettled unsettled;
  unsettled.error = append(std::move(job.purges), unsettled.written);
  unsettled.done = std::move(job.done);
  unsettled_.push_back(std::move(unsettled));
}

/// The first error, if any: the rest is not tried then.
boost::system::error_code PurgeWriter::append(std::vector<PendingPurge> purges,
                                              std::vector<PendingPurge>& written) {
  boost::system::error_code first_error;
  for (PendingPurge& pending : purges) {
    if (first_error) {
      owe(std::move(pending));
      continue;
    }
    const std::string words = words_of(pending.purge);
    log::RecordView view;
    view.kind = log::RecordKind::Purge;
    view.fingerprint = pending.stamp.record;
    view.times = {pending.time, pending.time};
    view.key = words;
    const auto at = append_(view);
    if (at) {
      list_.note_written(pending.stamp, *at);
      written.push_back(std::move(pending));
    } else {
      first_error = at.error();
      owe(std::move(pending));
    }
  }
  return first_error;
}

void PurgeWriter::settle() {
  const auto synced = sync_();
  for (Unsettled& job : std::exchange(unsettled_, {})) {
    if (!synced) {
      // No later sync makes sure what this one lost: they are written again.
      for (PendingPurge& pending : job.written) owe(std::move(pending));
      if (!job.error) job.error = synced.error();
    }
    if (job.done) job.done(job.error);
  }
}

void PurgeWriter::write_owed() {
  if (owed_.empty()) return;
  Unsettled again;
  again.error = append(std::exchange(owed_, {}), again.written);
  unsettled_.push_back(std::move(again));
  settle();
  owed_count_.store(owed_.size(), std::memory_order_relaxed);
  if (owed_.empty()) log_line(LogLevel::Info, "the disk has taken all purges now");
}

void PurgeWriter::owe(PendingPurge purge) {
  if (owed_.size() >= kOwedMax) return give_up_();
  owed_.push_back(std::move(purge));
  owed_count_.store(owed_.size(), std::memory_order_relaxed);
}

void PurgeWriter::note_given_up() {
  owed_.clear();
  owed_count_.store(0, std::memory_order_relaxed);
}

}  // namespace secondsight::cache
