#include "admission/sighting_journal.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "config/check.h"

namespace secondsight::admission {
namespace {

namespace errc = boost::system::errc;

constexpr std::chrono::milliseconds kFramePause{500};  // between two batches, at least
constexpr std::uint64_t kGenerationFilesMax = 8;       // syncs that may fail in one
constexpr std::uint64_t kBlockBytes = 4096;            // of the file system, for what rounds up

std::uint64_t bits_bytes(const FilterSize& size) noexcept {
  return size.memory_bytes() / 2 + size.memory_bytes() / 1024 + 32 * kBlockBytes;
}

/// One generation's marks. A rotation by fill waits for its call and a sweep, so that a tenth more
/// is room enough.
std::uint64_t marks_bytes(const FilterSize& size, SteadyTime::duration window) noexcept {
  const std::uint64_t keys = size.keys_per_generation + size.keys_per_generation / 10 + 1;
  const auto frames = static_cast<std::uint64_t>(window / kFramePause) + 1;
  return keys * sizeof(std::uint64_t) + std::min(keys, frames) * kFrameHeaderBytes +
         2 * kBlockBytes;
}

std::string why(std::string_view name, const boost::system::error_code& error) {
  std::string_view reason = "cannot be read";
  if (error == errc::bad_message) reason = "damaged, or of another seed";
  if (error == errc::protocol_not_supported) reason = "written by a newer version";
  return std::string(name) + ": " + std::string(reason) + " (" + error.message() + ")";
}

/// The files at the end that share a generation.
std::span<const MarksHeader> last_generation(std::span<const MarksHeader> files) noexcept {
  std::size_t count = 0;
  while (count < files.size() &&
         files[files.size() - 1 - count].generation == files.back().generation)
    ++count;
  return files.last(count);
}

}  // namespace

std::uint64_t SightingJournal::bytes_for(const FilterSize& size,
                                         SteadyTime::duration window) noexcept {
  return 2 * marks_bytes(size, window) + 2 * bits_bytes(size);
}

SightingJournal::SightingJournal(FileSystem& files, const Options& options) noexcept
    : files_(files), options_(options) {
  CHECK(options.bytes_max >= kLeastBytes);
}

bool SightingJournal::has_room_for_bits() const noexcept {
  return options_.bytes_max >= bytes_for(options_.size, options_.window);
}

std::uint64_t SightingJournal::generation_bytes_max() const noexcept {
  const std::uint64_t bits = has_room_for_bits() ? 2 * bits_bytes(options_.size) : 0;
  return (options_.bytes_max - bits) / 2;
}

Result<SightingJournal::Found> SightingJournal::look(Restored& restored) {
  const auto names = files_.list();
  if (!names) return names.error();
  Found found;
  for (const std::string& name : *names) {
    if (const auto number = number_of(SightingFile::Bits, name)) {
      found.bits.push_back(*number);
      last_number_ = std::max(last_number_, *number);
    }
    const auto number = number_of(SightingFile::Marks, name);
    if (!number) continue;
    last_number_ = std::max(last_number_, *number);
    const auto file = files_.open(name);
    const auto read = file ? read_marks_header(**file, options_.seed_id, *number)
                           : Result<MarksHeader>(file.error());
    if (read) {
      found.marks.push_back(*read);
      continue;
    }
    restored.skipped.push_back(why(name, read.error()));
    if (read.error() == errc::bad_message) unusable_.push_back(name);
  }
  std::sort(found.bits.begin(), found.bits.end());
  std::sort(found.marks.begin(), found.marks.end(),
            [](const MarksHeader& a, const MarksHeader& b) { return a.number < b.number; });
  found.latest = last_generation(found.marks);
  found.older =
      last_generation(std::span(found.marks).first(found.marks.size() - found.latest.size()));
  return found;
}

std::optional<MarksRead> SightingJournal::read_generation(std::span<const MarksHeader> files,
                                                          Restored& restored, const Take& take) {
  std::optional<MarksRead> last;
  for (const MarksHeader& header : files) {
    const std::string name = sighting_file_name(SightingFile::Marks, header.number);
    const auto file = files_.open(name);
    const auto read = file ? read_marks(**file, options_.seed_id, header.number, take)
                           : Result<MarksRead>(file.error());
    last.reset();
    if (read) {
      restored.damaged_bytes += read->damaged_bytes;
      restored.cut_off_bytes += read->torn_bytes;
      generation_bytes_ += read->end_bytes;
      last = *read;
    } else {
      restored.skipped.push_back(why(name, read.error()));
    }
  }
  return last;
}

SightingJournal::Age SightingJournal::age_of(const MarksHeader& latest, WallTime now) const {
  // A generation by age lasts a 64th longer than the window, and a rotation is told a little late.
  const auto window = std::chrono::ceil<std::chrono::milliseconds>(options_.window);
  const auto slack = window / 32 + std::chrono::seconds{10};
  Age age;
  age.of_generation = std::max(now - latest.started, WallTime::duration::zero());
  age.is_over = age.of_generation >= window;
  age.is_forgotten = age.of_generation >= 2 * window + slack;
  return age;
}

Result<SightingJournal::Restored> SightingJournal::restore(TwoGenerationFilter& filter,
                                                           WallTime now, SteadyTime steady_now) {
  Restored restored;
  const auto found = look(restored);
  if (!found) return found.error();
  if (found->latest.empty()) return restored;
  const MarksHeader& latest = found->latest.front();
  const Age age = age_of(latest, now);
  if (age.is_forgotten) return restored;
  previous_generation_ = latest.generation;

  std::uint64_t rotations = 0;
  const auto replay = [&](std::span<const std::uint64_t> marks) {
    rotations += filter.replay(marks, steady_now);
    restored.marks += marks.size();
  };
  if (!age.is_over) {
    read_generation(found->older, restored, replay);
    // Where these were more than fit into a generation by now, the last few of them stay.
    if (rotations == 0 || filter.marks_in_generation() >= options_.size.keys_per_generation / 2)
      filter.rotate_at_once(steady_now);
    restored.has_bits = restore_bits(found->bits, filter, restored);
  }
  rotations = 0;
  generation_bytes_ = 0;
  const std::uint64_t older_marks = restored.marks;
  const auto read = read_generation(found->latest, restored, replay);
  if (read) restored.last_mark_age = std::max(now - read->last_written, WallTime::duration::zero());
  if (age.is_over) {
    filter.rotate_at_once(steady_now);
    has_retired_bits_ = true;
  }
  const bool goes_on = !age.is_over && rotations == 0;
  filter.set_generation_start(goes_on ? steady_now - age.of_generation : steady_now);
  const std::uint64_t latest_marks = restored.marks - older_marks;
  previous_marks_ = goes_on ? older_marks : latest_marks;
  if (!goes_on) return restored;
  generation_marks_ = latest_marks;
  generation_ = latest.generation;
  previous_generation_ = found->older.empty() ? 0 : found->older.front().generation;
  started_ = latest.started;
  generation_files_ = found->latest.size();
  if (read) {
    number_ = found->latest.back().number;
    end_bytes_ = read->end_bytes;
  }
  return restored;
}

/// The latest that can be used: one whose writing was cut off has an older one beside it.
bool SightingJournal::restore_bits(std::span<const std::uint64_t> numbers,
                                   TwoGenerationFilter& filter, Restored& restored) {
  for (; !numbers.empty(); numbers = numbers.first(numbers.size() - 1))
    if (restore_bits(numbers.back(), filter, restored)) return true;
  return false;
}

bool SightingJournal::restore_bits(std::uint64_t number, TwoGenerationFilter& filter,
                                   Restored& restored) {
  const std::string name = sighting_file_name(SightingFile::Bits, number);
  const auto file = files_.open(name);
  const auto snapshot = file ? read_snapshot(**file) : Result<Snapshot>(file.error());
  if (!snapshot) {
    restored.skipped.push_back(why(name, snapshot.error()));
    if (snapshot.error() == errc::bad_message) unusable_.push_back(name);
    return false;
  }
  if (!snapshot->header.fits(options_.seed_id, options_.size)) {
    restored.skipped.push_back(name + ": of another seed, or of a filter of another size");
    return false;
  }
  restored.damaged_bytes += snapshot->damaged_bytes;
  const auto merged =
      filter.merge_into_previous(snapshot->generations.front(), options_.previous_rate_max);
  if (merged && merged->is_merged) return true;
  restored.skipped.push_back(name + ": with it the false-positive rate would be too high");
  return false;
}

Result<SightingJournal::Restored> SightingJournal::restore_late(TwoGenerationFilter& filter,
                                                                WallTime now) {
  Restored restored;
  if (filter.sweeping()) return make_error_code(errc::device_or_resource_busy);
  const auto found = look(restored);
  if (!found) return found.error();
  if (found->latest.empty()) return restored;
  const MarksHeader& latest = found->latest.front();
  if (age_of(latest, now).is_forgotten) return restored;
  std::vector<std::uint64_t> words(filter.words_per_generation());
  read_generation(found->latest, restored, [&](std::span<const std::uint64_t> marks) {
    for (const std::uint64_t mark : marks) {
      const auto address = FilterAddress::of(mark, options_.size.line_count);
      for (unsigned w = 0; w < kWordsPerHalf; ++w)
        words[address.line * kWordsPerHalf + w] |= address.masks[w];
    }
    restored.marks += marks.size();
  });
  const auto merged = filter.merge_into_previous(words, options_.previous_rate_max);
  if (!merged) return make_error_code(errc::device_or_resource_busy);
  if (!merged->is_merged) {
    restored.marks = 0;
    restored.skipped.push_back(sighting_file_name(SightingFile::Marks, latest.number) +
                               ": with it the false-positive rate would be too high");
  }
  previous_generation_ = latest.generation;
  return restored;
}

Result<> SightingJournal::append(std::span<const std::uint64_t> marks, WallTime now) {
  const std::uint64_t room = generation_bytes_max() - MarksHeader::kBytes;
  const std::size_t fit = (room - kFrameHeaderBytes) / (sizeof(std::uint64_t) + 1);
  const std::size_t too_many = marks.size() - std::min(marks.size(), fit);
  marks = marks.subspan(too_many);
  if (marks.empty()) return {};
  const std::uint64_t frames = (marks.size() + kFrameMarksMax - 1) / kFrameMarksMax;
  const std::uint64_t bytes = frames * kFrameHeaderBytes + marks.size() * sizeof(std::uint64_t);
  if (generation_ != 0 && (generation_bytes_ + bytes > generation_bytes_max() ||
                           generation_files_ > kGenerationFilesMax))
    give_up_previous();
  auto file = open_current(now);
  if (!file) return file.error();
  buffer_.clear();
  for (auto rest = marks; !rest.empty(); rest = rest.subspan(std::min(rest.size(), kFrameMarksMax)))
    encode_frame({options_.seed_id, number_, end_bytes_ + buffer_.size()}, now,
                 rest.first(std::min(rest.size(), kFrameMarksMax)), buffer_);
  const std::array<std::span<const std::byte>, 1> pieces{buffer_};
  is_synced_ = false;
  if (auto written = (*file)->write_at(end_bytes_, pieces); !written) return written;
  end_bytes_ += buffer_.size();
  generation_bytes_ += buffer_.size();
  generation_marks_ += marks.size();
  given_up_marks_ += too_many;
  written_bytes_ += buffer_.size();
  remove_unusable();
  return {};
}

/// The file that takes marks; a new one where there is none, or it is gone with its directory.
Result<std::unique_ptr<File>> SightingJournal::open_current(WallTime now) {
  if (number_ != 0) {
    auto file = files_.open(sighting_file_name(SightingFile::Marks, number_));
    if (file || file.error() != errc::no_such_file_or_directory) return file;
    number_ = generation_ = previous_generation_ = 0;
  }
  if (const auto begun = begin_file(now); !begun) return begun.error();
  return files_.open(sighting_file_name(SightingFile::Marks, number_));
}

Result<std::unique_ptr<File>> SightingJournal::create(SightingFile kind, std::uint64_t& number) {
  constexpr int kTries = 16;
  Result<std::unique_ptr<File>> file = make_error_code(errc::file_exists);
  for (int i = 0; i < kTries && !file && file.error() == errc::file_exists; ++i) {
    number = ++last_number_;
    file = files_.create(sighting_file_name(kind, number));
  }
  return file;
}

Result<> SightingJournal::begin_file(WallTime now) {
  std::uint64_t number = 0;
  auto file = create(SightingFile::Marks, number);
  if (!file) return file.error();
  MarksHeader header;
  header.seed_id = options_.seed_id;
  header.number = number;
  header.generation = generation_ != 0 ? generation_ : number;
  header.started = generation_ != 0 ? started_ : now;
  header.keys_per_generation = options_.size.keys_per_generation;
  header.line_count = options_.size.line_count;
  const auto bytes = header.encode();
  const std::array<std::span<const std::byte>, 1> pieces{bytes};
  if (auto written = (*file)->write_at(0, pieces); !written) {
    const auto removed = files_.remove(sighting_file_name(SightingFile::Marks, number));
    static_cast<void>(removed);  // without a header it is skipped, and removed another time
    return written;
  }
  if (generation_ == 0) {
    generation_ = number;
    started_ = now;
    generation_files_ = 0;
    generation_bytes_ = 0;
  }
  ++generation_files_;
  generation_bytes_ += bytes.size();
  number_ = number;
  end_bytes_ = bytes.size();
  written_bytes_ += bytes.size();
  is_synced_ = false;
  is_directory_synced_ = false;
  remove_older();
  if (std::exchange(has_retired_bits_, false)) remove_bits_but(0);
  return {};
}

/// Whatever becomes of the next file: no later mark goes to this generation.
void SightingJournal::end_generation() noexcept {
  if (generation_ != 0) {
    previous_generation_ = generation_;
    previous_marks_ = std::exchange(generation_marks_, 0);
  }
  generation_ = number_ = 0;
}

/// There is no room for more: the filter's generation goes on in a new one of the journal, and the
/// oldest marks are not kept any longer.
void SightingJournal::give_up_previous() noexcept {
  given_up_marks_ += previous_marks_;
  end_generation();
}

/// They would count for nothing in bytes_max.
void SightingJournal::remove_unusable() {
  for (const std::string& name : std::exchange(unusable_, {})) {
    const auto removed = files_.remove(name);
    static_cast<void>(removed);  // a later rotation does
  }
}

/// What cannot be removed now is removed another time. A generation's files have no smaller number
/// than its first.
void SightingJournal::remove_older() {
  const auto names = files_.list();
  if (!names) return;
  const std::uint64_t first = previous_generation_ != 0 ? previous_generation_ : generation_;
  for (const std::string& name : *names) {
    const auto number = number_of(SightingFile::Marks, name);
    if (!number || *number >= first) continue;
    const auto removed = files_.remove(name);
    static_cast<void>(removed);
  }
}

void SightingJournal::remove_bits_but(std::uint64_t kept) {
  const auto names = files_.list();
  if (!names) return;
  for (const std::string& name : *names) {
    const auto number = number_of(SightingFile::Bits, name);
    if (!number || *number == kept) continue;
    const auto removed = files_.remove(name);
    static_cast<void>(removed);
  }
}

Result<> SightingJournal::rotate(WallTime now) {
  note_rotation();
  return begin_file(now);
}

void SightingJournal::note_rotation() noexcept {
  end_generation();
  ++rotations_;
  has_retired_bits_ = true;
}

Result<> SightingJournal::sync() {
  if (!is_synced_ && number_ != 0) {
    const auto file = files_.open(sighting_file_name(SightingFile::Marks, number_));
    if (!file) return file.error();
    auto synced = (*file)->sync();
    is_synced_ = true;
    if (!synced) {
      number_ = 0;  // a second sync would prove nothing
      return synced;
    }
  }
  if (is_directory_synced_) return {};
  auto synced = files_.sync_directory();
  is_directory_synced_ = !synced.has_error();
  return synced;
}

Result<> SightingJournal::keep_previous(const TwoGenerationFilter& filter, WallTime now) {
  auto bits = begin_bits(now);
  if (!bits) return bits.error();
  const auto written =
      write_snapshot(*bits->file, filter, SnapshotOf::Previous, options_.seed_id, now);
  return end_bits(std::move(*bits), written);
}

Result<SightingJournal::Bits> SightingJournal::begin_bits(WallTime now) {
  if (!has_room_for_bits()) return make_error_code(errc::no_space_on_device);
  // Bits say nothing of when: the file of marks beside them tells which generation is `previous`.
  if (auto current = open_current(now); !current) return current.error();
  Bits bits;
  bits.rotations = rotations_;
  auto file = create(SightingFile::Bits, bits.number);
  if (!file) return file.error();
  bits.file = std::move(*file);
  return bits;
}

Result<> SightingJournal::end_bits(Bits bits, const Result<>& written) {
  if (!written || bits.rotations != rotations_) {
    const auto removed = files_.remove(sighting_file_name(SightingFile::Bits, bits.number));
    static_cast<void>(removed);  // without a header it is no snapshot; a rotation removes it, too
    return written;
  }
  written_bytes_ += options_.size.memory_bytes() / 2;
  if (auto synced = files_.sync_directory(); !synced) return synced;
  remove_bits_but(bits.number);
  return sync();
}

double previous_rate_max(double configured_rate) noexcept {
  return false_positive_rate(keys_per_line_for(configured_rate));
}

}  // namespace secondsight::admission
