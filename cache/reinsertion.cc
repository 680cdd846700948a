#include "cache/reinsertion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "cache/log/record_format.h"

namespace secondsight::cache {
namespace {

using log::RecordKind;

/// A record that holds a whole body (or a marker's list).
constexpr bool is_whole(RecordKind kind) noexcept {
  return kind == RecordKind::Object || kind == RecordKind::VaryMarker;
}

/// Whether it is asked for again before its next turn: each hit so far halves the doubt.
double chance_of_hit(const Index::Hits& hits) noexcept {
  return 1 - std::exp2(-static_cast<double>(hits.quarters) / 4);
}

/// A hit is forgotten in four turns.
unsigned quarters_kept(const Index::Hits& hits) noexcept {
  return hits.is_recent ? hits.quarters : hits.quarters - 1;
}

}  // namespace

void Reinsertion::note_admitted(std::uint64_t bytes) noexcept {
  // More than a few turns' worth would be spent all at once.
  constexpr std::uint64_t kTurnsSaved = 4;
  earned_hundredths_ = std::min(earned_hundredths_ + bytes * budget_percent_,
                                kTurnsSaved * log_.segment_bytes() * budget_percent_);
}

void Reinsertion::before_append(std::uint64_t record_bytes, const Write& write) {
  const std::uint64_t room = log_.room_bytes();
  if (room == 0 || room >= record_bytes + budget_bytes()) return;
  const auto segment = log_.next_to_go();
  if (!segment || *segment == done_segment_) return;
  done_segment_ = *segment;
  for (const Candidate& candidate : candidates(*segment)) {
    if (candidate.bytes > budget_bytes()) continue;
    const auto written = reinsert(candidate, write);
    if (!written) return;
    earned_hundredths_ -= *written * 100;
  }
}

std::vector<Reinsertion::Candidate> Reinsertion::candidates(std::uint32_t segment) const {
  std::vector<Candidate> all;
  const auto records = log_.records_of(segment);
  if (!records) return all;
  for (const log::LoggedRecord& record : *records) {
    if (!is_whole(record.kind) && record.kind != RecordKind::LargeObject) continue;
    const Index::Hits hits = index_.hits(record.fingerprint);
    if (hits.quarters == 0) continue;
    const auto entry = index_.find(record.fingerprint);
    // It is that record, or a refreshed head that may use this record's body.
    if (!entry || (entry->location != record.location && entry->kind != RecordKind::LargeObject))
      continue;
    const std::uint64_t bytes = record.location.length_bytes;
    all.push_back({record.fingerprint, *entry, bytes, hits,
                   chance_of_hit(hits) / static_cast<double>(bytes)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.worth > b.worth; });
  return all;
}

/// Its new record would stand behind the purge's, and could not say that it was made stale.
bool Reinsertion::is_purged(const log::Location& at, const log::RecordHead& head) const {
  if (purges_.concerns_nothing_at(at)) return false;
  const std::size_t reason_end = head.head.find("\r\n");
  if (reason_end == std::string::npos) return true;  // damaged: as good as purged
  const auto fields =
      policy::FieldBlock::from_text(std::string_view(head.head).substr(reason_end + 2));
  return !fields || !purges_.judge(at, head.key, &*fields).is_clear();
}

Result<std::uint64_t> Reinsertion::reinsert(const Candidate& candidate, const Write& write) {
  constexpr std::uint64_t kNothing = 0;
  // A freshened head and its body are two records of one object; or it was removed by now.
  const auto current = index_.find(candidate.fingerprint);
  if (!current || current->location != candidate.entry.location) return kNothing;
  const auto reader = log_.open_object(candidate.entry.location, ReadMode::Blocking);
  if (!reader) return kNothing;
  const log::RecordHead& head = (*reader)->head();
  const bool is_in_parts = head.kind == RecordKind::LargeObject;
  if (is_in_parts && (head.parts.size() != 1 || head.parts[0].record.segment != done_segment_))
    return kNothing;
  if (is_purged(candidate.entry.location, head)) return kNothing;
  std::vector<std::byte> body(head.body_bytes);
  if (!(*reader)->read_body(0, body, ReadMode::Blocking)) return kNothing;
  const std::array<std::span<const std::byte>, 1> pieces{body};

  log::RecordView view;
  view.kind = is_in_parts ? RecordKind::Object : head.kind;
  view.fingerprint = candidate.fingerprint;
  view.status = head.status;
  view.times = head.times;
  view.key = head.key;
  view.head = head.head;
  view.body = pieces;
  // Beyond the room, another segment would push out the one that is read here.
  const std::uint64_t bytes = log::encoded_bytes(view);
  if (bytes > log_.room_bytes() || bytes > budget_bytes()) return kNothing;
  const auto at = write(view);
  if (!at) return at.error();
  index_.move(candidate.fingerprint, candidate.entry.location, {*at, view.kind},
              quarters_kept(candidate.hits));
  return std::uint64_t{at->length_bytes};
}

}  // namespace secondsight::cache
