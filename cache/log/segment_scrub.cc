#include "cache/log/segment_scrub.h"

#include <algorithm>
#include <utility>

#include "cache/log/record_format.h"
#include "cache/log/segment_walk.h"

namespace secondsight::cache::log {
namespace {

using boost::system::errc::make_error_code;
namespace errc = boost::system::errc;

/// A read of the device for each small record would cost more than all else: 28 us for a kilobyte.
constexpr std::size_t kBufferBytes = 256U << 10;

enum class Verdict : std::uint8_t {
  Intact,
  Damaged,
  TakenOut,  // damaged, and listed as a Tombstone by a footer that comes from a scan; or a purge,
             // which holds by its header alone
};

Verdict judge(std::span<const std::byte> bytes, const LoggedRecord& record,
              const RecordPlace& place) {
  const auto header = decode_header(bytes, place);
  if (!header || header->fingerprint != record.fingerprint || header->record_bytes() > bytes.size())
    return Verdict::Damaged;
  const bool is_taken_out =
      header->kind == RecordKind::Purge ||
      (record.kind == RecordKind::Tombstone && header->kind != RecordKind::Tombstone);
  const auto damaged = is_taken_out ? Verdict::TakenOut : Verdict::Damaged;
  const auto front = bytes.first(header->front_bytes());
  if (!front_is_intact(front, *header, place)) return damaged;
  std::size_t at = front.size();
  for (std::uint32_t i = 0; i < header->block_count(); ++i) {
    const auto block = bytes.subspan(at, header->block_bytes(i));
    if (!block_is_intact(block, i, front, *header, place)) return damaged;
    at += block.size();
  }
  return header->kind == record.kind ? Verdict::Intact : damaged;
}

}  // namespace

std::optional<ScrubbedRecord> SegmentScrub::next() {
  while (next_ == records_.size() || !segments_->find(number_))
    if (!find_segment()) return std::nullopt;
  return check(records_[next_++]);
}

/// The next segment that has a footer. False: there is none, and the round is over.
bool SegmentScrub::find_segment() {
  records_.clear();
  next_ = 0;
  buffer_.clear();
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

ScrubbedRecord SegmentScrub::check(const LoggedRecord& record) {
  ScrubbedRecord scrubbed{record, 0, {}};
  const Location& at = record.location;
  const auto bytes = read(at);
  // Other errors say nothing about the record.
  if (!bytes && bytes.error() != errc::io_error) return scrubbed;
  scrubbed.bytes = at.length_bytes;
  if (!bytes)
    scrubbed.damage = bytes.error();
  else if (judge(*bytes, record, {segments_->seed_id(), at.segment, at.offset_bytes}) ==
           Verdict::Damaged)
    scrubbed.damage = make_error_code(errc::bad_message);
  return scrubbed;
}

/// The record's bytes; fewer where the file was cut off.
Result<std::span<const std::byte>> SegmentScrub::read(const Location& at) {
  auto bytes = read_at_least(at, kBufferBytes);
  // Perhaps it is one of those behind it that cannot be read.
  if (!bytes && at.length_bytes < kBufferBytes) bytes = read_at_least(at, at.length_bytes);
  return bytes;
}

Result<std::span<const std::byte>> SegmentScrub::read_at_least(const Location& at,
                                                               std::size_t bytes) {
  const bool is_there =
      at.offset_bytes >= buffer_at_ &&
      at.offset_bytes + std::uint64_t{at.length_bytes} <= buffer_at_ + buffer_.size();
  if (!is_there) {
    const auto segment = segments_->find(at.segment);
    if (!segment) return make_error_code(errc::no_such_file_or_directory);
    buffer_at_ = at.offset_bytes;
    buffer_.resize(std::max<std::size_t>(at.length_bytes, bytes));
    const auto got = segment->file().read_at(at.offset_bytes, buffer_, ReadMode::Uncached);
    buffer_.resize(got ? *got : 0);
    if (!got) return got.error();
  }
  const auto rest = std::span<const std::byte>(buffer_).subspan(at.offset_bytes - buffer_at_);
  return rest.first(std::min<std::size_t>(rest.size(), at.length_bytes));
}

}  // namespace secondsight::cache::log
