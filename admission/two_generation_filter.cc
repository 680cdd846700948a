#include "admission/two_generation_filter.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "config/check.h"

// Why no mark is lost while its window lasts
// ------------------------------------------
// Rotation e turns epoch e-1 into epoch e. For one line i it is three moments, in this order:
//   start(e)   maintain() publishes the new epoch with position 0; line i is still in epoch e-1
//   clear(e)   the half that was `previous` in e-1 is zeroed; it will be `current` in e
//   pass(e)    the position moves beyond i: the line is in epoch e
// done(e) is the last line's pass. In epoch e marks go to half e mod 2, and clear(e) is the only
// write that removes bits from that half since clear(e-2); so a bit set between clear(e) and
// clear(e+2) stays until clear(e+2). Rotations by age keep start(e+1) >= done(e) + window.
//
// A. A sighting reads the state while its line is in epoch e, that is between pass(e) and
// pass(e+1), and
//    sets its bits in half e mod 2. If it does so before clear(e+2), they stay until clear(e+2),
//    which is after start(e+2) >= done(e+1) + window >= pass(e+1) + window: at least a window after
//    the state was read, however the sighting and rotation e+1 interleave. The half that rotation
//    e+1 clears is the other one, so no racing mark is ever put into a half while it is being swept
//    ...
// B. ... unless the thread slept from its read of the state until clear(e+2), that is, for longer
// than a
//    window. Then some of its bits are zeroed and the mark is lost, but its window, counted from
//    that read, is over: whoever comes after this sighting's return comes after the window.
// C. A sighting that sees all its bits in `current` writes nothing. They were set in epoch e and
// not in
//    epoch e-2: the acquire load that saw the line in epoch e also makes clear(e) visible. So they
//    stay as in A.
// D. A sighting of epoch e may find the retiring half of its line half cleared by rotation e+1, and
// say
//    First to a key marked in epoch e-1. That key's time was up: it read its state before pass(e),
//    and clear(e+1) is later than done(e) + window.
// E. An answer reads both halves alike. A thread that works with an outdated state can put a mark
//    into the wrong half, as in A, but never overlooks one.
//
// By fill the argument is the same with marks for time: a rotation by fill starts no sooner than
// keys_per_generation marks after the last one started and 31/32 of that after its sweep was done.
// So a key outlives at least 31/32 of keys_per_generation further marks. The first condition is the
// usual one: marks are counted from the start of a rotation, so that under a steady load every line
// takes exactly as many keys as planned, whatever the pace of the sweep. A sweep ends at the first
// call of maintain() after a 64th of the planned marks, so the second delays a rotation only where
// more than a 64th of them come between two calls.
//
// What a half-line's share can come to at most: keys_per_generation, plus the marks between two
// calls of maintain() (a rotation waits for the call; two calls if the second condition binds),
// plus a 64th when the load leaps from one rotation to the next.
namespace secondsight::admission {
namespace {

constexpr std::uint64_t kMostSampledLines = 16384;
// A generation by fill may end this share of its marks early: a sweep's 64th and a call's 64th.
constexpr std::uint64_t kFillSlack = 32;

SteadyTime to_time(const std::atomic<SteadyTime::rep>& ticks) noexcept {
  return SteadyTime(SteadyTime::duration(ticks.load(std::memory_order_relaxed)));
}

/// Chance that a stranger's probes of one word are both set: two draws of its 64 bits, with
/// repetition.
double match_chance(std::uint64_t word) noexcept {
  const double share = std::popcount(word) / 64.0;
  return share * share;
}

SteadyTime::rep to_ticks(SteadyTime time) noexcept {
  return time.time_since_epoch().count();
}

}  // namespace

TwoGenerationFilter::TwoGenerationFilter(const FilterSize& size, SteadyTime::duration window,
                                         SteadyTime now)
    : size_(size),
      window_(window),
      memory_(size.memory_bytes()),
      lines_(static_cast<Line*>(memory_.data())),
      state_(make_state(0, size.line_count)),
      rotated_at_(to_ticks(now)),
      swept_at_(to_ticks(now)) {
  CHECK(size.line_count > 0 && size.line_count < std::uint64_t{1} << kPositionBits);
  CHECK(size.keys_per_generation > 0);
  CHECK(window > SteadyTime::duration::zero());
  std::uninitialized_value_construct_n(lines_, size.line_count);
}

bool TwoGenerationFilter::sweeping() const noexcept {
  return position_of(state_.load(std::memory_order_relaxed)) < size_.line_count;
}

std::uint64_t TwoGenerationFilter::marks_in_generation() const noexcept {
  // The base first: read the other way round, a rotation in between would make the difference
  // negative.
  const std::uint64_t base = marks_at_rotation_.load(std::memory_order_relaxed);
  const std::uint64_t marks = marks_.value();
  return marks > base ? marks - base : 0;
}

void TwoGenerationFilter::maintain(SteadyTime now) noexcept {
  const std::unique_lock lock(upkeep_, std::try_to_lock);
  if (!lock) return;  // a merge: the next call will do
  if (sweeping())
    sweep(now);
  else
    rotate_if_due(now);
}

void TwoGenerationFilter::rotate_if_due(SteadyTime now) noexcept {
  if (sweep_ended_) {
    // The sweep took time: its end is the next call's `now`, so that no line's window is cut short.
    swept_at_.store(to_ticks(now), std::memory_order_relaxed);
    sweep_ended_ = false;
  }
  const std::uint64_t planned = size_.keys_per_generation;
  const bool full = marks_in_generation() >= planned &&
                    marks_.value() - marks_at_sweep_end_ >= planned - planned / kFillSlack;
  if (!full && now - to_time(swept_at_) < window_) return;
  (full ? rotations_by_fill_ : rotations_by_age_).fetch_add(1, std::memory_order_relaxed);
  start_rotation(now);
  sweep(now);
}

void TwoGenerationFilter::start_rotation(SteadyTime now) noexcept {
  const std::uint64_t epoch = (state_.load(std::memory_order_relaxed) >> kPositionBits) + 1;
  last_generation_.store((now - to_time(rotated_at_)).count(), std::memory_order_relaxed);
  rotated_at_.store(to_ticks(now), std::memory_order_relaxed);
  marks_at_rotation_.store(marks_.value(), std::memory_order_relaxed);
  // Release, with sight()'s acquire. The epoch wraps after 2^24 rotations; only its parity counts.
  state_.store(make_state(epoch, 0), std::memory_order_release);
}

void TwoGenerationFilter::sweep(SteadyTime now) noexcept {
  const std::uint64_t state = state_.load(std::memory_order_relaxed);
  const std::uint64_t epoch = state >> kPositionBits;
  const std::uint64_t position = position_of(state);

  // Whichever is furthest of: an even stretch for each call, and the shares that keep the sweep
  // short beside the generation, in time and in marks.
  const auto steps = static_cast<double>(kSweepSteps);
  const double by_time = steps * std::chrono::duration<double>(now - to_time(rotated_at_)) /
                         std::chrono::duration<double>(window_);
  const double by_marks = steps * static_cast<double>(marks_in_generation()) /
                          static_cast<double>(size_.keys_per_generation);
  const double share = std::min(1.0, std::max(by_time, by_marks));
  const auto by_share = static_cast<std::uint64_t>(share * static_cast<double>(size_.line_count));
  const std::uint64_t by_call = position + (size_.line_count + kSweepSteps - 1) / kSweepSteps;
  const std::uint64_t end = std::min(size_.line_count, std::max(by_share, by_call));

  clear_half(static_cast<unsigned>(epoch & 1U), position, end);  // about to become `current`
  // Release: the stretch is empty for whoever sees it in the new epoch (sight()'s acquire).
  state_.store(make_state(epoch, end), std::memory_order_release);
  if (end == size_.line_count) {
    sweep_ended_ = true;
    marks_at_sweep_end_ = marks_.value();
  }
}

void TwoGenerationFilter::clear_half(unsigned half, std::uint64_t first_line,
                                     std::uint64_t end_line) noexcept {
  for (std::uint64_t i = first_line; i < end_line; ++i) {
    for (std::atomic<std::uint64_t>& word : lines_[i].halves[half]) {
      word.store(0, std::memory_order_relaxed);
    }
  }
}

std::uint64_t TwoGenerationFilter::replay(std::span<const std::uint64_t> marks,
                                          SteadyTime now) noexcept {
  constexpr std::size_t kAhead = 16;     // lines on their way from memory
  constexpr std::size_t kStretch = 256;  // marks between two looks at the fill
  // Generations by fill take a few marks more than planned, as a rotation waits for its call.
  const std::uint64_t full = size_.keys_per_generation + size_.keys_per_generation / 8;
  std::uint64_t rotations = 0;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (i + kAhead < marks.size()) prefetch({marks[i + kAhead], 0});
    sight({marks[i], 0});
    if (i % kStretch != 0 || marks_in_generation() < full) continue;
    rotate_at_once(now);
    ++rotations;
  }
  return rotations;
}

void TwoGenerationFilter::rotate_at_once(SteadyTime now) noexcept {
  start_rotation(now);
  const std::uint64_t of_now = epoch();
  clear_half(static_cast<unsigned>(of_now & 1U), 0, size_.line_count);
  state_.store(make_state(of_now, size_.line_count), std::memory_order_release);
  swept_at_.store(to_ticks(now), std::memory_order_relaxed);
  marks_at_sweep_end_ = marks_.value();
  sweep_ended_ = false;
}

void TwoGenerationFilter::set_generation_start(SteadyTime began) noexcept {
  rotated_at_.store(to_ticks(began), std::memory_order_relaxed);
  swept_at_.store(to_ticks(began), std::memory_order_relaxed);
}

SteadyTime TwoGenerationFilter::generation_start() const noexcept {
  return to_time(rotated_at_);
}

void TwoGenerationFilter::copy_generation(Generation which,
                                          std::span<std::uint64_t> words) const noexcept {
  CHECK(words.size() == words_per_generation());
  const std::uint64_t state = state_.load(std::memory_order_acquire);
  const unsigned other = which == Generation::Previous ? 1 : 0;
  for (std::uint64_t i = 0; i < size_.line_count; ++i) {
    const Half& half = lines_[i].halves[current_half(state, i) ^ other];
    for (unsigned w = 0; w < kWordsPerHalf; ++w)
      words[i * kWordsPerHalf + w] = half[w].load(std::memory_order_relaxed);
  }
}

std::optional<TwoGenerationFilter::Union> TwoGenerationFilter::merge_into_previous(
    std::span<const std::uint64_t> words, double rate_max) noexcept {
  CHECK(words.size() == words_per_generation());
  const std::lock_guard lock(upkeep_);
  if (sweeping()) return std::nullopt;
  const unsigned previous = current_half(state_.load(std::memory_order_relaxed), 0) ^ 1U;
  Union result;
  double matches = 0;
  for (std::uint64_t i = 0; i < size_.line_count; ++i) {
    double match = 1;  // of a stranger: two bits of each word, with repetition
    for (unsigned w = 0; w < kWordsPerHalf; ++w) {
      const std::uint64_t mine = lines_[i].halves[previous][w].load(std::memory_order_relaxed);
      const std::uint64_t both = mine | words[i * kWordsPerHalf + w];
      result.new_bits += static_cast<std::uint64_t>(std::popcount(both ^ mine));
      match *= match_chance(both);
    }
    matches += match;
  }
  result.false_positive_rate = matches / static_cast<double>(size_.line_count);
  if (result.new_bits > 0 && result.false_positive_rate > rate_max) return result;
  for (std::uint64_t i = 0; i < size_.line_count; ++i) {
    for (unsigned w = 0; w < kWordsPerHalf; ++w) {
      lines_[i].halves[previous][w].fetch_or(words[i * kWordsPerHalf + w],
                                             std::memory_order_relaxed);
    }
  }
  result.is_merged = true;
  return result;
}

FilterStatus TwoGenerationFilter::status(SteadyTime now) const noexcept {
  const std::uint64_t state = state_.load(std::memory_order_acquire);
  const std::uint64_t samples = std::min(size_.line_count, kMostSampledLines);
  double set_bits = 0;
  double matches = 0;
  for (std::uint64_t s = 0; s < samples; ++s) {
    const std::uint64_t i = size_.line_count / samples * s;
    const unsigned current = current_half(state, i);
    double in_current = 1;
    double in_previous = 1;
    double in_both = 1;
    for (unsigned w = 0; w < kWordsPerHalf; ++w) {
      const std::uint64_t mine = lines_[i].halves[current][w].load(std::memory_order_relaxed);
      const std::uint64_t old = lines_[i].halves[current ^ 1U][w].load(std::memory_order_relaxed);
      set_bits += std::popcount(mine);
      in_current *= match_chance(mine);
      in_previous *= match_chance(old);
      in_both *= match_chance(mine & old);
    }
    matches += in_current + in_previous - in_both;
  }
  const auto sampled = static_cast<double>(samples);
  FilterStatus status;
  status.memory_bytes = memory_.size_bytes();
  status.marked_keys = marks_in_generation();
  status.fill = set_bits / (sampled * kHalfLineBits);
  status.false_positive_rate = matches / sampled;
  status.window_age = now - to_time(rotated_at_);
  status.last_generation = SteadyTime::duration(last_generation_.load(std::memory_order_relaxed));
  status.rotations_by_age = rotations_by_age_.load(std::memory_order_relaxed);
  status.rotations_by_fill = rotations_by_fill_.load(std::memory_order_relaxed);
  return status;
}

}  // namespace secondsight::admission
