#include "cache/log/segment_writer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cache/log/record_format.h"
#include "config/check.h"

namespace secondsight::cache::log {

SegmentWriter::SegmentWriter(std::shared_ptr<Segment> segment, std::uint64_t seed_id) noexcept
    : segment_(std::move(segment)), seed_id_(seed_id) {}

Result<std::unique_ptr<SegmentWriter>> SegmentWriter::start(std::shared_ptr<Segment> segment,
                                                            std::uint64_t seed_id) {
  if (auto reserved = segment->file().reserve(segment->bytes()); !reserved) return reserved.error();
  SegmentHeader header;
  header.number = segment->number();
  header.seed_id = seed_id;
  header.segment_bytes = static_cast<std::uint32_t>(segment->bytes());
  const auto bytes = encode_segment_header(header);
  const std::array<std::span<const std::byte>, 1> pieces{bytes};
  if (auto written = segment->file().write_at(0, pieces); !written) return written.error();
  return std::unique_ptr<SegmentWriter>(new SegmentWriter(std::move(segment), seed_id));
}

bool SegmentWriter::fits(std::uint64_t record_bytes) const noexcept {
  return record_bytes <= room_bytes();
}

std::uint64_t SegmentWriter::room_bytes() const noexcept {
  const std::uint64_t taken =
      contents_.records_end_bytes + footer_bytes(contents_.entries.size() + 1);
  return segment_->bytes() - std::min(taken, segment_->bytes());
}

Result<Location> SegmentWriter::append(const RecordView& record) {
  static constexpr std::array<std::byte, kRecordAlignment> kPadding{};
  const std::uint64_t record_bytes = encoded_bytes(record);
  CHECK(fits(record_bytes));
  const std::uint32_t offset = contents_.records_end_bytes;
  encode_front(record, {seed_id_, segment_->number(), offset}, front_);
  pieces_.assign(1, front_);
  std::uint64_t bytes = front_.size();
  for (const auto piece : record.body) {
    pieces_.push_back(piece);
    bytes += piece.size();
  }
  pieces_.push_back(std::span(kPadding).first(record_bytes - bytes));

  has_unsynced_ = true;
  if (auto written = segment_->file().write_at(offset, pieces_); !written) return written.error();
  const Location location{segment_->number(), offset, static_cast<std::uint32_t>(record_bytes)};
  contents_.entries.push_back({record.fingerprint, offset, location.length_bytes, record.kind});
  contents_.records_end_bytes = offset + location.length_bytes;
  return location;
}

Result<> SegmentWriter::sync() {
  if (auto synced = segment_->file().sync(); !synced) return synced;
  has_unsynced_ = false;
  return {};
}

std::uint64_t write_footer(Segment& segment, std::uint64_t seed_id, const Footer& contents) {
  const auto bytes = encode_footer(contents, seed_id, segment.number());
  const std::array<std::span<const std::byte>, 1> pieces{bytes};
  const bool is_done = segment.file().write_at(segment.bytes() - bytes.size(), pieces).has_value();
  return is_done ? bytes.size() : 0;
}

}  // namespace secondsight::cache::log
