#include "cache/log/object_reader.h"

#include <algorithm>
#include <utility>

#include "config/check.h"

namespace secondsight::cache::log {

using boost::system::errc::make_error_code;
namespace errc = boost::system::errc;

Result<std::unique_ptr<ObjectReader>> ObjectReader::open(std::shared_ptr<const SegmentTable> table,
                                                         const Location& location, ReadMode mode) {
  auto segment = table->find(location.segment);
  if (!segment) return make_error_code(errc::no_such_file_or_directory);
  auto record = RecordReader::open(std::move(segment), table->seed_id(), location, mode);
  if (!record) return record.error();

  std::unique_ptr<ObjectReader> reader(new ObjectReader);
  reader->head_ = record->decode_head();
  reader->table_ = std::move(table);
  if (reader->head_.kind == RecordKind::LargeObject) {
    if (auto all_there = reader->check_parts_exist(); !all_there) return all_there.error();
    std::uint64_t end = 0;
    for (const PartRef& part : reader->head_.parts)
      reader->part_ends_bytes_.push_back(end += part.body_bytes);
  } else {
    reader->record_ = std::move(*record);
  }
  return reader;
}

/// A part that is gone is better found before the response's head has been sent.
Result<> ObjectReader::check_parts_exist() const {
  std::uint32_t last_found = 0;  // neighbours mostly share a segment
  for (const PartRef& part : head_.parts) {
    if (part.record.segment == last_found) continue;
    if (!table_->find(part.record.segment)) return make_error_code(errc::no_such_file_or_directory);
    last_found = part.record.segment;
  }
  return {};
}

Result<> ObjectReader::open_part(std::size_t index, ReadMode mode) {
  const PartRef& part = head_.parts[index];
  auto segment = table_->find(part.record.segment);
  if (!segment) return make_error_code(errc::no_such_file_or_directory);
  auto record = RecordReader::open(std::move(segment), table_->seed_id(), part.record, mode);
  if (!record) return record.error();
  const RecordKind kind = record->header().kind;
  if ((kind != RecordKind::Part && kind != RecordKind::Object) ||
      record->header().body_bytes != part.body_bytes)
    return make_error_code(errc::bad_message);
  record_ = std::move(*record);
  part_ = index;
  return {};
}

Result<> ObjectReader::read_body(std::uint64_t offset, std::span<std::byte> out, ReadMode mode) {
  CHECK(offset <= head_.body_bytes && out.size() <= head_.body_bytes - offset);
  if (head_.kind != RecordKind::LargeObject) return record_->read_body(offset, out, mode);

  while (!out.empty()) {
    const auto end = std::upper_bound(part_ends_bytes_.begin(), part_ends_bytes_.end(), offset);
    const auto index = static_cast<std::size_t>(end - part_ends_bytes_.begin());
    const std::uint64_t start = *end - head_.parts[index].body_bytes;
    if (part_ != index) {
      if (auto opened = open_part(index, mode); !opened) return opened;
    }
    const std::size_t taken = std::min<std::uint64_t>(out.size(), *end - offset);
    if (auto read = record_->read_body(offset - start, out.first(taken), mode); !read) return read;
    offset += taken;
    out = out.subspan(taken);
  }
  return {};
}

}  // namespace secondsight::cache::log
