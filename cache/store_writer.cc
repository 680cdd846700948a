#include "cache/store_writer.h"

#include <future>
#include <utility>

namespace secondsight::cache {
namespace {

/// So many purges are synced together at most, so that an endless row of them is told in time.
constexpr std::size_t kPurgesInARow = 1'024;

}  // namespace

StoreWriter::StoreWriter(log::ObjectLog& log, Index& index, MemoryTier* memory, PurgeList& purges,
                         std::uint64_t queue_bytes_max, Metrics& metrics)
    : log_(log),
      store_(log, index, memory, purges, metrics),
      index_(index),
      purges_(purges),
      purge_writer_(
          purges, [this](const log::RecordView& record) { return store_.write_purge(record); },
          [this] { return sync(); },
          [this] { store_.opening().start_over_soon(DiskOpening::Serving::GoesOn); }),
      queue_bytes_max_(queue_bytes_max),
      objects_written_(metrics.counter("secondsight_objects_written_total",
                                       "Objects made visible in the disk cache.")) {
  if (!log.is_open()) look_after_disk();
  thread_ = std::thread([this] { run(); });
}

StoreWriter::~StoreWriter() {
  stop();
}

Detail StoreWriter::store(ObjectPtr object) {
  if (store_.failed()) return Detail::DiskError;
  const std::uint64_t bytes = object->memory_bytes();
  const std::lock_guard lock(mutex_);
  if (stopping_ || queue_bytes_.load(std::memory_order_relaxed) + bytes > queue_bytes_max_)
    return Detail::QueueFull;
  queue_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  pending_[object->key.fingerprint()] = object;
  note_pending();
  queue_.push_back(StoreJob{std::move(object)});
  arrived_.notify_one();
  return Detail::None;
}

void StoreWriter::store_for_certain(ObjectPtr marker) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  queue_bytes_.fetch_add(marker->memory_bytes(), std::memory_order_relaxed);
  pending_[marker->key.fingerprint()] = marker;
  note_pending();
  push_locked(StoreJob{std::move(marker), true});
}

std::shared_ptr<Fill> StoreWriter::begin_fill(const CacheKey& key, std::uint64_t purges_seen,
                                              std::function<void()> on_progress, Detail& refusal) {
  refusal = Detail::None;
  if (store_.failed()) {
    refusal = Detail::DiskError;
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  if (stopping_ ||
      queue_bytes_.load(std::memory_order_relaxed) + kFillReserveBytes > queue_bytes_max_) {
    refusal = Detail::QueueFull;
    return nullptr;
  }
  queue_bytes_.fetch_add(kFillReserveBytes, std::memory_order_relaxed);
  return std::make_shared<Fill>(key, purges_seen, log_, std::move(on_progress));
}

void StoreWriter::append(const std::shared_ptr<Fill>& fill, std::vector<ChunkPtr> pieces,
                         std::uint64_t bytes) {
  fill->handed_bytes_.fetch_add(bytes, std::memory_order_release);
  push(PartJob{fill, std::move(pieces), bytes});
}

void StoreWriter::commit(const std::shared_ptr<Fill>& fill,
                         std::shared_ptr<const ObjectHead> head) {
  const std::lock_guard lock(mutex_);
  committing_[fill->key().fingerprint()] = fill;
  note_pending();
  push_locked(CommitJob{fill, std::move(head)});
}

void StoreWriter::abandon(const std::shared_ptr<Fill>& fill) {
  fill->give_up();
  push(AbandonJob{fill});
}

void StoreWriter::refresh(const CacheKey& key, std::shared_ptr<const ObjectHead> head,
                          Index::Entry old, std::vector<log::PartRef> parts,
                          std::uint64_t purges_seen) {
  const std::uint64_t bytes = sizeof(RefreshJob) + sizeof(ObjectHead) + key.text().size() +
                              head->fields.memory_bytes() + parts.size() * sizeof(log::PartRef);
  const std::lock_guard lock(mutex_);
  if (stopping_ || queue_bytes_.load(std::memory_order_relaxed) + bytes > queue_bytes_max_) return;
  queue_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  refreshing_[key.fingerprint()] = {old.location, head, purges_seen};
  note_pending();
  push_locked(RefreshJob{key, std::move(head), old, std::move(parts), bytes, purges_seen});
}

void StoreWriter::remove(const CacheKey& key) {
  const std::lock_guard lock(mutex_);
  index_.erase(key.fingerprint());
  pending_.erase(key.fingerprint());
  committing_.erase(key.fingerprint());
  refreshing_.erase(key.fingerprint());
  note_pending();
  push_locked(RemoveJob{key.fingerprint()});
}

void StoreWriter::purge(PurgeWriter::Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      queue_.push_back(std::move(job));
      arrived_.notify_one();
      return;
    }
  }
  if (job.done) job.done(make_error_code(boost::system::errc::operation_canceled));
}

ObjectPtr StoreWriter::find_pending(const CacheKey& key) const {
  if (pending_count_.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find(key.fingerprint());
  if (found == pending_.end() || found->second->key.text() != key.text()) return nullptr;
  return found->second;
}

StoreWriter::Refreshed StoreWriter::find_refreshed(const CacheKey& key,
                                                   const Index::Entry& entry) const {
  if (pending_count_.load(std::memory_order_relaxed) == 0) return {};
  const std::lock_guard lock(mutex_);
  const auto found = refreshing_.find(key.fingerprint());
  if (found == refreshing_.end() || found->second.old != entry.location) return {};
  return found->second;
}

bool StoreWriter::is_on_its_way(const CacheKey& key) const {
  if (pending_count_.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(mutex_);
  return pending_.contains(key.fingerprint()) || committing_.contains(key.fingerprint());
}

void StoreWriter::try_disk_again() noexcept {
  store_.health().tick();
  static_cast<void>(store_.try_again());
  const std::lock_guard lock(mutex_);
  has_new_chance_ = true;
  arrived_.notify_one();
}

void StoreWriter::drain() {
  std::promise<void> done;
  push(DrainJob{[&done] { done.set_value(); }});
  done.get_future().wait();
}

void StoreWriter::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
    arrived_.notify_one();
  }
  thread_.join();
}

void StoreWriter::push(Job job) {
  const std::lock_guard lock(mutex_);
  push_locked(std::move(job));
}

void StoreWriter::note_pending() {
  pending_count_.store(pending_.size() + committing_.size() + refreshing_.size(),
                       std::memory_order_relaxed);
}

void StoreWriter::push_locked(Job job) {
  if (stopping_) {  // nobody will come for it; what waits on it must not wait for ever
    if (auto* drain_job = std::get_if<DrainJob>(&job)) drain_job->done();
    return;
  }
  queue_.push_back(std::move(job));
  arrived_.notify_one();
}

void StoreWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (must_settle_purges()) {
      lock.unlock();
      purge_writer_.settle();
      lock.lock();
    }
    if (queue_.empty() && has_unsynced_removals()) {
      lock.unlock();
      static_cast<void>(sync());
      lock.lock();
    }
    arrived_.wait(lock, [this] { return stopping_ || has_new_chance_ || !queue_.empty(); });
    if (std::exchange(has_new_chance_, false) || (stopping_ && queue_.empty() && owes())) {
      lock.unlock();
      look_after_disk();
      write_owed();
      lock.lock();
    }
    if (queue_.empty() && stopping_) break;
    if (queue_.empty()) continue;
    {
      Job job = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      std::visit([this](auto& work) { execute(work); }, job);
    }
    lock.lock();
  }
  lock.unlock();
  store_.close();
}

void StoreWriter::execute(StoreJob& job) {
  const Object& object = *job.object;
  std::optional<Index::Entry> entry;
  const std::uint64_t seen = object.purges_seen.load(std::memory_order_relaxed);
  // A marker holds no response: what it leads to is judged for itself.
  const bool purged = !object.is_vary_marker && is_purged(seen, object.key, *object.head);
  if (!purged && is_wanted(job.object)) entry = store_.write(object);
  if (entry && job.is_certain) unsynced_markers_.push_back(job.object);

  const std::lock_guard lock(mutex_);
  queue_bytes_.fetch_sub(object.memory_bytes(), std::memory_order_relaxed);
  const auto found = pending_.find(object.key.fingerprint());
  const bool wanted = found != pending_.end() && found->second == job.object;
  // Where no segment takes it, none holds what it outdates.
  const bool fits = object.memory_bytes() < log_.segment_bytes();
  if (wanted && !entry && job.is_certain && fits) {
    if (owed_markers_.size() < kOwedTombstonesMax) {
      owed_markers_.push_back(job.object);
      return;
    }
    store_.opening().start_over_soon(DiskOpening::Serving::Ends);  // the one it outdates is there
  }
  if (wanted) pending_.erase(found);
  note_pending();
  if (!wanted || !entry) {
    object.on_disk.store(false, std::memory_order_relaxed);
    return;
  }
  index_.insert(object.key.fingerprint(), *entry);
  if (!object.is_vary_marker) objects_written_.add();
}

/// Neither removed nor replaced since it was taken.
bool StoreWriter::is_wanted(const ObjectPtr& object) const {
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find(object->key.fingerprint());
  return found != pending_.end() && found->second == object;
}

/// By a purge that came since the origin was asked for it. Were it written, its record would stand
/// behind the purge's. What was only made stale is not worth a record that cannot say so.
bool StoreWriter::is_purged(std::uint64_t purges_seen, const CacheKey& key,
                            const ObjectHead& head) const {
  return !purges_.judge(purges_seen, key.text(), &head.fields).is_clear();
}

/// Whether no purge follows at once that could be synced with those that wait.
bool StoreWriter::must_settle_purges() const {
  return purge_writer_.has_unsettled() &&
         (queue_.empty() || !std::holds_alternative<PurgeJob>(queue_.front()) ||
          purge_writer_.unsettled() >= kPurgesInARow);
}

void StoreWriter::execute(PartJob& job) {
  Fill& fill = *job.fill;
  if (fill.failed()) return;
  const auto part = store_.write_part(fill.key(), job.pieces, 0, job.bytes);
  if (!part) return fill.note_failed();
  fill.note_written(*part);
}

void StoreWriter::execute(CommitJob& job) {
  Fill& fill = *job.fill;
  std::optional<Index::Entry> entry;
  if (!fill.failed() && !is_purged(fill.purges_seen(), fill.key(), *job.head))
    entry = store_.write_head(fill.key(), *job.head, fill.parts());
  if (make_visible(job.fill, entry)) {
    objects_written_.add();
    fill.note_committed();
  } else {
    fill.note_failed();
  }
}

/// Unless it was removed meanwhile, or not written. Its reservation ends.
bool StoreWriter::make_visible(const std::shared_ptr<Fill>& fill,
                               const std::optional<Index::Entry>& entry) {
  const std::lock_guard lock(mutex_);
  queue_bytes_.fetch_sub(kFillReserveBytes, std::memory_order_relaxed);
  const auto found = committing_.find(fill->key().fingerprint());
  const bool wanted = found != committing_.end() && found->second == fill;
  if (wanted) committing_.erase(found);
  note_pending();
  if (wanted && entry) index_.insert(fill->key().fingerprint(), *entry);
  return wanted && entry;
}

void StoreWriter::execute(AbandonJob& job) {
  queue_bytes_.fetch_sub(kFillReserveBytes, std::memory_order_relaxed);
  job.fill->note_failed();
}

void StoreWriter::execute(RefreshJob& job) {
  std::optional<Index::Entry> entry;
  if (is_current(job) && !is_purged(job.purges_seen, job.key, *job.head))
    entry = store_.write_refreshed(job.key, *job.head, job.parts, job.old.location);
  const auto& fingerprint = job.key.fingerprint();
  const std::lock_guard lock(mutex_);
  queue_bytes_.fetch_sub(job.bytes, std::memory_order_relaxed);
  if (entry && is_current(job)) index_.insert(fingerprint, *entry);
  const auto found = refreshing_.find(fingerprint);
  if (found != refreshing_.end() && found->second.head == job.head) refreshing_.erase(found);
  note_pending();
}

/// Neither replaced nor removed meanwhile.
bool StoreWriter::is_current(const RefreshJob& job) const {
  const auto current = index_.find(job.key.fingerprint());
  return current && current->location == job.old.location;
}

void StoreWriter::execute(RemoveJob& job) {
  index_.erase(job.key);
  if (!write_tombstone(job.key)) owe(job.key);
  if (unsynced_tombstones_.size() >= kUnsyncedTombstonesMax) static_cast<void>(sync());
}

void StoreWriter::execute(PurgeJob& job) {
  purge_writer_.write(std::move(job));
}

bool StoreWriter::write_tombstone(const admission::Fingerprint& key) {
  if (!store_.write_tombstone(key)) return false;
  unsynced_tombstones_.push_back(key);
  return true;
}

/// A sync that fails may have lost what was removed, and no later one brings it back: it is owed
/// again.
Result<> StoreWriter::sync() {
  auto synced = store_.sync();
  const auto tombstones = std::exchange(unsynced_tombstones_, {});
  const auto markers = std::exchange(unsynced_markers_, {});
  if (synced) return synced;
  for (const admission::Fingerprint& key : tombstones) owe(key);
  const std::lock_guard lock(mutex_);
  for (const ObjectPtr& marker : markers)
    if (pending_.try_emplace(marker->key.fingerprint(), marker).second)
      owed_markers_.push_back(marker);
  note_pending();
  return synced;
}

void StoreWriter::owe(const admission::Fingerprint& key) {
  if (owed_tombstones_.size() < kOwedTombstonesMax)
    owed_tombstones_.push_back(key);
  else
    store_.opening().start_over_soon(DiskOpening::Serving::GoesOn);
}

void StoreWriter::write_owed() {
  if (!owes()) return;
  static_cast<void>(store_.try_again());
  std::erase_if(owed_tombstones_, [this](const admission::Fingerprint& key) {
    // What was written since stands for itself once it is durable, and a tombstone after it would
    // hide it.
    if (!index_.find(key)) return !store_.failed() && write_tombstone(key);
    unsynced_tombstones_.push_back(key);
    return true;
  });
  purge_writer_.write_owed();
  for (ObjectPtr& marker : std::exchange(owed_markers_, {})) {
    queue_bytes_.fetch_add(marker->memory_bytes(), std::memory_order_relaxed);
    StoreJob job{std::move(marker), true};
    execute(job);  // owed again, if that fails
  }
}

void StoreWriter::look_after_disk() {
  switch (store_.look_after_disk()) {
    case DiskOpening::Found::Nothing:
      return;
    case DiskOpening::Found::Replayed:
      return settle_removals();
    case DiskOpening::Found::StartedOver:
      purge_writer_.note_given_up();
      owed_tombstones_.clear();  // there is nothing left that could come back
      unsynced_tombstones_.clear();
      store_.opening().publish();
      return;
  }
}

/// What was removed while the disk was closed leaves the index before anybody can find it there:
/// the removals that are owed, and those that still wait in the queue.
void StoreWriter::settle_removals() {
  const std::lock_guard lock(mutex_);
  for (const admission::Fingerprint& key : owed_tombstones_) index_.erase(key);
  for (const Job& job : queue_)
    if (const auto* const removal = std::get_if<RemoveJob>(&job)) index_.erase(removal->key);
  store_.opening().publish();
}

void StoreWriter::execute(DrainJob& job) {
  if (has_unsynced_removals()) static_cast<void>(sync());
  job.done();
}

}  // namespace secondsight::cache
