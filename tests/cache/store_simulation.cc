#include "tests/cache/store_simulation.h"

#include <algorithm>
#include <charconv>

#include "cache/head_text.h"
#include "cache/log/segment_format.h"
#include "cache/log/verify.h"
#include "tests/cache/log/log_fixture.h"

namespace secondsight::cache {
namespace {

constexpr std::uint64_t kQueueBytes = 64U << 20;

CacheKey key_of(std::uint64_t key) {
  return CacheKey::primary("http", "test", "/" + std::to_string(key), SimulatedStore::seed());
}

std::string tag_of(std::uint64_t key) {
  return "tag" + std::to_string(key % 4);
}

/// A head that says which version it is, and of which version the body under it.
std::shared_ptr<ObjectHead> head_of(std::uint64_t key, std::int64_t version,
                                    std::int64_t body_version) {
  auto head = std::make_shared<ObjectHead>();
  head->status = 200;
  head->reason = "OK";
  head->fields.add("Surrogate-Key", tag_of(key));
  head->fields.add("Version", std::to_string(version));
  head->fields.add("Body-Version", std::to_string(body_version));
  head->times = {WallTime(std::chrono::milliseconds(version)),
                 WallTime(std::chrono::milliseconds(version))};
  return head;
}

std::int64_t number_in(const ObjectHead& head, std::string_view name) {
  const auto text = head.fields.joined(name);
  std::int64_t number = -1;
  if (text) std::from_chars(text->data(), text->data() + text->size(), number);
  return number;
}

std::vector<std::byte> body_of(std::uint64_t key, std::int64_t version, std::size_t bytes) {
  return test::body_of(key, static_cast<std::uint64_t>(version), bytes);
}

ChunkPtr chunk(std::vector<std::byte> bytes) {
  return std::make_shared<const Chunk>(std::move(bytes));
}

}  // namespace

const admission::FingerprintSeed& SimulatedStore::seed() {
  static const admission::FingerprintSeed seed{admission::FingerprintSeed::Bytes{}};
  return seed;
}

SimulatedStore::SimulatedStore(test::SimFileSystem& disk, const Shape& shape) {
  auto log = log::ObjectLog::closed(disk, {.capacity_bytes = shape.capacity_bytes(),
                                           .segment_bytes = shape.segment_bytes,
                                           .seed_id = seed().id(),
                                           .seal_bytes = shape.seal_bytes});
  EXPECT_OK(log);
  log_ = std::move(*log);
  writer_ = std::make_unique<StoreWriter>(*log_, index_, nullptr, purges_, kQueueBytes, metrics_);
}

SimulatedStore::~SimulatedStore() = default;

bool SimulatedStore::store(const std::shared_ptr<Object>& object) {
  object->purges_seen.store(purges_.sequence());
  const bool is_taken = writer_->store(object) == Detail::None;
  writer_->drain();
  return is_taken;
}

bool SimulatedStore::put(std::uint64_t key, std::int64_t version, std::size_t body_bytes) {
  std::vector<ChunkPtr> body;
  if (body_bytes > 0) body.push_back(chunk(body_of(key, version, body_bytes)));
  return store(make_object(key_of(key), head_of(key, version, version), std::move(body)));
}

bool SimulatedStore::fill(std::uint64_t key, std::int64_t version, std::size_t body_bytes,
                          FillEnd end) {
  Detail refusal = Detail::None;
  const auto fill = writer_->begin_fill(
      key_of(key), purges_.sequence(), [] {}, refusal);
  if (!fill) return false;
  const auto body = body_of(key, version, body_bytes);
  for (std::size_t at = 0; at < body_bytes; at += part_bytes_max()) {
    const std::size_t bytes = std::min<std::size_t>(part_bytes_max(), body_bytes - at);
    const auto first = body.begin() + static_cast<std::ptrdiff_t>(at);
    writer_->append(fill, {chunk({first, first + static_cast<std::ptrdiff_t>(bytes)})}, bytes);
    writer_->drain();
  }
  if (end == FillEnd::Commit)
    writer_->commit(fill, head_of(key, version, version));
  else
    writer_->abandon(fill);
  writer_->drain();
  return fill->committed();
}

bool SimulatedStore::refresh(std::uint64_t key, std::int64_t version) {
  const CacheKey cache_key = key_of(key);
  const auto entry = index_.find(cache_key.fingerprint());
  if (!entry) return false;
  const auto reader = log_->open_object(entry->location, ReadMode::Blocking);
  if (!reader) return false;
  const log::RecordHead& record = (*reader)->head();
  const auto old = read_head(record);
  std::vector<log::PartRef> parts = record.parts;
  if (record.kind == log::RecordKind::Object) parts = {{entry->location, record.body_bytes}};
  writer_->refresh(cache_key, head_of(key, version, number_in(*old, "Body-Version")), *entry, parts,
                   purges_.sequence());
  writer_->drain();
  return true;
}

void SimulatedStore::mark(std::uint64_t key, std::int64_t version) {
  auto marker = make_object(key_of(key), head_of(key, version, version), {});
  marker->is_vary_marker = true;
  writer_->store_for_certain(marker);
  writer_->drain();
}

void SimulatedStore::remove(std::uint64_t key) {
  writer_->remove(key_of(key));
  writer_->drain();
}

bool SimulatedStore::purge(PurgeScope scope, std::uint64_t key) {
  Purge purge{scope, PurgeKind::Hard, {}};
  if (scope == PurgeScope::Tag) purge.text = tag_of(key);
  if (scope == PurgeScope::Prefix || scope == PurgeScope::Url) purge.text = key_of(key).text();
  const PurgeStamp stamp = purges_.add(purge, WallTime{});
  bool is_durable = false;
  PurgeWriter::Job job;
  job.purges.push_back({std::move(purge), stamp, WallTime{}});
  job.done = [&is_durable](const boost::system::error_code& error) { is_durable = !error; };
  writer_->purge(std::move(job));
  writer_->drain();
  return is_durable;
}

bool SimulatedStore::concerns(PurgeScope scope, std::uint64_t key, std::uint64_t other) {
  switch (scope) {
    case PurgeScope::Everything:
      return true;
    case PurgeScope::Tag:
      return tag_of(key) == tag_of(other);
    case PurgeScope::Prefix:
      return key_of(other).text().starts_with(key_of(key).text());
    case PurgeScope::Url:
      return key == other;
  }
  return false;
}

void SimulatedStore::hit(std::uint64_t key) {
  index_.note_hit(key_of(key).fingerprint());
}

void SimulatedStore::try_disk_again() {
  writer_->try_disk_again();
  writer_->drain();
}

std::optional<log::Location> SimulatedStore::place(std::uint64_t key) const {
  const auto entry = index_.find(key_of(key).fingerprint());
  return entry ? std::optional(entry->location) : std::nullopt;
}

std::optional<SimulatedStore::Found> SimulatedStore::find(std::uint64_t key) const {
  const CacheKey cache_key = key_of(key);
  const auto entry = index_.find(cache_key.fingerprint());
  if (!entry) return std::nullopt;
  const auto reader = log_->open_object(entry->location, ReadMode::Blocking);
  if (!reader) return std::nullopt;
  const log::RecordHead& record = (*reader)->head();
  std::vector<std::byte> body(record.body_bytes);
  if (!(*reader)->read_body(0, body, ReadMode::Blocking)) return std::nullopt;

  const auto head = read_head(record);
  EXPECT_TRUE(head && record.key == cache_key.text()) << "wrong head, key " << key;
  if (!head) return std::nullopt;
  const bool is_object = record.kind != log::RecordKind::VaryMarker;
  if (is_object && purges_.judge(entry->location, record.key, &head->fields).is_purged)
    return std::nullopt;
  Found found{number_in(*head, "Version"), entry->location.segment};
  for (const log::PartRef& part : record.parts)
    found.oldest_segment = std::min(found.oldest_segment, part.record.segment);
  const bool is_right = body == body_of(key, number_in(*head, "Body-Version"), body.size());
  EXPECT_TRUE(is_right &&
              record.times.request_sent == head_of(key, found.version, 0)->times.request_sent)
      << "wrong bytes, key " << key << ", version " << found.version;
  return found;
}

StoreWorkload::StoreWorkload(test::SimFileSystem& disk, std::uint64_t seed)
    : disk_(disk), random_(seed) {
  shape_.segment_bytes = 8U << 10 << draw(2);
  shape_.segments = static_cast<std::uint32_t>(4 + draw(5));
  // Sealed at once, a few together, or never before they are reclaimed.
  shape_.seal_bytes = draw(3) * shape_.segment_bytes * (shape_.segments / 2 + 1);
}

bool StoreWorkload::open() {
  store_ = std::make_unique<SimulatedStore>(disk_, shape_);
  places_ = places();
  return store_->is_open();
}

void StoreWorkload::kill() {
  disk_.end_process();
  store_.reset();
  disk_.start_process();
}

void StoreWorkload::close() {
  const auto failures = disk_.failed_operations();
  store_.reset();
  if (!disk_.has_crashed() && disk_.failed_operations() == failures) note_durable();
}

void StoreWorkload::cut_power() {
  if (store_) kill();
  disk_.power_cycle();
  for (auto& [key, changes] : history_)
    for (Change& change : changes) change.is_written = change.is_durable;
}

void StoreWorkload::settle() {
  std::uint64_t failures = 0;
  do {
    failures = disk_.failed_operations();
    if (!store_->is_open()) open();
    store_->try_disk_again();
  } while (disk_.failed_operations() != failures);
  if (disk_.has_crashed()) return;
  doubtful_segments_.merge(segments());
  for (auto& [key, changes] : history_) {
    const bool is_marker = key >= kKeys;
    for (Change& change : changes) {
      if (change.is_durable) continue;
      change.is_written = change.is_durable = change.version == 0 || is_marker;
      change.is_doubtful = !change.is_durable;
    }
  }
}

void StoreWorkload::step() {
  const auto failures = disk_.failed_operations();
  const std::uint64_t key = draw(kKeys);
  const auto dice = draw(100);
  if (dice < 80) {
    change(key);
  } else if (dice < 92) {
    check_all();
  } else if (dice < 95) {
    close();
    open();
  } else if (dice < 97) {
    kill();
    open();
  } else {
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t popular = draw(kKeys);
      store_->hit(popular);
      hit_.insert(popular);
    }
  }
  if (disk_.failed_operations() == failures || disk_.has_crashed()) return;
  settle();
}

void StoreWorkload::change(std::uint64_t key) {
  const auto failures = disk_.failed_operations();
  const auto dice = draw(100);
  const std::int64_t version = ++last_version_;
  const std::size_t part = store_->part_bytes_max();
  bool is_sync = false;
  if (dice < 45) {
    if (store_->put(key, version, draw(part + 1))) note(key, version);
  } else if (dice < 55) {
    if (store_->put(key, version, part + 1 + draw(2 * part))) note(key, version);
  } else if (dice < 65) {
    note(key, version);  // though it may come to nothing: its head may be there in part
    store_->fill(key, version, 1 + draw(3 * part), SimulatedStore::FillEnd::Commit);
  } else if (dice < 70) {
    store_->fill(key, version, 1 + draw(3 * part), SimulatedStore::FillEnd::Abandon);
  } else if (dice < 80) {
    if (store_->refresh(key, version)) note(key, version);
  } else if (dice < 87) {
    key = kKeys + draw(kMarkers);
    note(key, version);
    store_->mark(key, version);
    is_sync = true;
  } else if (dice < 94) {
    note(key, 0);
    store_->remove(key);
    is_sync = true;
  } else {
    is_sync = purge(key);
  }
  ASSERT_LE(store_->log().bytes_on_disk(), shape_.capacity_bytes());
  ASSERT_LE(disk_.bytes_used_peak(), shape_.capacity_bytes());
  if (disk_.has_crashed() || disk_.failed_operations() != failures) return;
  note_places(key);
  if (is_sync) note_durable();
}

void StoreWorkload::note(std::uint64_t key, std::int64_t version) {
  history_[key].push_back({version});
}

bool StoreWorkload::purge(std::uint64_t key) {
  constexpr PurgeScope kScopes[] = {PurgeScope::Url, PurgeScope::Prefix, PurgeScope::Tag,
                                    PurgeScope::Everything};
  const PurgeScope scope = kScopes[draw(std::size(kScopes))];
  for (std::uint64_t other = 0; other < kKeys; ++other)
    if (SimulatedStore::concerns(scope, key, other)) note(other, 0);
  return store_->purge(scope, key);
}

std::map<std::uint64_t, log::Location> StoreWorkload::places() const {
  std::map<std::uint64_t, log::Location> places;
  for (std::uint64_t key = 0; key < kKeys + kMarkers; ++key)
    if (const auto place = store_->place(key)) places[key] = *place;
  return places;
}

/// What the last change did, and whether others were written once more because their segment is
/// going.
void StoreWorkload::note_places(std::uint64_t changed) {
  auto now = places();
  for (const auto& [key, place] : now) {
    const auto before = places_.find(key);
    const bool is_moved = before != places_.end() && before->second != place;
    auto& changes = history_[key];
    if (changes.empty() || (key != changed && !is_moved)) continue;
    if (key != changed) changes.push_back({changes.back().version});
    const auto found = store_->find(key);
    if (!found || found->version != changes.back().version || changes.back().is_doubtful) continue;
    changes.back().oldest_segment = found->oldest_segment;
    // A new head is no surer than the body under it.
    changes.back().is_doubtful = doubtful_segments_.contains(found->oldest_segment);
    changes.back().is_written = !changes.back().is_doubtful;
  }
  for (auto& [key, changes] : history_)
    if (!changes.empty() && changes.back().version == 0) changes.back().is_written = true;
  places_ = std::move(now);
  if (const auto numbers = segments(); !numbers.empty()) next_to_go_ = *numbers.begin();
}

void StoreWorkload::note_durable() {
  for (auto& [key, changes] : history_)
    for (Change& change : changes) change.is_durable |= change.is_written;
}

void StoreWorkload::check_all() {
  const auto segments_now = segments();
  for (const auto& [key, changes] : history_) {
    const auto found = store_->find(key);
    if (changes.empty()) continue;
    const Change& last = changes.back();
    if (disk_.has_crashed() || disk_.failed_operations() > 0 || disk_lies_) continue;
    if (last.version == 0) {
      ASSERT_FALSE(found) << "key " << key << " was removed, and is version " << found->version;
    } else if (found) {
      // A new head is dropped where its object was written once more at the same time.
      const auto written = std::find_if(changes.rbegin(), changes.rend(),
                                        [](const Change& change) { return change.is_written; });
      const bool is_latest =
          std::any_of(changes.rbegin(), written == changes.rend() ? written : written + 1,
                      [&found](const Change& change) { return change.version == found->version; });
      ASSERT_TRUE(is_latest) << "key " << key << " is version " << found->version << ":"
                             << words(changes);
    } else {
      ASSERT_TRUE(!last.is_written || !segments_now.contains(last.oldest_segment))
          << "key " << key << " is lost:" << words(changes);
    }
  }
}

std::set<std::uint32_t> StoreWorkload::segments() const {
  std::set<std::uint32_t> numbers;
  auto names = disk_.list();
  while (!names && !disk_.has_crashed()) names = disk_.list();  // that failure was ours
  for (const auto& name : names ? *names : std::vector<std::string>{})
    if (const auto number = log::parse_segment_file_name(name)) numbers.insert(*number);
  return numbers;
}

std::string StoreWorkload::words(const Changes& changes) {
  std::string text;
  for (const Change& change : changes) {
    text += change.version == 0 ? " removed" : " v" + std::to_string(change.version);
    if (change.oldest_segment != 0) text += "@" + std::to_string(change.oldest_segment);
    text += change.is_durable ? " durable," : change.is_written ? " written," : ",";
  }
  return text;
}

/// The last durable change, or a later one.
void StoreWorkload::check_key(std::uint64_t key, const Changes& changes,
                              const std::set<std::uint32_t>& segments) const {
  const auto durable = std::find_if(changes.rbegin(), changes.rend(),
                                    [](const Change& change) { return change.is_durable; });
  const bool is_any_durable = durable != changes.rend();
  const auto found = store_->find(key);
  if (!found) {
    // A miss has a reason: removed, reclaimed, or outdone by something that was torn. That may be
    // a copy of itself, made because its segment is the next to go.
    const bool is_copied =
        is_any_durable && hit_.contains(key) && durable->oldest_segment <= next_to_go_ + 1;
    const bool has_reason = is_copied || !is_any_durable || durable->version == 0 ||
                            !segments.contains(durable->oldest_segment) ||
                            durable != changes.rbegin();
    EXPECT_TRUE(has_reason) << "key " << key << " is lost:" << words(changes);
    return;
  }
  const auto first_allowed = is_any_durable ? durable.base() - 1 : changes.begin();
  const bool is_allowed = std::any_of(first_allowed, changes.end(), [&](const Change& change) {
    return change.version == found->version;
  });
  EXPECT_TRUE(is_allowed) << "key " << key << " is version " << found->version << ":"
                          << words(changes);
}

void StoreWorkload::check_recovered() {
  ASSERT_TRUE(open()) << "it does not open";
  ASSERT_LE(store_->log().bytes_on_disk(), shape_.capacity_bytes());
  const auto segments_now = segments();
  for (const auto& [key, changes] : history_) check_key(key, changes, segments_now);
  const auto first = places();

  kill();
  ASSERT_TRUE(open());
  EXPECT_EQ(places(), first) << "opening again gives another index";

  constexpr std::uint64_t kNewKey = 1'000;
  constexpr std::int64_t kVersion = 1'000'000;
  ASSERT_TRUE(store_->put(kNewKey, kVersion, 500));
  store_->remove(kNewKey + 1);  // syncs
  cut_power();
  ASSERT_TRUE(open());
  const auto found = store_->find(kNewKey);
  ASSERT_TRUE(found) << "appending does not work";
  EXPECT_EQ(found->version, kVersion);

  store_.reset();
  // A sync that failed lets a later process find in the page cache what the disk never got.
  if (disk_.failed_operations() > 0) return;
  const auto report = log::verify(disk_, SimulatedStore::seed());
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->is_clean()) << to_string(report->damaged.front().damage);
  EXPECT_EQ(report->torn_tail_bytes, 0U);
}

}  // namespace secondsight::cache
