"""What protects the filter's guarantee, and each line of it taken away. See run, beside this file, and docs/testing.md."""

from mutation import Mutation

# The quick ones first; the first that fails ends a mutant.
TESTS = [
    "admission/admission_test",
    "admission/admission_race_test",
    "admission/admission_stress_test",
]

HEADER = "admission/two_generation_filter.h"
SOURCE = "admission/two_generation_filter.cc"

CLEAR = "  clear_half(static_cast<unsigned>(epoch & 1U), position, end);  // about to become `current`\n"
PUBLISH = ("  // Release: the stretch is empty for whoever sees it in the new epoch (sight()'s acquire).\n"
           "  state_.store(make_state(epoch, end), std::memory_order_release);\n")

MUTATIONS = [Mutation(*entry, tests=TESTS) for entry in [
    ("a stretch is cleared after its position was published", SOURCE, CLEAR + PUBLISH, PUBLISH + CLEAR),
    ("nothing is cleared", SOURCE, CLEAR, ""),
    ("the other half is cleared", SOURCE, CLEAR, CLEAR.replace("epoch & 1U", "~epoch & 1U")),
    ("a stretch is one line too long", SOURCE, PUBLISH,
     PUBLISH.replace("(epoch, end)", "(epoch, std::min(end + 1, size_.line_count))")),
    ("a rotation begins with half of the lines in the new epoch", SOURCE,
     "  state_.store(make_state(epoch, 0), std::memory_order_release);",
     "  state_.store(make_state(epoch, size_.line_count / 2), std::memory_order_release);"),
    ("the position of the sweep is not asked for", HEADER,
     "return epoch_bit ^ (line >= position_of(state) ? 1U : 0U);",
     "return epoch_bit ^ static_cast<unsigned>(line & 0U);"),
    ("the line at the position is in the new epoch", HEADER,
     "line >= position_of(state)", "line > position_of(state)"),
    ("a mark is loaded, changed and stored", HEADER,
     "line.halves[current][w].fetch_or(address.masks[w], std::memory_order_relaxed);",
     "line.halves[current][w].store(line.halves[current][w].load() | address.masks[w]);"),
    ("a mark goes to the other half", HEADER,
     "line.halves[current][w].fetch_or(", "line.halves[current ^ 1U][w].fetch_or("),
    ("a repeat found in previous is not marked in current", HEADER,
     "  if (missing.in_current == 0) return Sighting::Repeat;",
     "  if (missing.in_current == 0 || missing.in_previous == 0) return Sighting::Repeat;"),
    ("previous is not asked", HEADER,
     "  return missing.in_previous == 0 ? Sighting::Repeat : Sighting::First;",
     "  return Sighting::First;"),
    ("a generation's age counts from the begin of its sweep", SOURCE,
     "if (!full && now - to_time(swept_at_) < window_) return;",
     "if (!full && now - to_time(rotated_at_) < window_) return;"),
    ("marks made during a sweep count for the fill after it", SOURCE,
     " &&\n                    marks_.value() - marks_at_sweep_end_ >= planned - planned / kFillSlack;", ";"),
    ("there is no rotation by fill", SOURCE, "const bool full = marks_in_generation() >= planned &&",
     "const bool full = marks_in_generation() >= planned && planned == 0 &&"),
    ("probes come from the hash as it is", HEADER,
     "const std::uint64_t mixed = hash * 0x9E3779B97F4A7C15U;", "const std::uint64_t mixed = hash;"),
    ("the state is loaded relaxed", HEADER,
     "current_half(state_.load(std::memory_order_acquire), address.line);",
     "current_half(state_.load(std::memory_order_relaxed), address.line);",
     "an x86 processor orders every load so, and g++ moves no atomic access; ThreadSanitizer has nothing to report "
     "where all accesses are atomic"),
    ("the position is stored relaxed", SOURCE, PUBLISH, PUBLISH.replace("order_release", "order_relaxed"), "likewise"),
]]
