#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "admission/bloom_math.h"
#include "admission/sighting_format.h"
#include "admission/sighting_snapshot.h"
#include "admission/two_generation_filter.h"
#include "config/clock.h"
#include "config/file_system.h"
#include "config/result.h"

namespace secondsight::admission {

/// Keeps the sightings of a filter in a directory, so that they outlive the process: the marks of
/// the latest two generations, eight bytes each, appended in batches. A generation is a file (a
/// few, where a sync failed); a rotation removes the oldest. Nothing is folded or written again.
/// Marks mean the same to a filter of any size, so that they outlive a change of the settings, too.
/// What another filter's snapshot brought into `previous` is kept beside them as bits.
///
/// Synchronous, one thread. Every call may find the directory gone, full, or replaced, fail, and be
/// repeated: no file stays open between two calls.
class SightingJournal {
 public:
  struct Options {
    std::uint64_t seed_id = 0;
    FilterSize size;
    SteadyTime::duration window{};
    /// Of `previous` alone, up to which bits of others are taken (previous_rate_max()).
    double previous_rate_max = 1;
    /// All files together are at most this large: where a generation's marks do not fit, the oldest
    /// are not kept. At least kLeastBytes.
    std::uint64_t bytes_max = 0;
  };
  static constexpr std::uint64_t kLeastBytes = 4096;
  /// What the journal of such a filter takes at most, if it may: two full generations and the bits
  /// of one, which are there twice while they are written anew.
  static std::uint64_t bytes_for(const FilterSize& size, SteadyTime::duration window) noexcept;

  /// Nothing is read or written before the first call. `files` outlives the journal.
  SightingJournal(FileSystem& files, const Options& options) noexcept;

  /// What was found.
  struct Restored {
    std::uint64_t marks = 0;           // given back to the filter
    std::uint64_t damaged_bytes = 0;   // skipped, what is beside them is used
    std::uint64_t cut_off_bytes = 0;   // at the end of a file: a write that did not come to its end
    std::vector<std::string> skipped;  // files with the reason, for a log line each
    bool has_bits = false;             // of another filter's snapshot
    std::optional<std::chrono::milliseconds> last_mark_age;
  };
  /// Gives a filter back what it knew, with the age of its generation, so that it goes on where it
  /// was. Writes nothing. Exclusive use of `filter`: call before there is any other thread. Errors:
  /// I/O of the directory; a file that cannot be used is skipped.
  Result<Restored> restore(TwoGenerationFilter& filter, WallTime now, SteadyTime steady_now);
  /// The same for a filter that is in use already: the marks of the latest generation go into its
  /// `previous`. Errors: as before; device_or_resource_busy (a sweep: try again).
  Result<Restored> restore_late(TwoGenerationFilter& filter, WallTime now);

  /// Appends marks to the current generation's file. Errors: I/O; nothing of them is kept then.
  Result<> append(std::span<const std::uint64_t> marks, WallTime now);
  /// The filter rotated: begins a generation, removes all but the one before it.
  Result<> rotate(WallTime now);
  /// The same without a look at the directory, where that cannot be used: the next marks do it.
  void note_rotation() noexcept;
  /// Makes what was appended outlive a power cut. After an error what was appended since the last
  /// success may be lost; what follows goes to a new file.
  Result<> sync();
  /// Keeps what is in the filter's `previous` as bits: call after a merge. Errors: I/O;
  /// no_space_on_device where bytes_max does not allow it.
  Result<> keep_previous(const TwoGenerationFilter& filter, WallTime now);
  /// The same in three steps, of which the long one in the middle, write_snapshot() with
  /// SnapshotOf::Previous, needs no journal: appending and rotating go on meanwhile.
  struct Bits {
    std::uint64_t number = 0;
    std::unique_ptr<File> file;
    std::uint64_t rotations = 0;
  };
  Result<Bits> begin_bits(WallTime now);
  /// Errors: that of `written`, I/O. What retired meanwhile is not kept, which is no error.
  Result<> end_bits(Bits bits, const Result<>& written);

  /// Marks of the latest two generations that were not kept, or not kept any longer, because
  /// bytes_max does not allow it; since construction.
  std::uint64_t given_up_marks() const noexcept { return given_up_marks_; }
  /// Bytes written since construction.
  std::uint64_t written_bytes() const noexcept { return written_bytes_; }

 private:
  struct Found {
    std::vector<MarksHeader> marks;              // of our seed, oldest first
    std::span<const MarksHeader> latest, older;  // those of the latest two generations
    std::vector<std::uint64_t> bits;             // numbers, likewise
  };
  struct Age {
    WallTime::duration of_generation{};
    bool is_over = false;       // its window: it is `previous` by now
    bool is_forgotten = false;  // that, too
  };
  Result<Found> look(Restored& restored);
  void remove_unusable();
  Age age_of(const MarksHeader& latest, WallTime now) const;
  using Take = std::function<void(std::span<const std::uint64_t>)>;
  /// Of the last file of that generation, if that can be read.
  std::optional<MarksRead> read_generation(std::span<const MarksHeader> files, Restored& restored,
                                           const Take& take);
  bool restore_bits(std::span<const std::uint64_t> numbers, TwoGenerationFilter& filter,
                    Restored& restored);
  bool restore_bits(std::uint64_t number, TwoGenerationFilter& filter, Restored& restored);
  Result<std::unique_ptr<File>> open_current(WallTime now);
  Result<std::unique_ptr<File>> create(SightingFile kind, std::uint64_t& number);
  Result<> begin_file(WallTime now);
  void end_generation() noexcept;
  void give_up_previous() noexcept;
  void remove_older();
  void remove_bits_but(std::uint64_t kept);
  bool has_room_for_bits() const noexcept;
  std::uint64_t generation_bytes_max() const noexcept;

  FileSystem& files_;
  const Options options_;
  // Of the generation that takes marks, and of the one before it; 0: none (yet).
  std::uint64_t generation_ = 0;
  std::uint64_t previous_generation_ = 0;
  WallTime started_{};                  // the generation
  std::uint64_t generation_files_ = 0;  // of it
  std::uint64_t generation_bytes_ = 0;  // in all of them
  std::uint64_t generation_marks_ = 0;  // likewise
  std::uint64_t previous_marks_ = 0;    // of the one before it
  std::uint64_t given_up_marks_ = 0;
  std::uint64_t number_ = 0;     // of the file that takes marks; 0: none (yet)
  std::uint64_t end_bytes_ = 0;  // where its next frame goes
  std::uint64_t rotations_ = 0;
  std::uint64_t last_number_ = 0;      // that a file was ever given
  std::vector<std::string> unusable_;  // files of our names without our marks
  bool has_retired_bits_ = false;      // to be removed with the next file
  bool is_synced_ = true;
  bool is_directory_synced_ = true;
  std::vector<std::byte> buffer_;  // for reuse
  std::uint64_t written_bytes_ = 0;
};

/// The rate of one full generation of a filter that was sized for this configured rate.
double previous_rate_max(double configured_rate) noexcept;

}  // namespace secondsight::admission
