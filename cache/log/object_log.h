#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cache/log/object_reader.h"
#include "cache/log/record.h"
#include "cache/log/segment.h"
#include "config/file_system.h"
#include "config/result.h"

namespace secondsight::cache::log {

/// What the log has done since it was opened, for metrics. Bytes as handed to the file system.
struct LogCounters {
  std::uint64_t record_bytes = 0, footer_bytes = 0, header_bytes = 0;
  std::uint64_t records = 0, segments_created = 0, segments_reclaimed = 0;
};

/// One record as a segment lists it.
struct LoggedRecord {
  admission::Fingerprint fingerprint;
  RecordKind kind = RecordKind::Object;
  Location location;
};

/// An append-only ring of equal segments on one FileSystem; format in docs/on-disk-format.md.
///
/// open -> [append | sync | start_over]* -> close. When the ring is full, append removes the oldest
/// segment first; a segment that a reader still holds counts against the capacity until it is let
/// go. A record is whole or absent: any damage is found by checksum. Sealed segments carry a footer
/// of their records, so that opening reads footers and scans only the tail (and segments whose
/// footer is damaged). No state per record is kept in RAM but for the open segment's. Threads:
/// open_object(), counters() and bytes_on_disk() from any thread, also while segments are removed.
/// The rest: one writer. The file system outlives the log and its readers.
class ObjectLog {
 public:
  /// Syncing costs milliseconds however little there is to sync: small segments are sealed
  /// together, as many as hold this. On the smallest disks they are reclaimed before it comes to
  /// that.
  static constexpr std::uint64_t kSealBytes = 16U << 20;
  struct Options {
    std::uint64_t capacity_bytes = 0;  // of all segment files together, never exceeded
    std::uint32_t segment_bytes = 0;   // see segment_bytes_for()
    std::uint64_t seed_id = 0;  // FingerprintSeed::id(): segments of another seed are removed
    std::uint64_t seal_bytes = kSealBytes;  // 0: each segment at once
  };
  /// 1/64 of the capacity, at most 256 MiB; where that is below 1 MiB, 1/16 of it between 256 KiB
  /// and 1 MiB; a little less where that uses up the capacity. A multiple of 4 KiB.
  static std::uint32_t segment_bytes_for(std::uint64_t capacity_bytes) noexcept;

  /// Called for each intact record, oldest first: the last one of a fingerprint counts. A Tombstone
  /// comes as one too, and so does, as a Tombstone, a record found damaged behind a good header:
  /// what it replaced must not come back. A damaged Purge stays one. A Part is none of an index's
  /// business. A LargeObject comes even if a part of it is gone: open_object() and read_body() say
  /// so.
  using OnRecord = std::function<void(const admission::Fingerprint&, RecordKind, const Location&)>;
  /// Called before the first record, with about how many there will be.
  using OnExpected = std::function<void(std::uint64_t records)>;
  /// Called for each record that a reclaimed segment held, once it is gone. A segment that cannot
  /// be read goes unnamed; open_object() then says that it is gone.
  using OnReclaimed = std::function<void(const admission::Fingerprint&, const Location&)>;

  /// Replays every intact record into `recovered`. A torn tail ends its segment; damage elsewhere
  /// costs that record only. Segments of an older format and of another seed are removed, and the
  /// oldest ones while there are more than the capacity. Never fails for damaged content. Errors:
  /// not_supported (written by a newer version: nothing was touched); invalid_argument (capacity
  /// below 4 segments, segments below 4 KiB); I/O.
  static Result<std::unique_ptr<ObjectLog>> open(FileSystem&, const Options&,
                                                 const OnRecord& recovered,
                                                 const OnExpected& expected = {});
  /// One that is not open: it holds nothing, and append() fails with not_connected. Errors:
  /// invalid_argument, as above.
  static Result<std::unique_ptr<ObjectLog>> closed(FileSystem&, const Options&);
  ~ObjectLog();

  bool is_open() const noexcept;
  /// Its directory, looked after: FileSystem::attach().
  Result<FileSystem::Attached> attach();
  /// Opens one that is not, as open() does. After an error it is as closed as before; records may
  /// have been recovered, and come again the next time.
  Result<> open(const OnRecord& recovered, const OnExpected& expected = {});
  /// Removes every segment file in the directory, of whatever seed or older format, lets go of all
  /// that the log holds, and is open and empty then. For a directory that is another one now, or
  /// whose records may not be used any more. Errors: not_supported (a newer version's are there:
  /// nothing was touched), I/O. After an error append() fails with not_connected until it has
  /// succeeded; what the log holds can be read on.
  Result<> start_over(const OnReclaimed&);

  /// The largest body one record may carry: 4 MiB, or less where segments are small (a quarter of
  /// one).
  std::uint32_t part_body_bytes_max() const noexcept;

  /// Errors: no_space_on_device, I/O (the record is absent then, later appends go to a fresh
  /// segment); device_or_resource_busy (every old segment is held by readers); value_too_large
  /// (does not fit). A disk found full costs the oldest segment, once until there is space again.
  Result<Location> append(const RecordView&, const OnReclaimed&);
  /// Makes everything appended so far durable, replayed records included. After an error what was
  /// appended since the last success may be lost in a power cut, and no later sync changes that:
  /// append it again. An error that came up inside an append is reported by the next sync.
  Result<> sync();
  /// Seals the open segment with its footer and syncs: the next open() then scans nothing.
  Result<> close();

  /// Errors: no_such_file_or_directory (reclaimed since), bad_message (damaged), I/O,
  /// resource_unavailable_try_again (PageCacheOnly).
  Result<std::unique_ptr<ObjectReader>> open_object(const Location&, ReadMode) const;

  /// Whether the ring has not given up its segment yet. From any thread; no I/O.
  bool has(const Location&) const;

  /// All of them, sealed or not, for whoever goes through them beside the writer (segment_scrub.h).
  std::shared_ptr<const SegmentTable> segments() const noexcept;

  /// The segment that goes when the open one is full. Empty: there is room for another. The
  /// writer's thread, as the next two.
  std::optional<std::uint32_t> next_to_go() const;
  /// The largest record that the open segment still takes, all counted. 0: none is open.
  std::uint64_t room_bytes() const noexcept;
  /// What a segment holds, in order; a damaged record as a Tombstone. Errors: I/O,
  /// no_such_file_or_directory.
  Result<std::vector<LoggedRecord>> records_of(std::uint32_t segment) const;

  std::uint32_t segment_bytes() const noexcept;
  LogCounters counters() const noexcept;
  std::uint64_t bytes_on_disk() const noexcept;  // size of all segment files, held ones included

 private:
  ObjectLog();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace secondsight::cache::log
