#include "admission/nth_sighting.h"

#include "config/check.h"

// Why no key is refused at its n-th sighting
// ------------------------------------------
// Let a key be sighted at t(1) .. t(n), and let no two that follow each other be further apart than
// one generation. Filter k is asked at a sighting if filters 1 .. k-1 knew the key, and whoever is
// asked marks it. By induction over i: the i-th sighting asks filters 1 .. i (those there are).
//   i = 1: filter 1 is always asked.
//   i + 1: the i-th sighting asked, and so marked, filters 1 .. i at t(i). A filter never answers
//          First within one generation after it marked a key (two_generation_filter.cc), and t(i+1)
//          is within that of t(i); so all of them know the key, and filter i+1 is asked as well.
// The n-th sighting is answered Repeat by filters 1 .. n-1: admitted.
//
// The argument never compares two filters. Each may rotate when it likes: by age they do so
// together; by fill the first rotates soonest, since every key that the k-th marks the ones before
// it have marked. A mark in filter k+1 may then outlive the one in filter k. Such a key is sighted
// anew for filter k and finds filter k+1 ahead: it is admitted with fewer sightings than n within
// the last window, never with fewer than n in all (but for false answers). Early, never late.
//
// Why the rates multiply
// ----------------------
// The keys of filter k+1 are among those of filter k. Under one hash they would share lines and
// bits, and whoever passes filter k by chance would likely pass the next by the same bits. So each
// filter has its own hash of the key, a remix of the fingerprint; then the false answers are
// independent. Filters above the first hold fewer keys than they were sized for, which only lowers
// their rate.
namespace secondsight::admission {

NthSighting::NthSighting(const FilterSize& size, SteadyTime::duration window, SteadyTime now,
                         unsigned sightings) {
  CHECK(sightings >= 2);
  for (unsigned k = 1; k < sightings; ++k) filters_.emplace_back(size, window, now);
}

/// The finaliser of SplitMix64: every bit of the fingerprint reaches every bit of the filter's
/// hash. The first filter takes it as it is.
Fingerprint NthSighting::key_for(const Fingerprint& key, std::size_t filter) noexcept {
  if (filter == 0) return key;
  std::uint64_t x = key.high + filter * 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return {x ^ (x >> 31U), key.low};
}

Verdict NthSighting::sight(const Fingerprint& key,
                           std::optional<std::uint64_t> /*body_bytes*/) noexcept {
  for (std::size_t k = 0; k < filters_.size(); ++k)
    if (filters_[k].sight(key_for(key, k)) == Sighting::First) return refusal(k);
  return Verdict::Repeat;
}

Verdict NthSighting::peek(const Fingerprint& key,
                          std::optional<std::uint64_t> /*body_bytes*/) const noexcept {
  for (std::size_t k = 0; k < filters_.size(); ++k)
    if (filters_[k].peek(key_for(key, k)) == Sighting::First) return refusal(k);
  return Verdict::Repeat;
}

void NthSighting::maintain(SteadyTime now) noexcept {
  for (TwoGenerationFilter& filter : filters_) filter.maintain(now);
}

FilterStatus NthSighting::status(SteadyTime now) const noexcept {
  FilterStatus all = filters_.front().status(now);
  for (std::size_t k = 1; k < filters_.size(); ++k) {
    const FilterStatus one = filters_[k].status(now);
    all.memory_bytes += one.memory_bytes;
    all.false_positive_rate *= one.false_positive_rate;
    all.rotations_by_age += one.rotations_by_age;
    all.rotations_by_fill += one.rotations_by_fill;
  }
  return all;
}

}  // namespace secondsight::admission
