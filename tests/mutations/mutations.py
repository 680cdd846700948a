"""What protects the store, and each line of it taken away. See run, beside this file, and docs/testing.md."""

from dataclasses import dataclass

# Programs below build/tests, the quick ones first; the first that fails ends a mutant.
TESTS = [
    "cache/log/log_format_test",
    "config/file_system_test",
    "cache/log/object_log_test",
    "cache/log/object_log_recovery_test",
    "cache/cache_memory_test",
    "cache/log/log_verify_test",
    "cache/cache_test",
    "cache/log/object_log_crash_test",
    "cache/log/object_log_model_test",
    "cache/store_crash_test",
]


@dataclass
class Mutation:
    name: str
    path: str
    old: str  # exactly once in the file
    new: str
    survives: str = ""  # why no test can notice, where none can


RECORD = "cache/log/record_format.cc"
SEGMENT = "cache/log/segment_format.cc"
CHECKSUM = "cache/log/checksum.h"
LOG = "cache/log/object_log.cc"
RING = "cache/log/segment_ring.cc"
SCAN = "cache/log/segment_scan.cc"
WALK = "cache/log/segment_walk.cc"
WRITER = "cache/log/segment_writer.cc"
TABLE = "cache/log/segment.cc"
STORE = "cache/store_writer.cc"

MUTATIONS = [
    # Checksums, and what they are bound to.
    Mutation("record header: any checksum will do", RECORD,
             "if (header_checksum != checksum(bytes.subspan(8, kRecordHeaderBytes - 8), place.header_seed()))",
             "if (header_checksum == 0)"),
    Mutation("front: any checksum will do", RECORD,
             "return checksum(front.subspan(kRecordHeaderBytes), place.front_seed()) == header.front_checksum;",
             "return true;"),
    Mutation("body block: any checksum will do", RECORD,
             "return checksum(bytes, place.block_seed(block)) == load_little_endian<std::uint64_t>(expected);",
             "return true;"),
    Mutation("footer: any checksum will do", SEGMENT,
             "if (checksum(bytes.first(bytes.size() - 8), footer_seed(seed_id, segment)) != expected)",
             "if (false)"),
    Mutation("segment header: any checksum will do", SEGMENT,
             "if (decoder.take<std::uint64_t>() != checksum(bytes.first(kSegmentHeaderBytes - 8), 0))",
             "if (false)"),
    Mutation("checksums know no installation", CHECKSUM,
             "return seed_id + (std::uint64_t{segment} << 32) + offset_bytes;",
             "return (std::uint64_t{segment} << 32) + offset_bytes;"),
    Mutation("checksums know no segment", CHECKSUM,
             "return seed_id + (std::uint64_t{segment} << 32) + offset_bytes;",
             "return seed_id + offset_bytes;"),
    Mutation("checksums know no offset", CHECKSUM,
             "return seed_id + (std::uint64_t{segment} << 32) + offset_bytes;",
             "return seed_id + (std::uint64_t{segment} << 32);"),
    Mutation("blocks may change places", CHECKSUM,
             "return header_seed() + (std::uint64_t{block} + 2) * kRoleStep;",
             "return header_seed() + std::uint64_t{block} * 0 + 2 * kRoleStep;"),
    Mutation("a record may have another length than the index says", "cache/log/record_reader.cc",
             "if (!header || header->record_bytes() != location_.length_bytes)",
             "if (!header)"),
    Mutation("a part may have another length than its object says", "cache/log/object_reader.cc",
             "      record->header().body_bytes != part.body_bytes)",
             "      false)"),
    Mutation("a part that is gone is found out while it is sent", "cache/log/object_reader.cc",
             "if (auto all_there = reader->check_parts_exist(); !all_there) return all_there.error();", ""),
    Mutation("a fingerprint is proof of a key", "cache/cache.cc",
             "if (record.key != key.text()) return gone();", ""),

    # Syncs.
    Mutation("sync() does not sync the open segment", WRITER,
             "if (auto synced = segment_->file().sync(); !synced) return synced;", ""),
    Mutation("sync() does not sync ended segments", LOG,
             "const auto synced = segment->file().sync();\n    if (!synced) lost_records_error_",
             "const Result<> synced;\n    if (!synced) lost_records_error_"),
    Mutation("footers are written before the records are synced", LOG,
             "void ObjectLog::Impl::seal_ended() {\n  sync_ended();",
             "void ObjectLog::Impl::seal_ended() {"),
    Mutation("what a killed process left is sealed unsynced", LOG,
             "if (auto synced = segment.file().sync(); !synced)\n      lost_records_error_",
             "if (const Result<> synced; !synced)\n      lost_records_error_"),
    Mutation("sync() does not sync the directory", LOG,
             "  if (auto synced = ring_.sync_directory(); !synced) return synced;\n  if (const auto error",
             "  if (const auto error"),
    Mutation("close() leaves footers to the page cache", LOG,
             "    if (auto synced = segment->file().sync(); !synced) return synced;\n  }\n  return impl_->sync();",
             "  }\n  return impl_->sync();"),
    Mutation("a segment whose sync failed is written on", LOG,
             "      writer_.reset();\n      return synced;",
             "      return synced;"),
    Mutation("a sync that failed inside an append is not told", LOG,
             "if (const auto error = std::exchange(lost_records_error_, {})) return error;", ""),

    # The order of removals.
    Mutation("removals are never synced before others", RING,
             "  if (!has_unsynced_removal_) return false;",
             "  return false;"),
    Mutation("removals of an earlier process count as durable", RING,
             "  directory_is_dirty_ = true;\n  has_unsynced_removal_ = true;\n  is_removal_unknown_ = true;\n  std::vector",
             "  std::vector"),
    Mutation("what removed segments held is not remembered", RING,
             "for (const FooterEntry& entry : contents->entries) removed_.insert(entry.fingerprint);", ""),
    Mutation("a segment of unknown contents is removed at once", RING,
             "if (is_removal_unknown_ || contents == nullptr) return true;",
             "if (is_removal_unknown_) return true;"),

    # The ring.
    Mutation("the newest segment is reclaimed first", TABLE,
             "return segments_.empty() ? nullptr : segments_.front();",
             "return segments_.empty() ? nullptr : segments_.back();"),
    Mutation("one segment more than the capacity", "cache/log/segment_ring.h",
             "return bytes_on_disk() + options_.segment_bytes <= options_.capacity_bytes;",
             "return bytes_on_disk() <= options_.capacity_bytes;"),
    Mutation("a start keeps more than the capacity", RING,
             "for (; bytes_on_disk() > options_.capacity_bytes; ++first_kept) {",
             "for (; false; ++first_kept) {"),
    Mutation("held segments take up no space", TABLE,
             "  ledger_->fetch_sub(bytes_);\n}",
             "}"),
    Mutation("all is given up while readers hold all", LOG,
             "if (!ring_.table()->any_unheld()) return make_error_code(errc::device_or_resource_busy);", ""),
    Mutation("a full disk costs a segment for each try", LOG,
             "!has_reclaimed_for_space_ &&", ""),
    Mutation("records may reach into the footer's place", WRITER,
             "contents_.records_end_bytes + footer_bytes(contents_.entries.size() + 1);",
             "contents_.records_end_bytes;"),
    Mutation("appending goes on behind a write that failed", LOG,
             "    retire_segment();\n    seal_ended();  // a scan would take what the failed write left for a removal\n",
             ""),
    Mutation("what a failed write left passes for a removal", LOG,
             "    seal_ended();  // a scan would take what the failed write left for a removal\n", ""),

    # Opening.
    Mutation("segments are replayed newest first", RING,
             "return a.number < b.number;", "return a.number > b.number;"),
    Mutation("a newer version is opened", RING,
             "if (file.header && file.header->version > kFormatVersion)", "if (false)"),
    Mutation("another installation's segments are kept", RING,
             "(header->version < kFormatVersion || header->seed_id != options_.seed_id)",
             "(header->version < kFormatVersion)",
             survives="nothing in it verifies, as every checksum is bound to the seed, and a segment without records "
                      "is removed all the same"),
    Mutation("an older version is kept", RING,
             "(header->version < kFormatVersion || header->seed_id != options_.seed_id)",
             "(header->seed_id != options_.seed_id)"),
    Mutation("a damaged record is skipped, and what it replaced comes back", SCAN,
             "return RecordKind::Tombstone;", "return std::nullopt;"),
    Mutation("a damaged part removes its object", SCAN,
             "if (kind == RecordKind::Part) return std::nullopt;", ""),
    Mutation("a scan believes headers", SCAN,
             "if (contents == Contents::Intact || kind == RecordKind::Purge) return kind;", "return kind;"),
    Mutation("a damaged purge counts as a removal of its own name", SCAN,
             "if (contents == Contents::Intact || kind == RecordKind::Purge) return kind;",
             "if (contents == Contents::Intact) return kind;"),
    Mutation("a scan ends at the first damage", SCAN,
             "if (gap == Gap::End) break;", "if (gap != Gap::None) break;"),
    Mutation("a record may reach beyond its file", WALK,
             "return header->record_bytes() <= end_bytes - place.offset_bytes ? Gap::None : Gap::Damage;",
             "return Gap::None;"),
    Mutation("tombstones are not replayed", "cache/replay.cc",
             "if (record.entry.kind == log::RecordKind::Tombstone)", "if (false)"),
    Mutation("two processes on one directory", "config/posix_file_system.cc",
             "if (retry([&] { return calls_.flock(fresh->lock, LOCK_EX | LOCK_NB); }) != 0)", "if (false)"),

    # The writer.
    Mutation("a removal writes no tombstone", STORE,
             "if (!write_tombstone(job.key)) owe(job.key);", ""),
    Mutation("tombstones are not synced", STORE,
             "  unsynced_tombstones_.push_back(key);\n  return true;\n}",
             "  return true;\n}"),
    Mutation("markers that outdate others are not synced", STORE,
             "if (entry && job.is_certain) unsynced_markers_.push_back(job.object);", ""),
    Mutation("a removal that could not be written is forgotten", STORE,
             "if (!write_tombstone(job.key)) owe(job.key);", "write_tombstone(job.key);"),
    Mutation("a removal whose sync failed is forgotten", STORE,
             "for (const admission::Fingerprint& key : tombstones) owe(key);", ""),
    Mutation("an owed removal hides what was stored since", STORE,
             "if (!index_.find(key)) return !store_.failed() && write_tombstone(key);",
             "return !store_.failed() && write_tombstone(key);"),
    Mutation("what was removed in the queue is written and found", STORE,
             "return found != pending_.end() && found->second == object;", "return true;"),
    Mutation("what was removed while it was written is found", STORE,
             "if (!wanted || !entry) {", "if (!entry) {",
             survives="only until the removal's own job, which is next in the queue, takes it out"),
    Mutation("a fill that was removed meanwhile is found", STORE,
             "if (wanted && entry) index_.insert(fill->key().fingerprint(), *entry);",
             "if (entry) index_.insert(fill->key().fingerprint(), *entry);",
             survives="likewise"),
    Mutation("a new head revives a body that was removed", STORE,
             "return current && current->location == job.old.location;", "return true;"),
    Mutation("a copy replaces what was stored meanwhile", "cache/index.cc",
             "if (value == nullptr || unpack(*value).location != old) return false;",
             "if (value == nullptr) return false;"),
    Mutation("reclaim takes what was stored since out of the index", "cache/index.cc",
             "if (value == nullptr || unpack(*value).location != location) return false;",
             "if (value == nullptr) return false;"),
]
