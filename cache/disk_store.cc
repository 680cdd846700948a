#include "cache/disk_store.h"

#include <algorithm>
#include <string>

#include "cache/head_text.h"
#include "cache/log/record_format.h"
#include "config/log.h"

namespace secondsight::cache {
namespace {

using Pieces = std::vector<std::span<const std::byte>>;

log::RecordView view_of(const CacheKey& key, const ObjectHead& head, std::string_view text) {
  log::RecordView view;
  view.fingerprint = key.fingerprint();
  view.status = static_cast<std::uint16_t>(head.status);
  view.times = head.times;
  view.key = key.text();
  view.head = text;
  return view;
}

/// Bytes [first, first + size) of `chunks`.
Pieces cut(const std::vector<ChunkPtr>& chunks, std::uint64_t first, std::uint64_t size) {
  Pieces pieces;
  std::uint64_t chunk_first = 0;
  for (const ChunkPtr& chunk : chunks) {
    const std::uint64_t chunk_end = chunk_first + chunk->size();
    const std::uint64_t from = std::max(first, chunk_first);
    const std::uint64_t to = std::min(first + size, chunk_end);
    if (from < to) {
      pieces.push_back(std::span(*chunk).subspan(from - chunk_first, to - from));
    }
    chunk_first = chunk_end;
  }
  return pieces;
}

constexpr const char* kCauseWords[] = {"admitted", "refreshed", "tombstone", "reappended", "purge"};

}  // namespace

DiskStore::DiskStore(log::ObjectLog& log, Index& index, MemoryTier* memory, PurgeList& purges,
                     Metrics& metrics)
    : health_(metrics),
      opening_(log, index, purges, health_),
      log_(log),
      index_(index),
      memory_(memory),
      reinsertion_(log, index, purges),
      write_errors_(metrics.counter("secondsight_disk_write_errors_total",
                                    "Failed writes to the disk cache.")) {
  for (std::size_t i = 0; i < written_bytes_.size(); ++i) {
    written_bytes_[i] = &metrics.counter("secondsight_written_bytes_total",
                                         "Bytes handed to the disk cache's file system, by cause.",
                                         {{"cause", kCauseWords[i]}});
  }
}

std::optional<Index::Entry> DiskStore::write(const Object& object) {
  const std::uint64_t part_bytes_max = log_.part_body_bytes_max();
  if (object.body_bytes > part_bytes_max) {
    std::vector<log::PartRef> parts;
    for (std::uint64_t first = 0; first < object.body_bytes; first += part_bytes_max) {
      const std::uint64_t size = std::min(part_bytes_max, object.body_bytes - first);
      const auto part = write_part(object.key, object.body, first, size);
      if (!part) return std::nullopt;
      parts.push_back(*part);
    }
    return write_head(object.key, *object.head, parts);
  }
  const std::string text = head_text(*object.head);
  log::RecordView view = view_of(object.key, *object.head, text);
  view.kind = object.is_vary_marker ? log::RecordKind::VaryMarker : log::RecordKind::Object;
  const Pieces pieces = cut(object.body, 0, object.body_bytes);
  view.body = pieces;
  const auto at = append(view, Cause::Admitted);
  if (!at) return std::nullopt;
  return Index::Entry{*at, view.kind};
}

std::optional<log::PartRef> DiskStore::write_part(const CacheKey& key,
                                                  const std::vector<ChunkPtr>& chunks,
                                                  std::uint64_t first, std::uint64_t size) {
  log::RecordView view;
  view.kind = log::RecordKind::Part;
  view.fingerprint = key.fingerprint();
  const Pieces pieces = cut(chunks, first, size);
  view.body = pieces;
  const auto at = append(view, Cause::Admitted);
  if (!at) return std::nullopt;
  return log::PartRef{*at, size};
}

std::optional<Index::Entry> DiskStore::write_head(const CacheKey& key, const ObjectHead& head,
                                                  std::span<const log::PartRef> parts) {
  const std::string text = head_text(head);
  log::RecordView view = view_of(key, head, text);
  view.kind = log::RecordKind::LargeObject;
  view.parts = parts;
  const auto at = append(view, Cause::Admitted);
  if (!at) return std::nullopt;
  return Index::Entry{*at, view.kind};
}

std::optional<Index::Entry> DiskStore::write_refreshed(const CacheKey& key, const ObjectHead& head,
                                                       std::span<const log::PartRef> parts,
                                                       const log::Location& old) {
  const std::string text = head_text(head);
  log::RecordView view = view_of(key, head, text);
  view.kind = log::RecordKind::LargeObject;
  view.parts = parts;
  make_room(view);
  const auto current = index_.find(key.fingerprint());
  if (!current || current->location != old) return std::nullopt;
  const auto at = append_record(view, Cause::Refreshed);
  if (!at) return std::nullopt;
  return Index::Entry{*at, view.kind};
}

bool DiskStore::write_tombstone(const admission::Fingerprint& key) {
  log::RecordView view;
  view.kind = log::RecordKind::Tombstone;
  view.fingerprint = key;
  return append(view, Cause::Tombstone).has_value();
}

Result<> DiskStore::sync() {
  auto synced = log_.sync();
  if (synced) return synced;
  if (opening_.is_usable()) {
    write_errors_.add();
    health_.note_failure("sync the disk cache", synced.error());
  }
  failed_.store(true, std::memory_order_relaxed);  // what is owed because of it is then paid
  return synced;
}

DiskOpening::Found DiskStore::look_after_disk() {
  return opening_.look(
      [this](const admission::Fingerprint& fingerprint, const log::Location& location) {
        forget_reclaimed(fingerprint, location);
      });
}

void DiskStore::close() {
  if (const auto closed = log_.close(); !closed) {
    log_line(LogLevel::Warning, "cannot seal the disk cache",
             {{"error", closed.error().message()}});
  }
}

void DiskStore::make_room(const log::RecordView& view) {
  reinsertion_.before_append(log::encoded_bytes(view), [this](const log::RecordView& again) {
    return append_record(again, Cause::Reappended);
  });
}

Result<log::Location> DiskStore::append(const log::RecordView& view, Cause cause) {
  make_room(view);
  auto at = append_record(view, cause);
  if (at && cause == Cause::Admitted) reinsertion_.note_admitted(at->length_bytes);
  return at;
}

Result<log::Location> DiskStore::append_record(const log::RecordView& view, Cause cause) {
  if (!opening_.is_usable()) return make_error_code(boost::system::errc::not_connected);
  auto at = log_.append(
      view, [this](const admission::Fingerprint& fingerprint, const log::Location& location) {
        forget_reclaimed(fingerprint, location);
      });
  if (at) {
    written_bytes_[static_cast<std::size_t>(cause)]->add(at->length_bytes);
    health_.note_success();
    return at;
  }
  // A key that no segment takes is no trouble of the disk.
  if (at.error() == boost::system::errc::value_too_large) return at;
  write_errors_.add();
  failed_.store(true, std::memory_order_relaxed);
  constexpr const char* kDoing = "write to the disk cache";
  if (at.error() == boost::system::errc::device_or_resource_busy)
    health_.note_failure(kDoing, DiskTrouble::Held, "readers hold every segment");
  else
    health_.note_failure(kDoing, at.error());
  return at;
}

void DiskStore::forget_reclaimed(const admission::Fingerprint& fingerprint,
                                 const log::Location& location) {
  if (!index_.erase_at(fingerprint, location)) return;
  // What is still in memory is written again at its next use: it was hit since it was stored.
  if (memory_ != nullptr) memory_->note_not_on_disk(fingerprint);
}

}  // namespace secondsight::cache
