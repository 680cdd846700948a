#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "admission/fingerprint.h"
#include "config/clock.h"
#include "config/settings.h"

namespace secondsight::admission {

class TwoGenerationFilter;

/// What a policy says to one sighting of a storable response.
enum class Verdict : std::uint8_t {
  Always,         // admitted: the policy admits everything
  Repeat,         // admitted: seen before within the window, as often as the policy asks for
  Chance,         // admitted: drawn
  FirstSighting,  // refused: seen for the first time
  FewSightings,   // refused: seen before, but not often enough
  NotChosen,      // refused: not drawn
  Never,          // refused: the policy admits nothing
  Undecided,      // of peek() alone: sight() will draw, Chance or NotChosen
};
constexpr bool admits(Verdict v) noexcept {
  return v == Verdict::Always || v == Verdict::Repeat || v == Verdict::Chance;
}

/// The name of a verdict: that of the decision it leads to (cache/detail.h), or "by-chance".
constexpr std::string_view to_string(Verdict v) noexcept {
  constexpr std::string_view kNames[] = {"always",        "repeat",     "chance", "first-sighting",
                                         "few-sightings", "not-chosen", "never",  "by-chance"};
  return kNames[static_cast<std::size_t>(v)];
}

/// A filter's state, for metrics.
struct FilterStatus {
  std::uint64_t memory_bytes = 0;
  std::uint64_t marked_keys = 0;      // in the current generation
  double fill = 0;                    // share of set bits in the current generation, sampled
  double false_positive_rate = 0;     // of both generations now, from the bits of the sampled lines
  SteadyTime::duration window_age{};  // since the current generation began
  SteadyTime::duration last_generation{};  // how long the one before it took marks; zero for none
  std::uint64_t rotations_by_age = 0;
  std::uint64_t rotations_by_fill = 0;
};

/// Decides which storable responses are written to disk. Thread-safe: every call from any thread,
/// except maintain(), which belongs to one maintenance thread.
class AdmissionPolicy {
 public:
  virtual ~AdmissionPolicy() = default;

  /// Starts the memory access that sight() will need. Call it as soon as the key is hashed.
  virtual void prefetch(const Fingerprint&) const noexcept {}

  /// Counts one sighting and says what it means. Asked once per sighting, after the response head
  /// is known to be storable and before any body byte is kept. `body_bytes` empty: not known.
  virtual Verdict sight(const Fingerprint&, std::optional<std::uint64_t> body_bytes) noexcept = 0;

  /// What sight() would say now, remembering nothing. Undecided where that is drawn.
  virtual Verdict peek(const Fingerprint&,
                       std::optional<std::uint64_t> body_bytes) const noexcept = 0;

  /// The chance with which sight() admits where peek() says Undecided.
  virtual double chance(std::optional<std::uint64_t> /*body_bytes*/) const noexcept { return 1; }

  /// At which sighting within the window a key is admitted, where the policy counts them.
  virtual unsigned sightings_needed() const noexcept { return 2; }

  /// Whether a verdict admits what is known to have been sighted before (it is in memory), even if
  /// the policy has forgotten.
  bool admits_known(Verdict verdict) const noexcept {
    return admits(verdict) || (verdict == Verdict::FirstSighting && sightings_needed() <= 2);
  }

  /// The key was purged: its next sighting is the first, where the policy can forget one key.
  virtual void forget(const Fingerprint&) noexcept {}

  /// Called again and again (10 to 100 times a second): rotates when due and clears a stretch.
  virtual void maintain(SteadyTime /*now*/) noexcept {}

  /// Empty memory_bytes when the policy keeps no filter.
  virtual FilterStatus status(SteadyTime /*now*/) const noexcept { return {}; }

  /// The filter whose sightings can outlive the process (sighting_journal.h). Null: there is none.
  virtual TwoGenerationFilter* filter() noexcept { return nullptr; }
};

/// The policy that `settings` names. `seed` is of what it draws; empty: from the random device, so
/// that no two processes draw alike. Throws std::bad_alloc when the filter does not fit in memory,
/// and std::invalid_argument with the explanation of bloom_math.h when no sensible filter has this
/// size, or where what else the policy needs is out of its range.
std::unique_ptr<AdmissionPolicy> make_policy(const AdmissionSettings& settings, SteadyTime now,
                                             std::optional<std::uint64_t> seed = std::nullopt);

}  // namespace secondsight::admission
