#include "cache/log/object_log.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "cache/log/record_format.h"
#include "cache/log/segment_format.h"
#include "cache/log/segment_ring.h"
#include "cache/log/segment_scan.h"
#include "cache/log/segment_writer.h"
#include "config/check.h"
#include "config/units.h"

namespace secondsight::cache::log {
namespace {

using boost::system::error_code;
using boost::system::errc::make_error_code;
namespace errc = boost::system::errc;

constexpr std::uint64_t kPageBytes = 4_KiB;
constexpr std::uint64_t kSegmentsPlanned = 64;
constexpr std::uint64_t kSegmentsFew = 16;  // enough where more would make segments tiny
constexpr std::uint64_t kSegmentsMin = 4;

Location location_of(std::uint32_t segment, const FooterEntry& entry) noexcept {
  return {segment, entry.offset_bytes, entry.length_bytes};
}

void name_records(std::uint32_t segment, const Footer& contents,
                  const ObjectLog::OnReclaimed& reclaimed) {
  for (const FooterEntry& entry : contents.entries)
    reclaimed(entry.fingerprint, location_of(segment, entry));
}

// Written by the writer, read by whoever shows metrics. Relaxed: statistics, they order nothing.
struct Counters {
  std::atomic<std::uint64_t> record_bytes{0}, footer_bytes{0}, header_bytes{0};
  std::atomic<std::uint64_t> records{0}, segments_created{0}, segments_reclaimed{0};
};

void add(std::atomic<std::uint64_t>& counter, std::uint64_t n) noexcept {
  counter.fetch_add(n, std::memory_order_relaxed);
}

/// A full segment that waits to be sealed, and may be reclaimed before: a reference would hold it.
struct Ended {
  std::weak_ptr<Segment> segment;
  std::uint32_t number = 0;
  Footer contents;
  bool is_synced = false;
};

}  // namespace

struct ObjectLog::Impl {
  Impl(FileSystem& files, const Options& options)
      : options_(options),
        files_(files),
        ring_(files, {options.capacity_bytes, options.segment_bytes, options.seed_id}),
        seal_batch_(std::max<std::uint64_t>(options.seal_bytes / options.segment_bytes, 1)) {}

  Result<> open(const OnRecord& recovered, const OnExpected& expected);
  Result<> start_over(const OnReclaimed& reclaimed);
  void let_go();
  Result<> replay(const OnRecord& recovered, const OnExpected& expected);
  Result<> replay_one(const SegmentRing::Existing& existing, const OnRecord& recovered);
  Result<Location> append(const RecordView& record, const OnReclaimed& reclaimed);
  Result<> start_segment(const OnReclaimed& reclaimed);
  Result<> reclaim_oldest(const OnReclaimed& reclaimed);
  Result<Footer> contents_of(const Segment& segment) const;
  void retire_segment();
  void sync_ended();
  void seal_ended();
  Result<> sync();

  Options options_;
  FileSystem& files_;
  SegmentRing ring_;
  Counters counters_;
  std::unique_ptr<SegmentWriter> writer_;  // null: the next append starts a segment
  std::vector<Ended> ended_;               // full, not sealed yet, oldest first
  const std::size_t seal_batch_;           // so many are sealed together
  error_code lost_records_error_;          // appended since the last sync(), and no longer sure
  bool has_reclaimed_for_space_ = false;   // since the disk was found full
  bool is_open_ = false;
};

Result<> ObjectLog::Impl::open(const OnRecord& recovered, const OnExpected& expected) {
  auto replayed = replay(recovered, expected);
  is_open_ = replayed.has_value();
  if (!is_open_) let_go();
  return replayed;
}

/// Of all segments, without touching their files.
void ObjectLog::Impl::let_go() {
  writer_.reset();
  ended_.clear();
  lost_records_error_ = {};
  while (const auto segment = ring_.table()->oldest()) ring_.table()->erase(segment->number());
}

/// The files first: as long as they cannot be removed, what is known of them stays readable.
Result<> ObjectLog::Impl::start_over(const OnReclaimed& reclaimed) {
  is_open_ = false;
  if (auto removed = ring_.remove_all_files(); !removed) return removed;
  while (const auto segment = ring_.table()->oldest()) {
    const auto contents = contents_of(*segment);
    ring_.table()->erase(segment->number());
    add(counters_.segments_reclaimed, 1);
    if (contents) name_records(segment->number(), *contents, reclaimed);
  }
  let_go();
  is_open_ = true;
  return {};
}

Result<> ObjectLog::Impl::replay(const OnRecord& recovered, const OnExpected& expected) {
  auto existing = ring_.find_existing();
  if (!existing) return existing.error();
  if (expected) {
    std::uint64_t records = 0;
    for (const auto& found : *existing)
      if (const auto count = count_in_footer(*found.segment)) records += *count;
    expected(records);
  }
  for (const auto& segment : *existing)
    if (auto replayed = replay_one(segment, recovered); !replayed) return replayed;
  return {};
}

Result<> ObjectLog::Impl::replay_one(const SegmentRing::Existing& existing,
                                     const OnRecord& recovered) {
  Segment& segment = *existing.segment;
  auto contents = read_contents(segment, options_.seed_id);
  if (!contents) return contents.error();
  const Footer& footer = contents->footer;
  if (footer.entries.empty() && ring_.discard(segment)) return {};

  ring_.adopt(existing.segment);
  if (!contents->is_sealed) {
    // A process that was killed may have left them to the page cache.
    if (auto synced = segment.file().sync(); !synced)
      lost_records_error_ = synced.error();
    else if (existing.can_be_sealed)  // spares the next opening the scan
      add(counters_.footer_bytes, write_footer(segment, options_.seed_id, footer));
  }
  for (const FooterEntry& entry : footer.entries)
    recovered(entry.fingerprint, entry.kind, location_of(segment.number(), entry));
  return {};
}

Result<Location> ObjectLog::Impl::append(const RecordView& record, const OnReclaimed& reclaimed) {
  if (!is_open_) return make_error_code(errc::not_connected);
  const std::uint64_t record_bytes = encoded_bytes(record);
  if (kSegmentHeaderBytes + record_bytes + footer_bytes(1) > options_.segment_bytes)
    return make_error_code(errc::value_too_large);
  if (writer_ && !writer_->fits(record_bytes)) retire_segment();
  if (!writer_) {
    if (auto started = start_segment(reclaimed); !started) return started.error();
  }
  auto location = writer_->append(record);  // NOLINT(clang-analyzer-cplusplus.Move): started above
  if (!location) {
    retire_segment();
    seal_ended();  // a scan would take what the failed write left for a removal
    return location;
  }
  add(counters_.records, 1);
  add(counters_.record_bytes, record_bytes);
  return location;
}

Result<> ObjectLog::Impl::start_segment(const OnReclaimed& reclaimed) {
  while (!ring_.has_room_for_segment()) {
    // Without this, slow readers of every segment would cost the whole cache and gain nothing.
    if (!ring_.table()->any_unheld()) return make_error_code(errc::device_or_resource_busy);
    if (auto done = reclaim_oldest(reclaimed); !done) return done;
  }
  auto writer = ring_.start_segment();
  if (!writer && writer.error() == errc::no_space_on_device && !has_reclaimed_for_space_ &&
      ring_.table()->oldest()) {
    // Others filled the disk. One segment of ours is a fair price for going on, but not one per
    // try.
    has_reclaimed_for_space_ = true;
    if (auto done = reclaim_oldest(reclaimed); !done) return done;
    writer = ring_.start_segment();
  }
  if (!writer) return writer.error();
  has_reclaimed_for_space_ = false;
  writer_ = std::move(*writer);
  add(counters_.segments_created, 1);
  add(counters_.header_bytes, kSegmentHeaderBytes);
  return {};
}

Result<> ObjectLog::Impl::reclaim_oldest(const OnReclaimed& reclaimed) {
  auto segment = ring_.table()->oldest();
  const std::uint32_t number = segment->number();
  // When it cannot be read its records go unnamed; whoever looks for one finds the segment gone.
  const auto footer = contents_of(*segment);
  if (auto removed = ring_.remove(*segment, footer ? &*footer : nullptr); !removed) return removed;
  std::erase_if(ended_, [number](const Ended& ended) { return ended.number == number; });
  segment.reset();
  add(counters_.segments_reclaimed, 1);
  if (footer) name_records(number, *footer, reclaimed);
  return {};
}

Result<Footer> ObjectLog::Impl::contents_of(const Segment& segment) const {
  const auto ended = std::find_if(ended_.begin(), ended_.end(), [&segment](const Ended& e) {
    return e.number == segment.number();
  });
  if (ended != ended_.end()) return ended->contents;
  auto contents = read_contents(segment, options_.seed_id);
  if (!contents) return contents.error();
  return std::move(contents->footer);
}

/// Ends the open segment, whatever state it is in.
void ObjectLog::Impl::retire_segment() {
  auto writer = std::move(writer_);
  if (writer->contents().entries.empty()) {
    // Else a disk that refuses every write would push out the whole cache, one empty segment at a
    // time.
    static_cast<void>(ring_.discard(*writer->segment()));
    return;
  }
  ended_.push_back({writer->segment(), writer->segment()->number(), writer->contents(),
                    !writer->has_unsynced()});
  writer.reset();
  if (ended_.size() >= seal_batch_) seal_ended();
}

/// Makes the records of ended segments durable, of several small ones in a row: the file system
/// then commits its own changes for all of them at once.
void ObjectLog::Impl::sync_ended() {
  std::erase_if(ended_, [this](Ended& ended) {
    const auto segment = ended.segment.lock();
    if (!segment) return true;
    if (ended.is_synced) return false;
    const auto synced = segment->file().sync();
    if (!synced) lost_records_error_ = synced.error();
    ended.is_synced = synced.has_value();
    return !ended.is_synced;
  });
}

/// Their footers are left to the page cache: should a power cut take one, its segment is scanned.
void ObjectLog::Impl::seal_ended() {
  sync_ended();
  for (const Ended& ended : ended_) {
    const auto segment = ended.segment.lock();
    add(counters_.footer_bytes, write_footer(*segment, options_.seed_id, ended.contents));
  }
  ended_.clear();
}

Result<> ObjectLog::Impl::sync() {
  if (!is_open_) return make_error_code(errc::not_connected);
  sync_ended();
  if (writer_ && writer_->has_unsynced()) {
    if (auto synced = writer_->sync(); !synced) {
      writer_.reset();
      return synced;
    }
  }
  if (auto synced = ring_.sync_directory(); !synced) return synced;
  if (const auto error = std::exchange(lost_records_error_, {})) return error;
  return {};
}

std::uint32_t ObjectLog::segment_bytes_for(std::uint64_t capacity_bytes) noexcept {
  const std::uint64_t least =
      std::clamp<std::uint64_t>(capacity_bytes / kSegmentsFew, 256_KiB, 1_MiB);
  const std::uint64_t bytes =
      std::clamp<std::uint64_t>(capacity_bytes / kSegmentsPlanned, least, 256_MiB);
  if (capacity_bytes < kSegmentsMin * bytes / 2)
    return static_cast<std::uint32_t>(bytes);  // too few
  // Together they take all of it: what is left over would be of no use.
  const std::uint64_t segments = std::max((capacity_bytes + bytes - 1) / bytes, kSegmentsMin);
  return static_cast<std::uint32_t>(capacity_bytes / segments / kPageBytes * kPageBytes);
}

Result<std::unique_ptr<ObjectLog>> ObjectLog::open(FileSystem& files, const Options& options,
                                                   const OnRecord& recovered,
                                                   const OnExpected& expected) {
  auto log = closed(files, options);
  if (!log) return log;
  if (auto opened = (*log)->open(recovered, expected); !opened) return opened.error();
  return log;
}

Result<std::unique_ptr<ObjectLog>> ObjectLog::closed(FileSystem& files, const Options& options) {
  if (options.segment_bytes < kPageBytes ||
      options.capacity_bytes / kSegmentsMin < options.segment_bytes)
    return make_error_code(errc::invalid_argument);
  std::unique_ptr<ObjectLog> log(new ObjectLog);
  log->impl_ = std::make_unique<Impl>(files, options);
  return log;
}

bool ObjectLog::is_open() const noexcept {
  return impl_->is_open_;
}

Result<FileSystem::Attached> ObjectLog::attach() {
  return impl_->files_.attach();
}

Result<> ObjectLog::open(const OnRecord& recovered, const OnExpected& expected) {
  CHECK(!impl_->is_open_);
  return impl_->open(recovered, expected);
}

Result<> ObjectLog::start_over(const OnReclaimed& reclaimed) {
  return impl_->start_over(reclaimed);
}

ObjectLog::ObjectLog() = default;
ObjectLog::~ObjectLog() = default;

std::uint32_t ObjectLog::part_body_bytes_max() const noexcept {
  return std::min(static_cast<std::uint32_t>(4_MiB), impl_->options_.segment_bytes / 4);
}

Result<Location> ObjectLog::append(const RecordView& record, const OnReclaimed& reclaimed) {
  std::uint64_t body_bytes = 0;
  for (const auto piece : record.body) body_bytes += piece.size();
  if (body_bytes > part_body_bytes_max()) return make_error_code(errc::value_too_large);
  return impl_->append(record, reclaimed);
}

Result<> ObjectLog::sync() {
  return impl_->sync();
}

Result<> ObjectLog::close() {
  if (!impl_->is_open_) return {};
  if (impl_->writer_) impl_->retire_segment();
  std::vector<std::weak_ptr<Segment>> sealed;
  for (const Ended& ended : impl_->ended_) sealed.push_back(ended.segment);
  impl_->seal_ended();
  for (const auto& reference : sealed) {
    const auto segment = reference.lock();
    if (auto synced = segment->file().sync(); !synced) return synced;
  }
  return impl_->sync();
}

Result<std::unique_ptr<ObjectReader>> ObjectLog::open_object(const Location& location,
                                                             ReadMode mode) const {
  return ObjectReader::open(impl_->ring_.table(), location, mode);
}

bool ObjectLog::has(const Location& location) const {
  return impl_->ring_.table()->find(location.segment) != nullptr;
}

std::shared_ptr<const SegmentTable> ObjectLog::segments() const noexcept {
  return impl_->ring_.table();
}

std::optional<std::uint32_t> ObjectLog::next_to_go() const {
  const SegmentRing& ring = impl_->ring_;
  if (ring.has_room_for_segment()) return std::nullopt;
  const auto oldest = ring.table()->oldest();
  if (!oldest) return std::nullopt;
  return oldest->number();
}

std::uint64_t ObjectLog::room_bytes() const noexcept {
  return impl_->writer_ ? impl_->writer_->room_bytes() : 0;
}

Result<std::vector<LoggedRecord>> ObjectLog::records_of(std::uint32_t number) const {
  const auto segment = impl_->ring_.table()->find(number);
  if (!segment) return make_error_code(errc::no_such_file_or_directory);
  const auto contents = impl_->contents_of(*segment);
  if (!contents) return contents.error();
  std::vector<LoggedRecord> records;
  records.reserve(contents->entries.size());
  for (const FooterEntry& entry : contents->entries)
    records.push_back({entry.fingerprint, entry.kind, location_of(number, entry)});
  return records;
}

std::uint32_t ObjectLog::segment_bytes() const noexcept {
  return impl_->options_.segment_bytes;
}

LogCounters ObjectLog::counters() const noexcept {
  const Counters& from = impl_->counters_;
  LogCounters to;
  to.record_bytes = from.record_bytes.load(std::memory_order_relaxed);
  to.footer_bytes = from.footer_bytes.load(std::memory_order_relaxed);
  to.header_bytes = from.header_bytes.load(std::memory_order_relaxed);
  to.records = from.records.load(std::memory_order_relaxed);
  to.segments_created = from.segments_created.load(std::memory_order_relaxed);
  to.segments_reclaimed = from.segments_reclaimed.load(std::memory_order_relaxed);
  return to;
}

std::uint64_t ObjectLog::bytes_on_disk() const noexcept {
  return impl_->ring_.bytes_on_disk();
}

}  // namespace secondsight::cache::log
