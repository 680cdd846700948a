#include "cache/cache.h"

#include <algorithm>
#include <utility>

#include "cache/head_text.h"
#include "cache/partial.h"
#include "cache/policy/preferences.h"
#include "cache/policy/read_facts.h"
#include "cache/policy/validation.h"
#include "cache/policy/vary.h"
#include "cache/variants.h"
#include "config/check.h"
#include "config/log.h"
#include "config/units.h"

namespace secondsight::cache {
namespace {

using namespace literals;

/// What cache.disk allows includes the directory itself and the small files in it.
constexpr std::uint64_t kDirectoryBytes = 16_KiB;

/// Without a memory tier, bodies up to this size are still gathered whole before they are written.
constexpr std::uint64_t kWholeBodyBytesWithoutTier = 256_KiB;

/// What an object takes in memory beside its body, generously: its head, and what its chunks of 32
/// KiB and more cost each.
constexpr std::uint64_t kHeadBytesAllowance = 4_KiB;
constexpr std::uint64_t kBodyBytesForOneOfChunks = 256;

/// With a memory tier a freshened head lives there; a record on disk for a shorter lifetime than
/// this would be written again and again.
constexpr Seconds kLifetimeWorthARecord{60};

boost::system::error_code gone() {
  return make_error_code(boost::system::errc::no_such_file_or_directory);
}

bool varies_by_language(const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), "accept-language") != names.end();
}

/// The request of a client that takes this language only.
policy::FieldBlock preferring(const policy::FieldBlock& request, std::string_view language) {
  policy::FieldBlock fields;
  for (const policy::FieldLine line : request)
    if (!policy::equals_ignoring_case(line.name, "Accept-Language"))
      fields.add(line.name, line.value);
  fields.add("Accept-Language", language);
  return fields;
}

/// What a draw will decide is taken for admitted.
Detail detail_of(admission::Verdict verdict) noexcept {
  switch (verdict) {
    case admission::Verdict::Always:
      return Detail::Always;
    case admission::Verdict::Repeat:
      return Detail::Repeat;
    case admission::Verdict::Chance:
    case admission::Verdict::Undecided:
      return Detail::Chance;
    case admission::Verdict::FirstSighting:
      return Detail::FirstSighting;
    case admission::Verdict::FewSightings:
      return Detail::FewSightings;
    case admission::Verdict::NotChosen:
      return Detail::NotChosen;
    case admission::Verdict::Never:
      return Detail::Never;
  }
  return Detail::None;
}

}  // namespace

std::vector<log::PartRef> body_parts(const DiskObject& object) {
  if (object.entry.kind == log::RecordKind::Object)
    return {{object.entry.location, object.body_bytes}};
  return object.body->head().parts;
}

Cache::Cache(const CacheSettings& settings, admission::AdmissionPolicy& policy,
             const admission::FingerprintSeed& seed, Metrics& metrics)
    : settings_(settings),
      policy_(policy),
      seed_(seed),
      purges_(seed_),
      sweep_(purges_),
      unreadable_(metrics.counter("secondsight_unreadable_objects_total",
                                  "Stored objects dropped because a read failed or a checksum "
                                  "did not match.")) {
  if (settings.memory_bytes > 0) memory_ = std::make_unique<MemoryTier>(settings.memory_bytes);
  for (std::size_t i = 1; i < kDetailCount; ++i) {
    const auto detail = static_cast<Detail>(i);
    if (detail == Detail::Disk || detail == Detail::Part) continue;
    decisions_[i] = &metrics.counter("secondsight_admissions_total",
                                     "Decisions about writing a response to disk, by reason.",
                                     {{"reason", std::string(to_string(detail))}});
  }
}

Result<std::unique_ptr<Cache>> Cache::open(const CacheSettings& settings, FileSystem* files,
                                           admission::AdmissionPolicy& policy,
                                           const admission::FingerprintSeed& seed,
                                           Metrics& metrics) {
  std::unique_ptr<Cache> cache(new Cache(settings, policy, seed, metrics));
  if (files != nullptr) {
    const std::uint64_t log_bytes = settings.disk_bytes - kDirectoryBytes;
    auto log = log::ObjectLog::closed(
        *files, {.capacity_bytes = log_bytes,
                 .segment_bytes = log::ObjectLog::segment_bytes_for(log_bytes),
                 .seed_id = seed.id()});
    if (!log) return log.error();
    cache->log_ = std::move(*log);
    cache->writer_ =
        std::make_unique<StoreWriter>(*cache->log_, cache->index_, cache->memory_.get(),
                                      cache->purges_, settings.write_queue, metrics);
    if (settings.scrub_bytes > 0) {
      cache->scrubber_ =
          std::make_unique<Scrubber>(*cache->log_, cache->index_, cache->memory_.get(), metrics);
      cache->scrubber_->start(settings.scrub_bytes);
    }
  }
  return cache;
}

Cache::~Cache() {
  stop();
}

void Cache::stop() {
  if (scrubber_) scrubber_->stop();
  if (writer_) writer_->stop();
}

void Cache::drain() {
  if (writer_) writer_->drain();
}

void Cache::try_disk_again() noexcept {
  if (writer_) writer_->try_disk_again();
}

ObjectPtr Cache::find_in_memory(const CacheKey& key) noexcept {
  if (memory_) {
    if (ObjectPtr object = judged(memory_->find(key))) return object;
  }
  return writer_ ? unless_purged(writer_->find_pending(key)) : nullptr;
}

/// What it is now; null: it was purged.
ObjectPtr Cache::as_purged(const ObjectPtr& object) const {
  if (!object) return nullptr;
  const std::uint64_t now = purges_.sequence();
  const std::uint64_t seen = object->purges_seen.load(std::memory_order_relaxed);
  if (seen >= now) return object;
  const auto verdict = purges_.judge(seen, object->key.text(), &object->head->fields);
  if (verdict.is_purged) return nullptr;
  if (!verdict.stale_since || object->is_vary_marker) {
    object->purges_seen.store(now, std::memory_order_relaxed);
    return object;
  }
  auto stale =
      std::make_shared<Object>(object->key, stale_head(*object->head, *verdict.stale_since),
                               object->body, object->body_bytes);
  stale->on_disk.store(object->on_disk.load(std::memory_order_relaxed), std::memory_order_relaxed);
  stale->purges_seen.store(now, std::memory_order_relaxed);
  return stale;
}

/// What the memory tier has in its place now.
ObjectPtr Cache::judged(ObjectPtr object) {
  for (;;) {
    const ObjectPtr now = as_purged(object);
    if (now == object) return object;
    if (!now) {
      memory_->erase(object);
      return nullptr;
    }
    ObjectPtr standing = memory_->replace(object, now);
    if (!standing || standing == now) return now;
    object = std::move(standing);  // it was replaced meanwhile
  }
}

/// Of what waits for the disk. What was made stale there will not be written.
ObjectPtr Cache::unless_purged(ObjectPtr pending) const {
  return as_purged(pending) == pending ? pending : nullptr;
}

Places Cache::look(const CacheKey& key) const {
  Places places;
  if (memory_) places.in_memory = as_purged(memory_->peek(key));
  if (writer_) {
    places.in_queue = unless_purged(writer_->find_pending(key));
    places.is_on_its_way = writer_->is_on_its_way(key);
  }
  places.on_disk = find_on_disk(key);
  return places;
}

ObjectPtr Cache::look_for_part(const CacheKey& key) const {
  return memory_ ? as_purged(memory_->peek(partial_key(key, seed_))) : nullptr;
}

Result<DiskObject> Cache::open_object(const CacheKey& key, const Index::Entry& entry,
                                      ReadMode mode) {
  const std::uint64_t purges_seen = purges_.sequence();
  auto reader = log_->open_object(entry.location, mode);
  if (!reader) {
    if (reader.error() != boost::system::errc::resource_unavailable_try_again)
      note_unreadable(key, entry, reader.error());
    return reader.error();
  }
  const log::RecordHead& record = (*reader)->head();
  if (record.key != key.text()) return gone();  // another key with this fingerprint: a plain miss
  DiskObject object;
  const auto refreshed = writer_->find_refreshed(key, entry);
  object.head = refreshed.head ? refreshed.head : read_head(record);
  if (!object.head) {
    const auto error = make_error_code(boost::system::errc::bad_message);
    note_unreadable(key, entry, error);
    return error;
  }
  object.is_vary_marker = record.kind == log::RecordKind::VaryMarker;
  const auto* const fields = &object.head->fields;
  const auto verdict = refreshed.head ? purges_.judge(refreshed.purges_seen, key.text(), fields)
                                      : purges_.judge(entry.location, key.text(), fields);
  if (verdict.is_purged) {
    index_.erase_at(key.fingerprint(), entry.location);
    return gone();
  }
  if (verdict.stale_since && !object.is_vary_marker)
    object.head = stale_head(*object.head, *verdict.stale_since);
  object.purges_seen = purges_seen;
  object.body_bytes = record.body_bytes;
  object.entry = entry;
  object.body = std::move(*reader);
  return object;
}

void Cache::note_unreadable(const CacheKey& key, const Index::Entry& entry,
                            const boost::system::error_code& error) {
  index_.erase_at(key.fingerprint(), entry.location);
  if (error == boost::system::errc::no_such_file_or_directory) return;  // reclaimed, not damaged
  unreadable_.add();
  if (!writer_->health().note_unreadable(error)) return;
  log_line(LogLevel::Warning, "stored object dropped",
           {{"key", key.text()}, {"error", error.message()}});
}

Sighting Cache::sight(const CacheKey& key, std::optional<std::uint64_t> body_bytes) noexcept {
  Sighting sighting;
  sighting.detail = judge(policy_.sight(key.fingerprint(), body_bytes), key, body_bytes);
  if (is_admitted(sighting.detail)) sighting.admitted = Admitted(sighting.detail);
  count(sighting.detail);
  return sighting;
}

Detail Cache::judge(admission::Verdict verdict, const CacheKey& key,
                    std::optional<std::uint64_t> body_bytes) const noexcept {
  Detail detail = detail_of(verdict);
  // What is on disk was admitted before, even if the filter has forgotten, or the draw is against
  // it: its successor replaces it.
  const bool is_for_good = detail == Detail::Repeat || detail == Detail::Always;
  if (!is_for_good && detail != Detail::Never && find_on_disk(key)) detail = Detail::Repeat;
  if (!is_admitted(detail)) return detail;
  if (body_bytes.value_or(0) > stored_body_bytes_max()) return Detail::TooLarge;
  return writer_ ? detail : Detail::NoDisk;
}

bool Cache::promote(const ObjectPtr& object) {
  if (object->head->facts.stale_since) return false;  // its record could not say so
  if (!writer_ || object->on_disk.exchange(true, std::memory_order_relaxed)) return false;
  const auto verdict = policy_.sight(object->key.fingerprint(), object->body_bytes);
  if (verdict == admission::Verdict::Never) return false;  // marked, so that it is not asked again
  if (!policy_.admits_known(verdict)) {
    object->on_disk.store(false, std::memory_order_relaxed);  // a later hit may be
    return false;
  }
  const Detail refusal = hand_over(object);
  if (refusal == Detail::None) count(Detail::Memory);
  return refusal == Detail::None;
}

bool Cache::would_promote(const Object& object) const noexcept {
  if (!writer_ || object.on_disk.load(std::memory_order_relaxed)) return false;
  if (object.head->facts.stale_since || object.body_bytes > stored_body_bytes_max()) return false;
  const admission::Verdict verdict = peek(object.key, object.body_bytes);
  return verdict == admission::Verdict::Undecided || policy_.admits_known(verdict);
}

void Cache::keep(const ObjectPtr& object, Newcomer newcomer) {
  if (memory_) memory_->insert(object, newcomer);
}

bool Cache::has_newer(const CacheKey& key, const ObjectHead& head) noexcept {
  const ObjectPtr current = find_in_memory(key);
  return current && current->head->times.response_received > head.times.response_received;
}

ObjectPtr Cache::find_part(const CacheKey& key) noexcept {
  if (!keeps_parts_.load(std::memory_order_relaxed)) return nullptr;
  return memory_ ? judged(memory_->find(partial_key(key, seed_))) : nullptr;
}

ObjectPtr Cache::keep_part(const CacheKey& key, const ObjectPtr& part) {
  keeps_parts_.store(true, std::memory_order_relaxed);
  ObjectPtr kept = part;
  if (const ObjectPtr older = find_part(key)) {
    if (ObjectPtr both = combined(*older, *part);
        both && both->memory_bytes() <= memory_->object_bytes_max()) {
      both->purges_seen.store(std::min(older->purges_seen.load(std::memory_order_relaxed),
                                       part->purges_seen.load(std::memory_order_relaxed)),
                              std::memory_order_relaxed);
      kept = std::move(both);
    }
  }
  keep(kept, Newcomer::First);
  return kept;
}

void Cache::forget_part(const CacheKey& key) noexcept {
  if (memory_ && keeps_parts_.load(std::memory_order_relaxed))
    memory_->erase(partial_key(key, seed_));
}

void Cache::note_disk_hit(const CacheKey& key) noexcept {
  policy_.sight(key.fingerprint(), std::nullopt);
  index_.note_hit(key.fingerprint());
}

void Cache::note_use_of_marker(const Object& marker) noexcept {
  index_.note_hit(marker.key.fingerprint());
}

Detail Cache::store(Admitted /*permission*/, const ObjectPtr& object) {
  object->on_disk.store(true, std::memory_order_relaxed);
  return hand_over(object);
}

/// Marked as on disk already: the writer may be done with it before this returns.
Detail Cache::hand_over(const ObjectPtr& object) {
  const Detail refusal =
      object->body_bytes > stored_body_bytes_max() ? Detail::TooLarge : writer_->store(object);
  if (refusal == Detail::None) return refusal;
  object->on_disk.store(false, std::memory_order_relaxed);
  count(refusal);
  return refusal;
}

std::shared_ptr<Fill> Cache::begin_fill(Admitted /*permission*/, const CacheKey& key,
                                        std::uint64_t purges_seen,
                                        std::function<void()> on_progress, Detail& refusal) {
  auto fill = writer_->begin_fill(key, purges_seen, std::move(on_progress), refusal);
  if (!fill) count(refusal);
  return fill;
}

std::uint64_t Cache::fill_part_bytes() const noexcept {
  return std::min<std::uint64_t>(StoreWriter::kFillPartBytes, log_->part_body_bytes_max());
}

void Cache::refresh(const ObjectPtr& old, std::shared_ptr<const ObjectHead> head,
                    std::uint64_t purges_seen) {
  const ObjectPtr current = find_in_memory(old->key);
  if (current && current != old && has_newer(old->key, *head)) return;
  auto fresh = std::make_shared<Object>(old->key, std::move(head), old->body, old->body_bytes);
  fresh->purges_seen.store(purges_seen, std::memory_order_relaxed);
  fresh->on_disk.store(old->on_disk.load(std::memory_order_relaxed), std::memory_order_relaxed);
  keep(fresh, Newcomer::SeenBefore);
  // Without a tier it was found in the queue, and has perhaps left that since.
  if (writer_ && (!memory_ || writer_->find_pending(old->key) == old)) {
    fresh->on_disk.store(true, std::memory_order_relaxed);
    hand_over(fresh);  // in the place of the old one, if that still waits
  }
}

void Cache::refresh(const CacheKey& key, const Index::Entry& old, std::vector<log::PartRef> parts,
                    std::shared_ptr<const ObjectHead> head, Seconds lifetime,
                    std::uint64_t purges_seen) {
  if (memory_ && lifetime < kLifetimeWorthARecord) return;
  writer_->refresh(key, std::move(head), old, std::move(parts), purges_seen);
}

Placement Cache::place(const CacheKey& primary, ObjectPtr known, const policy::FieldBlock& request,
                       const ObjectHead& head) {
  const std::lock_guard lock(marker_mutexes_[primary.fingerprint().low % kMarkerMutexes]);
  const std::uint64_t purges_seen = purges_.sequence();
  // What was known when the fetch began may have been replaced since, by an invalidation for one.
  if (ObjectPtr current = find_in_memory(primary); current && current->is_vary_marker)
    known = current;
  std::vector<std::string> names = head.facts.vary;
  if (!known && names.empty()) return {primary, nullptr};
  if (known) {
    const auto& old = known->head->facts.vary;
    names.insert(names.end(), old.begin(), old.end());
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    if (names.size() > policy::kVaryNamesMax) names = head.facts.vary;  // the older are given up
  }
  WallTime epoch{};
  if (known)
    epoch = known->head->times.response_received;
  else if (may_have_unknown_marker(primary) || may_have_lost_marker())
    epoch = head.times.response_received;
  CacheKey key = primary.variant(names, epoch, request, seed_);
  std::optional<CacheKey> by_language;
  const auto tag = head.fields.joined("Content-Language");
  if (tag && tag->find(',') == std::string::npos && varies_by_language(names))
    by_language = primary.variant(names, epoch, preferring(request, *tag), seed_);
  Variant variant = make_variant(key, head.facts.etag, by_language);

  std::vector<Variant> variants;
  if (known && known->head->facts.vary == names) {  // otherwise the older keys are no keys any more
    variants = variants_of(*known);
    const auto same = std::find_if(variants.begin(), variants.end(), [&](const Variant& v) {
      return v.fingerprint == variant.fingerprint;
    });
    if (same != variants.end() && *same == variant) return {std::move(key), std::move(known)};
    if (same != variants.end()) variants.erase(same);
  }
  variants.push_back(std::move(variant));
  if (variants.size() > kVariantsMax) variants.erase(variants.begin());
  ObjectPtr marker = make_marker(primary, names, epoch, variants);
  marker->purges_seen.store(purges_seen, std::memory_order_relaxed);
  keep(marker, Newcomer::SeenBefore);
  return {std::move(key), std::move(marker)};
}

void Cache::persist_marker(const ObjectPtr& known) {
  // Another variant may have been added to it since.
  const ObjectPtr current = find_in_memory(known->key);
  const ObjectPtr& marker = current && current->is_vary_marker ? current : known;
  if (!writer_ || marker->on_disk.exchange(true, std::memory_order_relaxed)) return;
  if (writer_->store(marker) != Detail::None)
    marker->on_disk.store(false, std::memory_order_relaxed);
}

CacheKey Cache::variant_key(const CacheKey& primary, const Object& marker,
                            const policy::FieldBlock& request) const {
  return primary.variant(marker.head->facts.vary, marker.head->times.response_received, request,
                         seed_);
}

std::optional<CacheKey> Cache::variant_by_language(const CacheKey& primary, const Object& marker,
                                                   const policy::FieldBlock& request) const {
  const auto& names = marker.head->facts.vary;
  if (!varies_by_language(names)) return std::nullopt;
  const auto language = policy::preferred_language(request);
  if (!language) return std::nullopt;
  const WallTime epoch = marker.head->times.response_received;
  const auto wanted =
      primary.variant(names, epoch, preferring(request, *language), seed_).fingerprint();
  for (const Variant& variant : variants_of(marker))
    if (variant.by_language == wanted && !variant.vary_text.empty())
      return primary.variant(variant.vary_text, epoch, seed_);
  return std::nullopt;
}

std::vector<TaggedVariant> Cache::tagged_variants(const CacheKey& primary, const Object& marker,
                                                  const policy::FieldBlock& request) const {
  const auto& names = marker.head->facts.vary;
  const std::string coding = "accept-encoding";
  const bool varies_by_coding = std::find(names.begin(), names.end(), coding) != names.end();
  const std::string same_coding =
      varies_by_coding ? policy::vary_text({coding}, request) : std::string();
  std::vector<TaggedVariant> tagged;
  std::vector<Variant> variants = variants_of(marker);
  for (auto variant = variants.rbegin(); variant != variants.rend(); ++variant) {
    if (variant->vary_text.empty() || !policy::matches_strongly(variant->etag, variant->etag))
      continue;
    if (variant->vary_text.find(same_coding) == std::string::npos) continue;
    tagged.push_back(
        {std::move(variant->etag),
         primary.variant(variant->vary_text, marker.head->times.response_received, seed_)});
  }
  return tagged;
}

/// Whether the disk may hold a marker of it that nobody could read: while it is closed, or for a
/// request that looked before it was opened. Then an epoch of its own keeps what follows apart from
/// all variants that are there.
bool Cache::may_have_unknown_marker(const CacheKey& primary) const noexcept {
  if (!writer_) return false;
  if (!writer_->is_open()) return true;
  const auto entry = index_.find(primary.fingerprint());
  return entry && entry->kind == log::RecordKind::VaryMarker;
}

/// Whether a marker may have gone with its segment and left variants behind, which lie in later
/// ones: they may have been invalidated since. Without a tier nothing would keep the new epoch
/// until the second sighting.
bool Cache::may_have_lost_marker() const noexcept {
  return memory_ && log_ && log_->segments()->next_after(0) > 1;
}

void Cache::invalidate(const CacheKey& primary, const ObjectPtr& known, WallTime now) {
  const std::lock_guard lock(marker_mutexes_[primary.fingerprint().low % kMarkerMutexes]);
  ObjectPtr marker = known;
  if (ObjectPtr current = find_in_memory(primary); current && current->is_vary_marker)
    marker = std::move(current);
  if (!marker && may_have_unknown_marker(primary)) marker = make_marker(primary, {}, {}, {});
  if (memory_) memory_->erase(primary);
  forget_part(primary);
  policy_.forget(primary.fingerprint());
  if (marker) {
    // A new epoch gives every variant a new key: none of the stored ones can be found any more.
    WallTime epoch = std::max(now, marker->head->times.response_received + WallTime::duration{1});
    if (known)
      epoch = std::max(epoch, known->head->times.response_received + WallTime::duration{1});
    const ObjectPtr fresh = make_marker(primary, marker->head->facts.vary, epoch, {});
    fresh->purges_seen.store(purges_.sequence(), std::memory_order_relaxed);
    keep(fresh, Newcomer::SeenBefore);
    fresh->on_disk.store(true, std::memory_order_relaxed);
    if (writer_) writer_->store_for_certain(fresh);
  } else if (writer_ && (index_.find(primary.fingerprint()) || writer_->is_on_its_way(primary))) {
    writer_->remove(primary);
  }
}

/// Of what is gone by its URL, in the variants that are known here. To be called before it is
/// purged.
void Cache::forget_sightings(const Purge& purge) {
  if (purge.scope != PurgeScope::Url || purge.kind != PurgeKind::Hard) return;
  const CacheKey key = CacheKey::of_text(purge.text, seed_);
  policy_.forget(key.fingerprint());
  const ObjectPtr marker = memory_ ? memory_->peek(key) : nullptr;
  if (!marker || !marker->is_vary_marker) return;
  for (const Variant& variant : variants_of(*marker)) policy_.forget(variant.fingerprint);
}

void Cache::purge(std::vector<Purge> purges, WallTime now, PurgeWriter::Done done) {
  PurgeWriter::Job job;
  job.purges.reserve(purges.size());
  const std::uint64_t folds = purges_.folds();
  for (Purge& purge : purges) {
    forget_sightings(purge);
    const PurgeStamp stamp = purges_.add(purge, now);
    job.purges.push_back({std::move(purge), stamp, now});
  }
  if (purges_.folds() != folds)
    log_line(LogLevel::Warning, "too many purges to remember: what is older than half is purged");
  if (writer_) {
    job.done = std::move(done);
    return writer_->purge(std::move(job));
  }
  for (const PendingPurge& pending : job.purges) purges_.note_written(pending.stamp, {});
  if (done) done({});
}

void Cache::sweep_purged(SteadyTime now) {
  // Without a disk nothing is older than any record of a purge.
  constexpr std::uint32_t kNoDisk = 1;
  sweep_.step(now, memory_.get(), log_ ? log_->segments()->next_after(0) : kNoDisk,
              [this](const ObjectPtr& object) { judged(object); });
}

std::uint64_t Cache::stored_body_bytes_max() const noexcept {
  return writer_ ? std::min(settings_.max_object, settings_.disk_bytes / 2) : settings_.max_object;
}

std::uint64_t Cache::whole_body_bytes_max() const noexcept {
  if (!memory_) return std::min(kWholeBodyBytesWithoutTier, settings_.max_object);
  const std::uint64_t object_bytes_max = memory_->object_bytes_max();
  const std::uint64_t allowance = kHeadBytesAllowance + object_bytes_max / kBodyBytesForOneOfChunks;
  return std::min(object_bytes_max - std::min(object_bytes_max, allowance), settings_.max_object);
}

void Cache::count(Detail detail) noexcept {
  if (Counter* const counter = decisions_[static_cast<std::size_t>(detail)]) counter->add();
}

}  // namespace secondsight::cache
