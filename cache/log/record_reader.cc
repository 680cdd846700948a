#include "cache/log/record_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "config/check.h"

namespace secondsight::cache::log {
namespace {

using boost::system::errc::make_error_code;
namespace errc = boost::system::errc;

// One read brings the front and a first block: most objects whole.
constexpr std::size_t kFirstReadBytes = kBlockBytes + 4 * 1024;

}  // namespace

Result<RecordReader> RecordReader::open(std::shared_ptr<const Segment> segment,
                                        std::uint64_t seed_id, const Location& location,
                                        ReadMode mode) {
  if (location.length_bytes < kRecordHeaderBytes) return make_error_code(errc::bad_message);
  RecordReader reader;
  reader.segment_ = std::move(segment);
  reader.place_ = {seed_id, location.segment, location.offset_bytes};
  reader.location_ = location;
  if (auto done = reader.read_front(mode); !done) return done.error();
  if (auto done = reader.verify_buffered_blocks(); !done) return done.error();
  if (reader.buffered_blocks_ == reader.header_.block_count()) reader.segment_.reset();
  return reader;
}

Result<> RecordReader::read_at(std::uint64_t offset_in_record, std::span<std::byte> out,
                               ReadMode mode) const {
  auto read = segment_->file().read_at(location_.offset_bytes + offset_in_record, out, mode);
  if (!read) return read.error();
  if (*read != out.size()) return make_error_code(errc::bad_message);  // the file was cut off
  return {};
}

Result<> RecordReader::read_front(ReadMode mode) {
  buffer_bytes_ = std::min<std::size_t>(location_.length_bytes, kFirstReadBytes);
  buffer_ = std::make_unique_for_overwrite<std::byte[]>(buffer_bytes_);
  if (auto read = read_at(0, {buffer_.get(), buffer_bytes_}, mode); !read) return read;

  const auto header = decode_header({buffer_.get(), buffer_bytes_}, place_);
  if (!header || header->record_bytes() != location_.length_bytes)
    return make_error_code(errc::bad_message);
  header_ = *header;
  const std::size_t front_bytes = header_.front_bytes();
  if (front_bytes > buffer_bytes_) {
    auto longer = std::make_unique_for_overwrite<std::byte[]>(front_bytes);
    std::memcpy(longer.get(), buffer_.get(), buffer_bytes_);
    const std::span<std::byte> rest{longer.get() + buffer_bytes_, front_bytes - buffer_bytes_};
    if (auto read = read_at(buffer_bytes_, rest, mode); !read) return read;
    buffer_ = std::move(longer);
    buffer_bytes_ = front_bytes;
  }
  if (!front_is_intact(front(), header_, place_)) return make_error_code(errc::bad_message);
  return {};
}

Result<> RecordReader::verify_buffered_blocks() {
  std::size_t at = front().size();
  for (std::uint32_t i = 0; i < header_.block_count(); ++i) {
    const std::size_t bytes = header_.block_bytes(i);
    if (at + bytes > buffer_bytes_) break;
    if (!block_is_intact({buffer_.get() + at, bytes}, i, front(), header_, place_))
      return make_error_code(errc::bad_message);
    at += bytes;
    ++buffered_blocks_;
  }
  return {};
}

Result<> RecordReader::read_body(std::uint64_t offset, std::span<std::byte> out, ReadMode mode) {
  CHECK(offset <= header_.body_bytes && out.size() <= header_.body_bytes - offset);
  while (!out.empty()) {
    const auto index = static_cast<std::uint32_t>(offset / kBlockBytes);
    const auto skip = std::size_t{offset % kBlockBytes};
    std::size_t taken = std::min<std::size_t>(out.size(), header_.block_bytes(index) - skip);
    const bool is_whole = taken == header_.block_bytes(index);
    if (is_whole && index >= buffered_blocks_ && !(block_ && block_index_ == index)) {
      const bool reaches_end = out.size() == header_.body_bytes - offset;
      if (!reaches_end)
        taken = out.size() / kBlockBytes * kBlockBytes;
      else
        taken = out.size();
      if (auto read = read_whole_blocks(index, out.first(taken), mode); !read) return read;
    } else {
      const auto bytes = block(index, mode);
      if (!bytes) return bytes.error();
      std::memcpy(out.data(), bytes->data() + skip, taken);
    }
    offset += taken;
    out = out.subspan(taken);
  }
  return {};
}

/// Straight to where they are wanted, with one read for all.
Result<> RecordReader::read_whole_blocks(std::uint32_t first, std::span<std::byte> out,
                                         ReadMode mode) const {
  const std::uint64_t body_at = front().size() + std::uint64_t{first} * kBlockBytes;
  if (auto read = read_at(body_at, out, mode); !read) return read;
  for (std::uint32_t i = first; !out.empty(); ++i) {
    const auto bytes = out.first(header_.block_bytes(i));
    if (!block_is_intact(bytes, i, front(), header_, place_))
      return make_error_code(errc::bad_message);
    out = out.subspan(bytes.size());
  }
  return {};
}

Result<std::span<const std::byte>> RecordReader::block(std::uint32_t index, ReadMode mode) {
  const std::size_t bytes = header_.block_bytes(index);
  const std::uint64_t at = front().size() + std::uint64_t{index} * kBlockBytes;
  if (index < buffered_blocks_) return std::span<const std::byte>{buffer_.get() + at, bytes};
  if (!block_ || block_index_ != index) {
    auto fresh = std::move(block_);
    if (!fresh) fresh = std::make_unique_for_overwrite<std::byte[]>(kBlockBytes);
    if (auto read = read_whole_blocks(index, {fresh.get(), bytes}, mode); !read)
      return read.error();
    block_ = std::move(fresh);
    block_index_ = index;
  }
  return std::span<const std::byte>{block_.get(), bytes};
}

}  // namespace secondsight::cache::log
