#pragma once
#include <cstdint>
#include <deque>
#include <optional>

#include "admission/admission_policy.h"
#include "admission/bloom_math.h"
#include "admission/two_generation_filter.h"

namespace secondsight::admission {

/// Admits a key at its n-th sighting: a cascade of n-1 filters, of which the k-th holds the keys
/// sighted at least k times. A sighting asks them in order and ends at the first that did not know
/// the key, which has then marked it. So a stranger costs one memory access, and what is admitted
/// n-1 of them.
///
/// Guarantee: a key sighted n times, each time within one generation of the time before, is
/// admitted. The window counts from one sighting to the next, as it does for n = 2.
/// Error: a key sighted j < n-1 times lately is admitted at its next sighting by n-1-j false
/// answers, one of each filter that it has not been marked in. With rate r for each filter that is
/// r^(n-1-j) at most: a stranger r^(n-1). Both are argued in nth_sighting.cc.
///
/// Threads: as TwoGenerationFilter.
class NthSighting final : public AdmissionPolicy {
 public:
  /// `sightings`: n, at least 2. Each filter has `size`: its memory is n-1 times that. Throws
  /// std::bad_alloc.
  NthSighting(const FilterSize& size, SteadyTime::duration window, SteadyTime now,
              unsigned sightings);

  /// Of the first filter: most sightings end there.
  void prefetch(const Fingerprint& key) const noexcept override { filters_.front().prefetch(key); }
  Verdict sight(const Fingerprint& key, std::optional<std::uint64_t> body_bytes) noexcept override;
  Verdict peek(const Fingerprint& key,
               std::optional<std::uint64_t> body_bytes) const noexcept override;
  unsigned sightings_needed() const noexcept override {
    return static_cast<unsigned>(filters_.size()) + 1;
  }
  void maintain(SteadyTime now) noexcept override;
  /// Memory and rotations of all filters; the rate at which a stranger is admitted at once; the
  /// rest is of the first filter, which sees every key.
  FilterStatus status(SteadyTime now) const noexcept override;

 private:
  static Fingerprint key_for(const Fingerprint& key, std::size_t filter) noexcept;
  static Verdict refusal(std::size_t filter) noexcept {
    return filter == 0 ? Verdict::FirstSighting : Verdict::FewSightings;
  }

  std::deque<TwoGenerationFilter> filters_;  // which cannot be moved
};

}  // namespace secondsight::admission
