#include "cache/fill.h"

#include <algorithm>

namespace secondsight::cache {

bool Fill::has_beginning() const {
  const std::lock_guard lock(mutex_);
  return parts_.empty() || log_.has(parts_.front().record);  // the oldest segment goes first
}

Result<std::size_t> Fill::read(std::uint64_t offset, std::span<std::byte> out,
                               ReadMode mode) const {
  log::Location record;
  std::uint64_t part_offset = 0;
  std::uint64_t part_bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    std::uint64_t first = 0;
    const log::PartRef* found = nullptr;
    for (const log::PartRef& part : parts_) {
      if (offset < first + part.body_bytes) {
        found = &part;
        break;
      }
      first += part.body_bytes;
    }
    if (found == nullptr) return make_error_code(boost::system::errc::invalid_argument);
    record = found->record;
    part_offset = offset - first;
    part_bytes = found->body_bytes;
  }
  auto reader = log_.open_object(record, mode);
  if (!reader) return reader.error();
  const auto size = std::min<std::uint64_t>(out.size(), part_bytes - part_offset);
  if (auto read = (*reader)->read_body(part_offset, out.first(size), mode); !read)
    return read.error();
  return size;
}

void Fill::note_written(const log::PartRef& part) {
  {
    const std::lock_guard lock(mutex_);
    parts_.push_back(part);
  }
  written_bytes_.fetch_add(part.body_bytes, std::memory_order_release);
  on_progress_();
}

void Fill::note_failed() {
  failed_.store(true, std::memory_order_release);
  on_progress_();
}

void Fill::note_committed() {
  committed_.store(true, std::memory_order_release);
  on_progress_();
}

std::vector<log::PartRef> Fill::parts() const {
  const std::lock_guard lock(mutex_);
  return parts_;
}

}  // namespace secondsight::cache
