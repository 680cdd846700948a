#include "cache/log/segment_ring.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "cache/log/segment_format.h"

namespace secondsight::cache::log {
namespace {

using boost::system::errc::make_error_code;
namespace errc = boost::system::errc;

constexpr std::size_t kRemovedMax = 64U << 10;  // remembered fingerprints: 16 bytes each

struct FoundFile {
  std::uint32_t number = 0;
  std::uint64_t file_bytes = 0;
  std::optional<SegmentHeader> header;  // empty: damaged
  std::unique_ptr<File> file;
};

Result<FoundFile> open_file(FileSystem& files, const std::string& name, std::uint32_t number) {
  FoundFile found;
  found.number = number;
  auto file = files.open(name);
  if (!file) return file.error();
  found.file = std::move(*file);
  auto size = found.file->size();
  if (!size) return size.error();
  found.file_bytes = *size;
  std::array<std::byte, kSegmentHeaderBytes> bytes{};
  auto read = found.file->read_at(0, bytes, ReadMode::Blocking);
  if (!read) return read.error();
  found.header = decode_segment_header(std::span(bytes).first(*read));
  // A copy under another name: nothing in it is valid there.
  if (found.header && found.header->number != number) found.header.reset();
  return found;
}

Result<std::vector<FoundFile>> open_all(FileSystem& files) {
  auto names = files.list();
  if (!names) return names.error();
  std::vector<FoundFile> all;
  for (const std::string& name : *names) {
    const auto number = parse_segment_file_name(name);
    if (!number) continue;
    auto found = open_file(files, name, *number);
    if (!found) return found.error();
    all.push_back(std::move(*found));
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  return all;
}

/// Errors: not_supported where any is of a newer format.
Result<std::vector<FoundFile>> open_all_understood(FileSystem& files) {
  auto all = open_all(files);
  if (!all) return all;
  for (const FoundFile& file : *all)
    if (file.header && file.header->version > kFormatVersion)
      return make_error_code(errc::not_supported);
  return all;
}

/// A file with the name of a segment that none of ours can be: it has no good header, and a number
/// far beyond, or a length above, that of any file that has one. (A segment whose header is damaged
/// is near.)
class Foreign {
 public:
  Foreign(const std::vector<FoundFile>& all, std::uint64_t segment_bytes) : bytes_(segment_bytes) {
    for (const FoundFile& file : all) {
      if (!file.header) continue;
      number_ = std::max(number_, file.number);
      bytes_ = std::max<std::uint64_t>(bytes_, file.header->segment_bytes);
    }
  }
  bool operator()(const FoundFile& file) const noexcept {
    constexpr std::uint64_t kFar = 1024;
    return !file.header && (file.number > number_ + kFar || file.file_bytes > bytes_);
  }

 private:
  std::uint32_t number_ = 0;
  std::uint64_t bytes_;
};

}  // namespace

SegmentRing::SegmentRing(FileSystem& files, const Options& options)
    : files_(files), options_(options), table_(std::make_shared<SegmentTable>(options.seed_id)) {}

Result<std::vector<SegmentRing::Existing>> SegmentRing::find_existing() {
  auto found = open_all_understood(files_);
  if (!found) return found.error();
  // An earlier process may have ended, by a signal say, before it synced the directory.
  directory_is_dirty_ = true;
  has_unsynced_removal_ = true;
  is_removal_unknown_ = true;
  std::vector<Existing> existing;
  const Foreign is_foreign(*found, options_.segment_bytes);
  for (FoundFile& file : *found) {
    if (is_foreign(file)) {
      if (auto removed = files_.remove(segment_file_name(file.number)); !removed)
        return removed.error();
      continue;
    }
    next_number_ = file.number + 1;  // 0 after the last number: start_segment() refuses
    const auto& header = file.header;
    if (header && (header->version < kFormatVersion || header->seed_id != options_.seed_id)) {
      if (auto removed = remove_file(file.number, nullptr); !removed) return removed.error();
      continue;
    }
    const std::uint64_t sealed_bytes = header ? header->segment_bytes : 0;
    existing.push_back({std::make_shared<Segment>(std::move(file.file), file.number,
                                                  std::max(file.file_bytes, sealed_bytes), ledger_),
                        sealed_bytes >= file.file_bytes});
  }
  auto first_kept = existing.begin();
  for (; bytes_on_disk() > options_.capacity_bytes; ++first_kept) {
    if (auto removed = remove_file(first_kept->segment->number(), nullptr); !removed)
      return removed.error();
    first_kept->segment.reset();
  }
  existing.erase(existing.begin(), first_kept);
  return existing;
}

Result<> SegmentRing::remove_all_files() {
  auto found = open_all_understood(files_);
  if (!found) return found.error();
  has_unsynced_removal_ = true;
  is_removal_unknown_ = true;
  for (const FoundFile& file : *found) {
    if (auto removed = remove_file(file.number, nullptr); !removed) return removed;
    if (file.header && next_number_ != 0) next_number_ = std::max(next_number_, file.number + 1);
  }
  directory_is_dirty_ = true;
  return sync_directory();
}

Result<std::unique_ptr<SegmentWriter>> SegmentRing::start_segment() {
  if (next_number_ == 0) return make_error_code(errc::value_too_large);
  const std::uint32_t number = next_number_++;
  auto file = files_.create(segment_file_name(number));
  if (!file) return file.error();
  directory_is_dirty_ = true;
  auto segment =
      std::make_shared<Segment>(std::move(*file), number, options_.segment_bytes, ledger_);
  table_->push_back(segment);
  auto writer = SegmentWriter::start(segment, options_.seed_id);
  if (writer) return writer;
  // If it cannot be removed either, it stays in the table: counted, and reclaimed in its turn.
  static_cast<void>(discard(*segment));
  return writer;
}

Result<> SegmentRing::remove(const Segment& segment, const Footer* contents) {
  const std::uint32_t number = segment.number();
  if (auto removed = remove_file(number, contents); !removed) return removed;
  table_->erase(number);
  return {};
}

Result<> SegmentRing::discard(const Segment& segment) {
  const std::uint32_t number = segment.number();
  if (auto removed = files_.remove(segment_file_name(number)); !removed) return removed;
  if (table_->find(number)) table_->erase(number);
  return {};
}

/// A power cut may undo what the directory has not synced. It could then bring back an older
/// segment without a younger one that was removed after it, whose tombstones and newer versions it
/// needs. So a segment that shares a fingerprint with one whose removal is not durable waits until
/// that is, and so does one with a purge, which may concern any. Others need not: on small disks a
/// directory sync for each segment was most of the writer's time.
bool SegmentRing::must_sync_before_removing(const Footer* contents) const {
  if (!has_unsynced_removal_) return false;
  if (is_removal_unknown_ || contents == nullptr) return true;
  if (removed_.size() + contents->entries.size() > kRemovedMax) return true;
  return std::any_of(
      contents->entries.begin(), contents->entries.end(), [this](const FooterEntry& entry) {
        return entry.kind == RecordKind::Purge || removed_.contains(entry.fingerprint);
      });
}

Result<> SegmentRing::remove_file(std::uint32_t number, const Footer* contents) {
  if (must_sync_before_removing(contents)) {
    if (auto synced = sync_directory(); !synced) return synced;
  }
  auto removed = files_.remove(segment_file_name(number));
  if (!removed && removed.error() != errc::no_such_file_or_directory) return removed;
  directory_is_dirty_ = true;
  has_unsynced_removal_ = true;
  if (contents == nullptr || contents->entries.size() > kRemovedMax) {
    is_removal_unknown_ = true;
  } else {
    for (const FooterEntry& entry : contents->entries) removed_.insert(entry.fingerprint);
  }
  return {};
}

Result<> SegmentRing::sync_directory() {
  if (!directory_is_dirty_) return {};
  if (auto synced = files_.sync_directory(); !synced) return synced;
  directory_is_dirty_ = false;
  has_unsynced_removal_ = false;
  is_removal_unknown_ = false;
  removed_.clear();
  return {};
}

}  // namespace secondsight::cache::log
