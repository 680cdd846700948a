#include "cache/log/segment_scrub.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "cache/log/record_reader.h"
#include "cache/log/segment_walk.h"

namespace secondsight::cache::log {
namespace {

namespace errc = boost::system::errc;

constexpr std::uint64_t kPieceBytes = 1U << 20;  // of a body, read at a time

/// What the device is to blame for. Other errors say nothing about the record.
bool is_damage(const boost::system::error_code& error) noexcept {
  return error == errc::bad_message || error == errc::io_error;
}

/// A footer that comes from a scan lists what it found damaged as a Tombstone.
bool was_dropped_before(const Segment& segment, std::uint64_t seed_id, const LoggedRecord& record) {
  if (record.kind != RecordKind::Tombstone) return false;
  std::array<std::byte, kRecordHeaderBytes> bytes{};
  const auto read = segment.file().read_at(record.location.offset_bytes, bytes, ReadMode::Uncached);
  const auto header = decode_header(
      bytes, RecordPlace{seed_id, record.location.segment, record.location.offset_bytes});
  return read && header && header->kind != RecordKind::Tombstone;
}

Result<> read_body(RecordReader& reader, std::vector<std::byte>& body) {
  const std::uint64_t body_bytes = reader.header().body_bytes;
  body.resize(std::min(body_bytes, kPieceBytes));
  for (std::uint64_t at = 0; at < body_bytes; at += body.size()) {
    const auto piece = std::span(body).first(std::min<std::uint64_t>(body.size(), body_bytes - at));
    if (auto read = reader.read_body(at, piece, ReadMode::Uncached); !read) return read;
  }
  return {};
}

}  // namespace

std::optional<ScrubbedRecord> SegmentScrub::next() {
  while (next_ == records_.size() || !segments_->find(number_))
    if (!find_segment()) return std::nullopt;
  return read(records_[next_++]);
}

/// The next segment that has a footer. False: there is none, and the round is over.
bool SegmentScrub::find_segment() {
  records_.clear();
  next_ = 0;
  while ((number_ = segments_->next_after(number_)) != 0) {
    const auto segment = segments_->find(number_);
    if (!segment) continue;  // reclaimed in this moment
    const auto size = segment->file().size();
    if (!size) continue;
    const auto footer =
        read_footer(segment->file(), *size, segments_->seed_id(), number_, ReadMode::Uncached);
    if (!footer || !*footer) continue;  // not sealed yet
    for (const FooterEntry& entry : (*footer)->entries)
      records_.push_back(
          {entry.fingerprint, entry.kind, {number_, entry.offset_bytes, entry.length_bytes}});
    return true;
  }
  return false;
}

ScrubbedRecord SegmentScrub::read(const LoggedRecord& record) {
  ScrubbedRecord scrubbed{record, 0, {}};
  auto segment = segments_->find(number_);
  if (!segment) return scrubbed;
  auto reader =
      RecordReader::open(segment, segments_->seed_id(), record.location, ReadMode::Uncached);
  boost::system::error_code error = reader.error();
  if (reader && reader->header().fingerprint != record.fingerprint) {
    error = make_error_code(errc::bad_message);
  } else if (reader) {
    error = read_body(*reader, body_).error();
  }
  if (error && !is_damage(error)) return scrubbed;
  scrubbed.bytes = record.location.length_bytes;
  if (error && !was_dropped_before(*segment, segments_->seed_id(), record)) scrubbed.damage = error;
  return scrubbed;
}

}  // namespace secondsight::cache::log
