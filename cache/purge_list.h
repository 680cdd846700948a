#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>

#include <boost/unordered/unordered_flat_map.hpp>

#include "admission/fingerprint.h"
#include "cache/log/record.h"
#include "cache/policy/fields.h"
#include "config/clock.h"

namespace secondsight::cache {

enum class PurgeScope : std::uint8_t {
  Everything,
  Tag,     // objects that name it (cache/tags.h)
  Prefix,  // objects whose key's first line begins with it
  Url,     // objects whose key's first line is it
};
enum class PurgeKind : std::uint8_t {
  Hard,  // not found any more
  Soft,  // stale from then on
};
std::string_view to_string(PurgeScope scope) noexcept;
std::string_view to_string(PurgeKind kind) noexcept;

/// What to purge. `text` is compared byte for byte, at most kPurgeTextBytesMax of it; empty for
/// Everything.
struct Purge {
  PurgeScope scope = PurgeScope::Everything;
  PurgeKind kind = PurgeKind::Hard;
  std::string text{};
};
inline constexpr std::size_t kPurgeTextBytesMax = 32U << 10;

/// One purge as the list knows it and as its record in the log holds it.
struct PurgeStamp {
  admission::Fingerprint record;  // docs/on-disk-format.md
  std::uint64_t sequence = 0;
};

/// What has been purged, for everyone who finds or writes an object. A purge is one entry here,
/// whatever it concerns: nothing is walked, and an object is judged when it is found next.
///
/// Older than a purge is, in memory, what was asked of the origin before it: every purge has a
/// sequence, and every object says up to which sequence no purge concerns it (Object::purges_seen).
/// On disk it is what stands before the purge's record in the log; until that is written,
/// everything there. The writer judges an object just before it appends it, so nothing older gets
/// behind the record.
///
/// Bounded: beyond `stamps_max` the older half becomes one purge of everything that is as old as
/// they are. That purges more than was asked, never less. An entry goes when nothing older is left
/// (forget()).
///
/// Thread-safe. Where nothing was purged since an object was stored or judged last, judging is one
/// load; else a shared lock, a few hashes and no allocation.
class PurgeList {
 public:
  static constexpr std::size_t kStampsMax = 262'144;

  struct Verdict {
    bool is_purged = false;                 // by a hard purge
    std::optional<WallTime> stale_since{};  // by a soft one
    bool is_clear() const noexcept { return !is_purged && !stale_since; }
  };

  /// The seed must outlive it.
  explicit PurgeList(const admission::FingerprintSeed& seed, std::size_t stamps_max = kStampsMax);

  // --- purging
  /// In effect when this returns.
  PurgeStamp add(const Purge& purge, WallTime now);
  /// Its record is written. Of one that was purged again since it is only the later that counts.
  void note_written(const PurgeStamp& stamp, const log::Location& at);
  /// A record that was found in the log: of an earlier process, so that it concerns nothing in
  /// memory. In any order, also after purges of this process.
  void recover(const admission::Fingerprint& record, const log::Location& at);
  /// There is nothing on disk that is older than any purge so far. By who writes there.
  void note_log_emptied();

  // --- judging
  /// Of the latest purge. What is asked of the origin after reading it is younger than that.
  std::uint64_t sequence() const noexcept { return sequence_.load(std::memory_order_acquire); }
  /// Something in memory that no purge up to `seen` concerns. `key_text`: of its key, further lines
  /// included. `fields`: of its head; null: not known yet.
  Verdict judge(std::uint64_t seen, std::string_view key_text,
                const policy::FieldBlock* fields) const;
  /// Whether all purges stand before that place in the log.
  bool concerns_nothing_at(const log::Location& at) const noexcept {
    return position_of(at) >= newest_position_.load(std::memory_order_acquire);
  }
  /// Something on disk, by the place of the record that its index entry names.
  Verdict judge(const log::Location& at, std::string_view key_text,
                const policy::FieldBlock* fields) const;

  // --- forgetting
  /// All in memory was judged after purge `swept` (or is younger), and no segment before
  /// `oldest_segment` is left: lets go of what concerns nothing any more. What turns up later from
  /// before a purge that was let go of counts as purged.
  void forget(std::uint64_t swept, std::uint32_t oldest_segment);

  // --- numbers
  std::size_t stamps() const;
  std::uint64_t memory_bytes() const;
  /// How often the older half became one purge of everything.
  std::uint64_t folds() const noexcept { return folds_.load(std::memory_order_relaxed); }

 private:
  /// A place in the log as one number. kNotWritten: behind all that is there.
  using Position = std::uint64_t;
  static constexpr Position kNotWritten = UINT64_MAX;
  /// The sequence of what was recovered; all in memory has seen it.
  static constexpr std::uint64_t kRecovered = 1;
  struct Mark {
    std::uint64_t sequence = 0;  // 0: none
    Position position = 0;
  };
  struct Marks {
    Mark hard, soft;
    WallTime stale_since{};  // by the soft one
    // Of the first soft one, where there were several: what is older than that does not become
    // stale once more.
    Mark first_soft;
    WallTime first_stale_since{};
  };
  using Map = boost::unordered_flat_map<admission::Fingerprint, Marks, admission::FingerprintHash>;

  /// Whether a mark is younger than what is judged.
  struct SeenInMemory {
    std::uint64_t seen;
    bool is_older_than(const Mark& mark) const noexcept { return seen < mark.sequence; }
  };
  struct FoundOnDisk {
    Position position;
    bool is_older_than(const Mark& mark) const noexcept {
      return mark.sequence != 0 && position < mark.position;
    }
  };

  static Position position_of(const log::Location& at) noexcept {
    return std::uint64_t{at.segment} << 32U | at.offset_bytes;
  }
  Marks& marks_for(const admission::Fingerprint& record);
  void put(const admission::Fingerprint& record, const Mark& mark);
  Map::iterator erase(Map::iterator entry);
  template <class Change>
  void change_each_mark(const Change& change);
  void set(Mark& mark, const Mark& to);
  void fold();
  void publish();
  template <class Age>
  Verdict look_up(const Age& age, std::string_view key_text,
                  const policy::FieldBlock* fields) const;
  template <class Age>
  void look_up_tags(const Age& age, const policy::FieldBlock& fields, Verdict& verdict) const;
  template <class Age>
  void look_up_text(const Age& age, PurgeScope scope, std::string_view text,
                    Verdict& verdict) const;

  const admission::FingerprintSeed& seed_;
  const std::size_t stamps_max_;

  std::atomic<std::uint64_t> sequence_{
      kRecovered};  // release under mutex_ once the purge is in the list
  /// No record is written at or behind it; kNotWritten: one is to come. Release likewise.
  std::atomic<Position> newest_position_{0};
  std::atomic<std::uint64_t> folds_{0};  // relaxed: a statistic

  mutable std::shared_mutex mutex_;    // guards all below
  std::uint64_t latest_ = kRecovered;  // what sequence_ becomes
  std::uint64_t floor_ = 0;            // of what was forgotten
  Map marks_;                          // by scope, length and hash
  Marks everything_;
  Mark folded_;                                         // likewise of everything
  Marks any_tag_;                                       // the latest by any tag
  std::array<std::size_t, 4> count_of_scope_{};         // of keys in marks_
  std::map<std::size_t, std::size_t> count_of_length_;  // of prefixes in marks_
  std::size_t not_written_ = 0;                         // marks in marks_ and everything_
  Position newest_written_ = 0;
};

}  // namespace secondsight::cache
