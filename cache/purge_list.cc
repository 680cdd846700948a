#include "cache/purge_list.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "cache/tags.h"
#include "config/check.h"

namespace secondsight::cache {
namespace {

// A record's fingerprint: scope, kind, length and time in the high half, the hash in the low one,
// which is the half that tables go by.
constexpr unsigned kScopeShift = 62;
constexpr unsigned kKindShift = 61;
constexpr unsigned kLengthShift = 45;
constexpr std::uint64_t kLengthMask = 0xFFFF;
constexpr std::uint64_t kTimeMask = (std::uint64_t{1} << kLengthShift) - 1;

/// What a node of std::map costs: three links, a colour, what malloc adds.
constexpr std::uint64_t kMapNodeBytes = 64;

admission::Fingerprint key_of(PurgeScope scope, std::string_view text,
                              const admission::FingerprintSeed& seed) noexcept {
  const std::uint64_t length = scope == PurgeScope::Prefix ? text.size() : 0;
  const std::uint64_t hash = scope == PurgeScope::Everything ? 0 : seed.fingerprint_of(text).low;
  return {static_cast<std::uint64_t>(scope) << kScopeShift | length << kLengthShift, hash};
}

PurgeScope scope_of(const admission::Fingerprint& record) noexcept {
  return static_cast<PurgeScope>(record.high >> kScopeShift);
}

PurgeKind kind_of(const admission::Fingerprint& record) noexcept {
  return static_cast<PurgeKind>(record.high >> kKindShift & 1U);
}

std::size_t length_of(const admission::Fingerprint& record) noexcept {
  return record.high >> kLengthShift & kLengthMask;
}

WallTime time_of(const admission::Fingerprint& record) noexcept {
  return WallTime(WallTime::duration(static_cast<WallTime::rep>(record.high & kTimeMask)));
}

/// A record's fingerprint without kind and time: what the list goes by.
admission::Fingerprint key_of(const admission::Fingerprint& record) noexcept {
  constexpr std::uint64_t kKept = ~(kTimeMask | std::uint64_t{1} << kKindShift);
  return {record.high & kKept, record.low};
}

std::string_view first_line(std::string_view text) noexcept {
  return text.substr(0, text.find('\n'));
}

/// What these marks say of something that old.
template <class Age, class Marks>
void take(const Age& age, const Marks& marks, PurgeList::Verdict& verdict) noexcept {
  if (age.is_older_than(marks.hard)) verdict.is_purged = true;
  if (!age.is_older_than(marks.soft)) return;
  const WallTime since =
      age.is_older_than(marks.first_soft) ? marks.first_stale_since : marks.stale_since;
  verdict.stale_since = std::min(verdict.stale_since.value_or(WallTime::max()), since);
}

}  // namespace

std::string_view to_string(PurgeScope scope) noexcept {
  constexpr std::array<std::string_view, 4> kWords = {"everything", "tag", "prefix", "url"};
  return kWords[static_cast<std::size_t>(scope)];
}

std::string_view to_string(PurgeKind kind) noexcept {
  return kind == PurgeKind::Hard ? "hard" : "soft";
}

PurgeList::PurgeList(const admission::FingerprintSeed& seed, std::size_t stamps_max)
    : seed_(seed), stamps_max_(stamps_max) {}

// ---------------------------------------------------------------- purging

PurgeStamp PurgeList::add(const Purge& purge, WallTime now) {
  CHECK(purge.text.size() <= kPurgeTextBytesMax);
  PurgeStamp stamp{key_of(purge.scope, purge.text, seed_), 0};
  const auto milliseconds = std::max<WallTime::rep>(now.time_since_epoch().count(), 0);
  stamp.record.high |= static_cast<std::uint64_t>(purge.kind) << kKindShift |
                       (static_cast<std::uint64_t>(milliseconds) & kTimeMask);
  const std::lock_guard lock(mutex_);
  stamp.sequence = ++latest_;
  put(stamp.record, {stamp.sequence, kNotWritten});
  publish();
  return stamp;
}

void PurgeList::recover(const admission::Fingerprint& record, const log::Location& at) {
  const std::lock_guard lock(mutex_);
  put(record, {kRecovered, position_of(at)});
  publish();
}

/// Unless a later one like it is there. One of everything makes all others needless that are older.
void PurgeList::put(const admission::Fingerprint& record, const Mark& mark) {
  const PurgeScope scope = scope_of(record);
  const bool is_hard = kind_of(record) == PurgeKind::Hard;
  const auto put_in = [&](Marks& marks, auto set_mark) {
    Mark& old = is_hard ? marks.hard : marks.soft;
    if (old.sequence > mark.sequence || (old.sequence != 0 && old.position > mark.position)) return;
    // One that is not written yet has no place that could stand for it.
    if (!is_hard && marks.first_soft.sequence == 0 && old.position != kNotWritten) {
      marks.first_soft = old;
      marks.first_stale_since = marks.stale_since;
    }
    set_mark(old, mark);
    if (!is_hard) marks.stale_since = time_of(record);
  };
  const auto set_counted = [this](Mark& old, const Mark& fresh) { set(old, fresh); };
  const auto set_alone = [](Mark& old, const Mark& fresh) { old = fresh; };
  if (scope == PurgeScope::Everything && is_hard) {
    change_each_mark([&](Mark& old) {
      const bool is_older = old.sequence < mark.sequence || old.position < mark.position;
      return is_older ? Mark{} : old;
    });
  }
  put_in(marks_for(record), set_counted);
  if (scope == PurgeScope::Tag) put_in(any_tag_, set_alone);
  if (marks_.size() > stamps_max_) fold();
}

void PurgeList::note_written(const PurgeStamp& stamp, const log::Location& at) {
  const std::lock_guard lock(mutex_);
  const bool is_hard = kind_of(stamp.record) == PurgeKind::Hard;
  const Mark written{stamp.sequence, position_of(at)};
  const auto is_it = [&](const Mark& mark) {
    return mark.sequence == stamp.sequence && mark.position == kNotWritten;
  };
  if (Mark& mark = is_hard ? any_tag_.hard : any_tag_.soft; is_it(mark)) mark = written;
  Marks* marks = &everything_;
  if (scope_of(stamp.record) != PurgeScope::Everything) {
    const auto entry = marks_.find(key_of(stamp.record));
    if (entry == marks_.end()) return;
    marks = &entry->second;
  }
  if (Mark& mark = is_hard ? marks->hard : marks->soft; is_it(mark)) set(mark, written);
  publish();
}

void PurgeList::note_log_emptied() {
  const std::lock_guard lock(mutex_);
  change_each_mark([](const Mark& mark) {
    return mark.position == kNotWritten ? Mark{mark.sequence, 0} : mark;
  });
  publish();
}

PurgeList::Marks& PurgeList::marks_for(const admission::Fingerprint& record) {
  if (scope_of(record) == PurgeScope::Everything) return everything_;
  const admission::Fingerprint key = key_of(record);
  const auto [entry, is_new] = marks_.try_emplace(key);
  if (is_new) {
    ++count_of_scope_[static_cast<std::size_t>(scope_of(key))];
    if (scope_of(key) == PurgeScope::Prefix) ++count_of_length_[length_of(key)];
  }
  return entry->second;
}

/// The entry behind it.
PurgeList::Map::iterator PurgeList::erase(Map::iterator entry) {
  const admission::Fingerprint key = entry->first;
  set(entry->second.hard, {});
  set(entry->second.soft, {});
  --count_of_scope_[static_cast<std::size_t>(scope_of(key))];
  if (scope_of(key) == PurgeScope::Prefix) {
    const auto count = count_of_length_.find(length_of(key));
    if (--count->second == 0) count_of_length_.erase(count);
  }
  const auto next = std::next(entry);
  marks_.erase(entry);
  return next;
}

/// Entries of which nothing is left go.
template <class Change>
void PurgeList::change_each_mark(const Change& change) {
  for (auto entry = marks_.begin(); entry != marks_.end();) {
    Marks& marks = entry->second;
    set(marks.hard, change(marks.hard));
    set(marks.soft, change(marks.soft));
    marks.first_soft = change(marks.first_soft);
    const bool is_empty = marks.hard.sequence == 0 && marks.soft.sequence == 0;
    entry = is_empty ? erase(entry) : std::next(entry);
  }
  set(everything_.hard, change(everything_.hard));
  set(everything_.soft, change(everything_.soft));
  for (Mark* mark :
       {&everything_.first_soft, &folded_, &any_tag_.hard, &any_tag_.soft, &any_tag_.first_soft})
    *mark = change(*mark);
  constexpr std::size_t kRoomWorthKeeping = 8;
  if (marks_.size() * kRoomWorthKeeping < marks_.bucket_count()) marks_.rehash(marks_.size());
}

void PurgeList::set(Mark& mark, const Mark& to) {
  if (mark.position == kNotWritten) --not_written_;
  mark = to;
  if (mark.position == kNotWritten) {
    ++not_written_;
  } else {
    newest_written_ = std::max(newest_written_, mark.position);
  }
}

/// What is yet to be written stays: it has no place in the log that could stand for it.
void PurgeList::fold() {
  // Without a disk all places are the same.
  using Age = std::pair<Position, std::uint64_t>;
  const auto age_of = [](const Marks& marks) {
    return Age{std::max(marks.hard.position, marks.soft.position),
               std::max(marks.hard.sequence, marks.soft.sequence)};
  };
  std::vector<Age> ages;
  for (const auto& [key, marks] : marks_)
    if (age_of(marks).first != kNotWritten) ages.push_back(age_of(marks));
  if (ages.empty()) return;
  const auto middle = ages.begin() + static_cast<std::ptrdiff_t>(ages.size() / 2);
  std::nth_element(ages.begin(), middle, ages.end());
  const Age last = *middle;
  for (auto entry = marks_.begin(); entry != marks_.end();) {
    const Age age = age_of(entry->second);
    if (age > last) {
      ++entry;
      continue;
    }
    folded_.position = std::max(folded_.position, age.first);
    folded_.sequence = std::max(folded_.sequence, age.second);
    entry = erase(entry);
  }
  folds_.fetch_add(1, std::memory_order_relaxed);
}

void PurgeList::publish() {
  newest_position_.store(not_written_ > 0 ? kNotWritten : newest_written_,
                         std::memory_order_release);
  sequence_.store(latest_, std::memory_order_release);
}

// ---------------------------------------------------------------- judging

PurgeList::Verdict PurgeList::judge(std::uint64_t seen, std::string_view key_text,
                                    const policy::FieldBlock* fields) const {
  if (seen >= sequence()) return {};
  const std::shared_lock lock(mutex_);
  if (seen < floor_) return {.is_purged = true};
  return look_up(SeenInMemory{seen}, key_text, fields);
}

PurgeList::Verdict PurgeList::judge(const log::Location& at, std::string_view key_text,
                                    const policy::FieldBlock* fields) const {
  if (concerns_nothing_at(at)) return {};
  const std::shared_lock lock(mutex_);
  return look_up(FoundOnDisk{position_of(at)}, key_text, fields);
}

template <class Age>
PurgeList::Verdict PurgeList::look_up(const Age& age, std::string_view key_text,
                                      const policy::FieldBlock* fields) const {
  Verdict verdict;
  take(age, everything_, verdict);
  if (age.is_older_than(folded_)) verdict.is_purged = true;
  const std::string_view line = first_line(key_text);
  if (!verdict.is_purged && count_of_scope_[static_cast<std::size_t>(PurgeScope::Url)] > 0)
    look_up_text(age, PurgeScope::Url, line, verdict);
  for (const auto& [length, count] : count_of_length_) {
    if (verdict.is_purged || length > line.size()) break;
    look_up_text(age, PurgeScope::Prefix, line.substr(0, length), verdict);
  }
  if (!verdict.is_purged && fields != nullptr) look_up_tags(age, *fields, verdict);
  return verdict;
}

template <class Age>
void PurgeList::look_up_tags(const Age& age, const policy::FieldBlock& fields,
                             Verdict& verdict) const {
  if (count_of_scope_[static_cast<std::size_t>(PurgeScope::Tag)] == 0) return;
  TagReader tags(fields);
  while (const auto tag = tags.next()) look_up_text(age, PurgeScope::Tag, *tag, verdict);
  if (tags.exceeds_bounds()) take(age, any_tag_, verdict);
}

template <class Age>
void PurgeList::look_up_text(const Age& age, PurgeScope scope, std::string_view text,
                             Verdict& verdict) const {
  const auto entry = marks_.find(key_of(scope, text, seed_));
  if (entry != marks_.end()) take(age, entry->second, verdict);
}

// ---------------------------------------------------------------- forgetting

void PurgeList::forget(std::uint64_t swept, std::uint32_t oldest_segment) {
  const std::lock_guard lock(mutex_);
  const Position oldest = std::uint64_t{oldest_segment} << 32U;
  change_each_mark([&](const Mark& mark) {
    if (mark.sequence == 0 || mark.sequence > swept || mark.position >= oldest) return mark;
    floor_ = std::max(floor_, mark.sequence);
    return Mark{};
  });
  publish();
}

// ---------------------------------------------------------------- numbers

std::size_t PurgeList::stamps() const {
  const std::shared_lock lock(mutex_);
  const auto is_set = [](const Mark& mark) { return mark.sequence != 0 ? 1U : 0U; };
  return marks_.size() + is_set(everything_.hard) + is_set(everything_.soft) + is_set(folded_);
}

std::uint64_t PurgeList::memory_bytes() const {
  const std::shared_lock lock(mutex_);
  // Boost's table keeps 16 bytes of metadata for every 15 elements.
  return sizeof(PurgeList) + marks_.bucket_count() * (sizeof(Map::value_type) + 2) +
         count_of_length_.size() * kMapNodeBytes;
}

}  // namespace secondsight::cache
