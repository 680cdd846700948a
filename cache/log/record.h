#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "admission/fingerprint.h"
#include "cache/policy/facts.h"

namespace secondsight::cache::log {

/// Where a record is. Segment numbers grow forever (from 1), so a stale Location never aliases.
struct Location {
  std::uint32_t segment = 0;
  std::uint32_t offset_bytes = 0;
  std::uint32_t length_bytes = 0;  // of the whole record
  friend bool operator==(const Location&, const Location&) = default;
};

enum class RecordKind : std::uint8_t {
  Object = 1,       // head and whole body
  Part = 2,         // one piece of a large body; invisible until a LargeObject names it
  LargeObject = 3,  // head, and the places of the body's parts: commits them. Also a refreshed head
                    // whose one part is the body of an older Object record
  VaryMarker = 4,   // the primary key has variants; the head is the Vary field
  Tombstone = 5,    // the fingerprint was removed: no older record of it may come back
  Purge = 6,  // what the fingerprint says (cache/purge_list.h) was purged: no older record that
              // it matches may come back; the key says it in words
};

/// One piece of a large body: the body of the record at `record`.
struct PartRef {
  Location record;
  std::uint64_t body_bytes = 0;
};

/// What to write. Views last until append() returns.
struct RecordView {
  RecordKind kind = RecordKind::Object;
  admission::Fingerprint fingerprint{};
  std::uint16_t status = 0;
  policy::ExchangeTimes times{};
  std::string_view key;  // full key text
  /// FieldBlock::text() of the stored fields, preceded by the reason phrase and CRLF.
  std::string_view head;
  std::span<const std::span<const std::byte>> body;  // pieces, in order; empty for LargeObject
  std::span<const PartRef> parts;                    // LargeObject only
};

/// What a record's front says, verified.
struct RecordHead {
  RecordKind kind = RecordKind::Object;
  admission::Fingerprint fingerprint{};
  std::uint16_t status = 0;
  policy::ExchangeTimes times{};
  std::string key;
  std::string head;
  std::vector<PartRef> parts;
  std::uint64_t body_bytes = 0;  // of the whole object: the sum over the parts for LargeObject
};

}  // namespace secondsight::cache::log
