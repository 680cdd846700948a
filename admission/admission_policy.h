#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

#include "admission/fingerprint.h"
#include "config/clock.h"
#include "config/settings.h"

namespace secondsight::admission {

/// What a policy says to one sighting of a storable response.
enum class Verdict : std::uint8_t {
  Always,         // admitted: the policy admits everything
  Repeat,         // admitted: seen before within the window
  FirstSighting,  // refused: seen for the first time
  Never,          // refused: the policy admits nothing
};
constexpr bool admits(Verdict v) noexcept {
  return v == Verdict::Always || v == Verdict::Repeat;
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

class TwoGenerationFilter;

/// Decides which storable responses are written to disk. Thread-safe: every call from any thread,
/// except maintain(), which belongs to one maintenance thread.
class AdmissionPolicy {
 public:
  virtual ~AdmissionPolicy() = default;

  /// Starts the memory access that sight() will need. Call it as soon as the key is hashed.
  virtual void prefetch(const Fingerprint&) const noexcept {}

  /// Counts one sighting and says what it means. Asked once per sighting, after the response head
  /// is known to be storable and before any body byte is kept.
  virtual Verdict sight(const Fingerprint&) noexcept = 0;

  /// What sight() would say now, remembering nothing.
  virtual Verdict peek(const Fingerprint&) const noexcept = 0;

  /// Called again and again (10 to 100 times a second): rotates when due and clears a stretch.
  virtual void maintain(SteadyTime /*now*/) noexcept {}

  /// Empty memory_bytes when the policy keeps no filter.
  virtual FilterStatus status(SteadyTime /*now*/) const noexcept { return {}; }

  /// The filter whose sightings can outlive the process (sighting_journal.h). Null: there is none.
  virtual TwoGenerationFilter* filter() noexcept { return nullptr; }
};

/// The policy that `settings` names. Throws std::bad_alloc when the filter does not fit in memory,
/// and std::invalid_argument with the explanation of bloom_math.h when no sensible filter has this
/// size.
std::unique_ptr<AdmissionPolicy> make_policy(const AdmissionSettings& settings, SteadyTime now);

}  // namespace secondsight::admission
