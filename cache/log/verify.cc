#include "cache/log/verify.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include <boost/unordered/unordered_flat_map.hpp>

#include "cache/log/record_format.h"
#include "cache/log/segment_format.h"
#include "cache/log/segment_walk.h"

namespace secondsight::cache::log {
namespace {

using admission::Fingerprint;
using admission::FingerprintHash;

bool is_found_by_key(RecordKind kind) noexcept {
  return kind == RecordKind::Object || kind == RecordKind::LargeObject ||
         kind == RecordKind::VaryMarker;
}

/// Which record is the last one of each fingerprint, as a proxy that starts would find out.
class Newest {
 public:
  void note(const Fingerprint& fingerprint, RecordKind kind, std::uint32_t segment,
            std::uint32_t offset_bytes, VerifyReport& report) {
    if (kind == RecordKind::Part || kind == RecordKind::Purge) return;
    const auto [at, is_new] = places_.try_emplace(fingerprint);
    if (!is_new && is_found_by_key(at->second.kind())) {
      --report.current_records;
      ++(kind == RecordKind::Tombstone ? report.removed_records : report.replaced_records);
    }
    if (is_found_by_key(kind)) ++report.current_records;
    at->second = Place(segment, offset_bytes, kind);
    if (!is_new) parts_.erase(fingerprint);
  }
  void note_parts(const Fingerprint& fingerprint, const Location& at, std::uint32_t parts) {
    if (is_newest(fingerprint, at)) parts_[fingerprint] = parts;
  }
  bool is_newest(const Fingerprint& fingerprint, const Location& at) const {
    const auto found = places_.find(fingerprint);
    return found != places_.end() && found->second.is_at(at);
  }
  std::uint64_t parts() const {
    std::uint64_t sum = 0;
    for (const auto& [fingerprint, parts] : parts_) sum += parts;
    return sum;
  }

 private:
  /// Records stand at multiples of 8, which leaves room for the kind.
  class Place {
   public:
    Place() = default;
    Place(std::uint32_t segment, std::uint32_t offset_bytes, RecordKind kind) noexcept
        : segment_(segment), offset_and_kind_(offset_bytes | static_cast<std::uint32_t>(kind)) {}
    RecordKind kind() const noexcept {
      return static_cast<RecordKind>(offset_and_kind_ % kRecordAlignment);
    }
    bool is_at(const Location& at) const noexcept {
      return segment_ == at.segment &&
             offset_and_kind_ / kRecordAlignment == at.offset_bytes / kRecordAlignment;
    }

   private:
    static_assert(static_cast<std::uint32_t>(RecordKind::Purge) < kRecordAlignment);
    std::uint32_t segment_ = 0;
    std::uint32_t offset_and_kind_ = 0;
  };
  boost::unordered_flat_map<Fingerprint, Place, FingerprintHash> places_;
  boost::unordered_flat_map<Fingerprint, std::uint32_t, FingerprintHash> parts_;  // large ones only
};

struct SegmentFile {
  std::uint32_t number = 0;
  std::string name;
  std::unique_ptr<File> file;
  std::uint64_t file_bytes = 0;
  std::optional<SegmentHeader> header;  // empty: damaged
  std::optional<Footer> footer;         // empty: none that is good
};

class Verifier {
 public:
  Verifier(FileSystem& files, const admission::FingerprintSeed& seed)
      : files_(files), seed_(seed), seed_id_(seed.id()) {}

  Result<VerifyReport> run() {
    auto names = files_.list();
    if (!names) return names.error();
    std::sort(names->begin(), names->end());
    for (const std::string& name : *names) {
      if (const auto number = parse_segment_file_name(name))
        check_segment(*number);
      else
        note_other(name);
    }
    report_.parts_of_current = newest_.parts();
    for (std::size_t i = 0; i < report_.damaged.size(); ++i)
      report_.damaged[i].is_current =
          newest_.is_newest(fingerprints_[i], report_.damaged[i].location);
    return std::move(report_);
  }

 private:
  bool is_ours(std::uint32_t segment) const {
    return std::binary_search(ours_.begin(), ours_.end(), segment);
  }

  void note_other(const std::string& name) {
    if (name == "seed") return;
    ++report_.other_files;
    if (report_.other_names.size() < VerifyReport::kListed) report_.other_names.push_back(name);
  }

  void note_damage(const Location& location, std::optional<RecordKind> kind, Damage damage,
                   const Fingerprint& fingerprint, std::string detail = {}) {
    ++report_.damaged_count;
    if (damage == Damage::Unreadable || damage == Damage::NewerVersion)
      report_.is_unreadable = true;
    if (report_.damaged.size() >= VerifyReport::kListed) return;
    report_.damaged.push_back({location, kind, damage, std::move(detail), false});
    fingerprints_.push_back(fingerprint);
  }
  void note_unreadable(std::uint32_t number, const boost::system::error_code& error) {
    note_damage({number, 0, 0}, std::nullopt, Damage::Unreadable, {}, error.message());
  }

  Result<SegmentFile> open(std::uint32_t number) {
    SegmentFile segment;
    segment.number = number;
    auto file = files_.open(segment_file_name(number));
    if (!file) return file.error();
    segment.file = std::move(*file);
    auto size = segment.file->size();
    if (!size) return size.error();
    segment.file_bytes = std::min<std::uint64_t>(*size, std::numeric_limits<std::uint32_t>::max());
    std::array<std::byte, kSegmentHeaderBytes> bytes{};
    auto read = segment.file->read_at(0, bytes, ReadMode::Uncached);
    if (!read) return read.error();
    segment.header = decode_segment_header(std::span(bytes).first(*read));
    return segment;
  }

  void check_segment(std::uint32_t number) {
    auto segment = open(number);
    if (!segment) return note_unreadable(number, segment.error());
    if (const auto& header = segment->header) {
      if (header->version > kFormatVersion) {
        ++report_.newer_segments;
        return note_damage({number, 0, 0}, std::nullopt, Damage::NewerVersion, {},
                           "version " + std::to_string(header->version));
      }
      if (header->version < kFormatVersion) {
        ++report_.older_segments;
        return;
      }
      if (header->seed_id != seed_id_) {
        ++report_.other_seed_segments;
        return;
      }
    }
    if (const auto checked = check_contents_of(*segment); !checked)
      note_unreadable(number, checked.error());
  }

  Result<> check_contents_of(SegmentFile& segment);
  Result<> walk(const SegmentFile& segment, SegmentWindow& window);
  Result<std::uint64_t> check_gap(const SegmentFile& segment, SegmentWindow& window,
                                  std::uint64_t offset, Gap gap);
  Result<> check_record(const SegmentFile& segment, SegmentWindow& window,
                        const RecordHeader& header, std::uint32_t offset);
  void judge_intact(const SegmentFile& segment, const RecordHeader& header, std::uint32_t offset);
  void judge_damaged(const SegmentFile& segment, const RecordHeader& header, std::uint32_t offset,
                     Damage damage);
  void take_entries_before(const SegmentFile& segment, std::uint64_t offset);
  const FooterEntry* take_entry_at(const SegmentFile& segment, std::uint32_t offset);
  void check_parts(const RecordHead& head, const Location& at);
  bool check_part(const PartRef& part, const RecordHead& head, const Location& at);
  Result<> end_unsealed(const SegmentFile& segment, SegmentWindow& window);

  FileSystem& files_;
  const admission::FingerprintSeed& seed_;
  const std::uint64_t seed_id_;
  VerifyReport report_;
  std::vector<Fingerprint> fingerprints_;  // of report_.damaged, place by place
  std::vector<std::uint32_t> ours_;        // segments of this format and seed, so far, in order
  Newest newest_;

  // Of the segment in hand.
  std::size_t next_entry_ = 0;      // of its footer: those before were compared
  std::uint64_t intact_ = 0;        // records
  std::uint64_t damaged_from_ = 0;  // unsealed: all from here on is damaged, so far; 0: nothing is
  std::vector<DamagedPlace> pending_;  // unsealed: that, unless it turns out to be the torn tail
  std::vector<Fingerprint> pending_fingerprints_;
  std::vector<std::byte> front_;
  SegmentFile part_file_;  // the last one that a part was looked for in
};

Result<> Verifier::check_contents_of(SegmentFile& segment) {
  const std::uint32_t number = segment.number;
  ours_.push_back(number);
  auto footer =
      read_footer(*segment.file, segment.file_bytes, seed_id_, number, ReadMode::Uncached);
  if (!footer) return footer.error();
  segment.footer = std::move(*footer);
  const bool is_sealed = segment.footer.has_value();
  const std::uint64_t end_bytes =
      is_sealed ? segment.file_bytes - footer_bytes(segment.footer->entries.size())
                : segment.file_bytes;
  next_entry_ = 0;
  intact_ = 0;
  damaged_from_ = 0;
  pending_.clear();
  pending_fingerprints_.clear();
  // A proxy that starts goes by the footer, right or wrong.
  if (is_sealed)
    for (const FooterEntry& entry : segment.footer->entries)
      newest_.note(entry.fingerprint, entry.kind, number, entry.offset_bytes, report_);

  SegmentWindow window(*segment.file, end_bytes, ReadMode::Uncached);
  const auto walked = walk(segment, window);
  report_.bytes_read += window.bytes_read();
  if (!walked) return walked;
  if (is_sealed) {
    take_entries_before(segment, end_bytes);
  } else if (auto ended = end_unsealed(segment, window); !ended) {
    return ended;
  }
  if (!segment.header && !is_sealed && intact_ == 0) {
    ++report_.unknown_segments;
    return {};
  }
  if (!segment.header) {
    note_damage({number, 0, 0}, std::nullopt, Damage::SegmentHeader, {});
  } else if (segment.header->number != number) {
    note_damage({number, 0, 0}, std::nullopt, Damage::SegmentHeader, {}, "names another segment");
  }
  ++(is_sealed ? report_.sealed_segments : report_.unsealed_segments);
  return {};
}

Result<> Verifier::walk(const SegmentFile& segment, SegmentWindow& window) {
  std::uint64_t offset = kSegmentHeaderBytes;
  while (offset + kRecordHeaderBytes <= window.end_bytes()) {
    const RecordPlace place{seed_id_, segment.number, static_cast<std::uint32_t>(offset)};
    auto bytes = window.at(offset, kRecordHeaderBytes);
    if (!bytes) return bytes.error();
    const auto header = decode_header(*bytes, place);
    const Gap gap = classify_gap(*bytes, header, place, window.end_bytes());
    if (gap != Gap::None) {
      const auto next = check_gap(segment, window, offset, gap);
      if (!next) return next.error();
      offset = *next;
      continue;
    }
    if (auto checked = check_record(segment, window, *header, place.offset_bytes); !checked)
      return checked;
    offset += header->record_bytes();
  }
  return {};
}

/// No record at `offset`: where the next one is. The window's end: there is none, by what is known.
Result<std::uint64_t> Verifier::check_gap(const SegmentFile& segment, SegmentWindow& window,
                                          std::uint64_t offset, Gap gap) {
  const bool is_end =
      segment.footer ? offset >= segment.footer->records_end_bytes : gap == Gap::End;
  if (is_end) return window.end_bytes();
  const RecordPlace place{seed_id_, segment.number, static_cast<std::uint32_t>(offset)};
  if (!segment.footer) {
    if (damaged_from_ == 0) damaged_from_ = offset;
    pending_.push_back(
        {{segment.number, place.offset_bytes, 0}, std::nullopt, Damage::RecordHeader, {}, false});
    pending_fingerprints_.push_back({});
  }
  return find_next_header(window, place);
}

Result<> Verifier::check_record(const SegmentFile& segment, SegmentWindow& window,
                                const RecordHeader& header, std::uint32_t offset) {
  const RecordPlace place{seed_id_, segment.number, offset};
  const auto contents = log::check_contents(window, header, place, front_);
  if (!contents) return contents.error();
  if (segment.footer) take_entries_before(segment, offset);
  if (*contents == Contents::Intact) {
    judge_intact(segment, header, offset);
  } else {
    judge_damaged(segment, header, offset,
                  *contents == Contents::FrontDamaged ? Damage::Front : Damage::Body);
  }
  return {};
}

void Verifier::judge_intact(const SegmentFile& segment, const RecordHeader& header,
                            std::uint32_t offset) {
  const auto length = static_cast<std::uint32_t>(header.record_bytes());
  const Location at{segment.number, offset, length};
  if (segment.footer) {
    const FooterEntry* entry = take_entry_at(segment, offset);
    // What a failed write left behind the last record is no part of the segment.
    if (entry == nullptr && offset >= segment.footer->records_end_bytes) return;
    const FooterEntry right{header.fingerprint, offset, length, header.kind};
    if (entry == nullptr || *entry != right)
      note_damage(at, header.kind, Damage::FooterEntry, header.fingerprint,
                  entry == nullptr ? "not in the footer" : "otherwise in the footer");
  } else {
    for (std::size_t i = 0; i < pending_.size(); ++i)
      note_damage(pending_[i].location, pending_[i].kind, pending_[i].damage,
                  pending_fingerprints_[i],
                  "in an unsealed segment: an unclean stop may have done it");
    pending_.clear();
    pending_fingerprints_.clear();
    damaged_from_ = 0;
    newest_.note(header.fingerprint, header.kind, segment.number, offset, report_);
  }
  ++intact_;
  RecordTally& tally = report_.kinds[static_cast<std::size_t>(header.kind)];
  ++tally.records;
  tally.bytes += length;

  if (!is_found_by_key(header.kind)) return;
  const RecordHead head = decode_front(front_, header);
  if (seed_.fingerprint_of(head.key) != header.fingerprint)
    note_damage(at, header.kind, Damage::Fingerprint, header.fingerprint);
  if (header.kind == RecordKind::LargeObject) check_parts(head, at);
}

void Verifier::judge_damaged(const SegmentFile& segment, const RecordHeader& header,
                             std::uint32_t offset, Damage damage) {
  const Location at{segment.number, offset, static_cast<std::uint32_t>(header.record_bytes())};
  if (!segment.footer) {
    if (damaged_from_ == 0) damaged_from_ = offset;
    pending_.push_back({at, header.kind, damage, {}, false});
    pending_fingerprints_.push_back(header.fingerprint);
    if (header.kind != RecordKind::Part && header.kind != RecordKind::Purge)
      newest_.note(header.fingerprint, RecordKind::Tombstone, segment.number, offset, report_);
    return;
  }
  const FooterEntry* entry = take_entry_at(segment, offset);
  if (entry == nullptr && offset >= segment.footer->records_end_bytes) return;
  // A purge holds by its header alone.
  const bool is_dropped = header.kind == RecordKind::Purge ||
                          (entry == nullptr ? header.kind == RecordKind::Part
                                            : entry->kind == RecordKind::Tombstone &&
                                                  header.kind != RecordKind::Tombstone);
  if (is_dropped)
    ++report_.dropped_records;
  else
    note_damage(at, header.kind, damage, header.fingerprint);
}

/// Entries of the footer that were passed without a record in their place.
void Verifier::take_entries_before(const SegmentFile& segment, std::uint64_t offset) {
  const auto& entries = segment.footer->entries;
  for (; next_entry_ < entries.size() && entries[next_entry_].offset_bytes < offset;
       ++next_entry_) {
    const FooterEntry& entry = entries[next_entry_];
    note_damage({segment.number, entry.offset_bytes, entry.length_bytes}, entry.kind,
                Damage::RecordHeader, entry.fingerprint);
  }
}

const FooterEntry* Verifier::take_entry_at(const SegmentFile& segment, std::uint32_t offset) {
  const auto& entries = segment.footer->entries;
  if (next_entry_ == entries.size() || entries[next_entry_].offset_bytes != offset) return nullptr;
  return &entries[next_entry_++];
}

void Verifier::check_parts(const RecordHead& head, const Location& at) {
  newest_.note_parts(head.fingerprint, at, static_cast<std::uint32_t>(head.parts.size()));
  bool is_complete = true;
  for (const PartRef& part : head.parts) is_complete &= check_part(part, head, at);
  if (!is_complete) ++report_.incomplete_objects;
}

/// False: the part is gone, which is no damage. Parts are older, so that their segment goes first,
/// and an unclean stop may lose them without their object. One that is damaged says so itself.
bool Verifier::check_part(const PartRef& part, const RecordHead& head, const Location& at) {
  const Location& place = part.record;
  const auto fail = [&](Damage damage, std::string detail) {
    note_damage(at, head.kind, damage, head.fingerprint,
                "part in segment " + std::to_string(place.segment) + " at offset " +
                    std::to_string(place.offset_bytes) + std::move(detail));
    return true;
  };
  if (!is_ours(place.segment)) return false;
  if (part_file_.number != place.segment) {
    auto opened = open(place.segment);
    part_file_ = opened ? std::move(*opened) : SegmentFile{};
    if (!opened) return fail(Damage::Unreadable, ": " + opened.error().message());
  }
  std::array<std::byte, kRecordHeaderBytes> bytes{};
  const auto read = part_file_.file->read_at(place.offset_bytes, bytes, ReadMode::Uncached);
  if (!read) return fail(Damage::Unreadable, ": " + read.error().message());
  const auto header =
      decode_header(std::span(bytes).first(*read), {seed_id_, place.segment, place.offset_bytes});
  if (!header) return false;
  const bool is_ours_to_use =
      header->fingerprint == head.fingerprint &&
      (header->kind == RecordKind::Part || header->kind == RecordKind::Object);
  if (!is_ours_to_use) return fail(Damage::PartOfOther, {});
  if (header->body_bytes != part.body_bytes || header->record_bytes() != place.length_bytes)
    return fail(Damage::PartLength, {});
  return true;
}

/// What is damaged behind the last whole record is the torn tail of an unclean stop. Whatever else
/// stands where the footer ends is what is left of one: records never reach so far.
Result<> Verifier::end_unsealed(const SegmentFile& segment, SegmentWindow& window) {
  const auto is_zero = [](std::byte b) { return b == std::byte{0}; };
  if (!segment.header && intact_ == 0) return {};  // not ours
  std::uint64_t last_data = 0;
  constexpr std::size_t kStepBytes = 64U << 10;
  for (std::uint64_t at = damaged_from_; damaged_from_ != 0 && at < window.end_bytes();
       at += kStepBytes) {
    const auto bytes = window.at(at, kStepBytes);
    if (!bytes) return bytes.error();
    const auto last = std::find_if_not(bytes->rbegin(), bytes->rend(), is_zero);
    if (last != bytes->rend()) last_data = at + static_cast<std::uint64_t>(bytes->rend() - last);
  }
  const bool has_room = segment.file_bytes >= kSegmentHeaderBytes + kFooterTrailerBytes;
  const std::uint64_t trailer_at = segment.file_bytes - (has_room ? kFooterTrailerBytes : 0);
  const auto trailer = window.at(trailer_at, kFooterTrailerBytes);
  if (!trailer) return trailer.error();
  const bool is_full_length = segment.header && segment.header->segment_bytes == segment.file_bytes;
  if (has_room && is_full_length && !std::all_of(trailer->begin(), trailer->end(), is_zero))
    note_damage({segment.number, static_cast<std::uint32_t>(trailer_at), kFooterTrailerBytes},
                std::nullopt, Damage::Footer, {});
  else if (last_data > damaged_from_)
    report_.torn_tail_bytes += last_data - damaged_from_;
  return {};
}

}  // namespace

std::string_view to_string(Damage damage) noexcept {
  switch (damage) {
    case Damage::SegmentHeader:
      return "segment header damaged";
    case Damage::Footer:
      return "footer damaged";
    case Damage::FooterEntry:
      return "footer and records disagree";
    case Damage::RecordHeader:
      return "record header damaged";
    case Damage::Front:
      return "key or head damaged";
    case Damage::Body:
      return "body damaged";
    case Damage::Fingerprint:
      return "key has another fingerprint";
    case Damage::PartOfOther:
      return "part belongs to another object";
    case Damage::PartLength:
      return "part has another length";
    case Damage::Unreadable:
      return "cannot be read";
    case Damage::NewerVersion:
      return "written by a newer version";
  }
  return "";
}

Result<VerifyReport> verify(FileSystem& files, const admission::FingerprintSeed& seed) {
  return Verifier(files, seed).run();
}

}  // namespace secondsight::cache::log
