#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace secondsight::loadtest {

/// A request sequence as the models see it: objects are numbers, each with one size for good.
struct ModelTrace {
  std::span<const std::uint32_t> requests;   // indexes into the next two
  std::vector<std::uint64_t> body_bytes;     // what a hit saves
  std::vector<std::uint64_t> charged_bytes;  // what it takes of the capacity, above 0
  /// For each request: whether a miss may be kept. What an admission policy says when it sights
  /// every request in order. Empty: all may.
  std::vector<bool> admitted;
};

struct ModelResult {
  std::uint64_t hits = 0;
  std::uint64_t hit_bytes = 0;       // of bodies
  std::uint64_t admitted_bytes = 0;  // charged
};

/// What evicts: the object unused for longest, or the one there for longest.
enum class Eviction : std::uint8_t { LeastRecentlyUsed, FirstIn };

/// A cache of `capacity_bytes` that evicts one object at a time and wastes nothing. Objects whose
/// body is above `body_bytes_max` or that do not fit are passed on.
ModelResult simulate_model(const ModelTrace& trace, std::uint64_t capacity_bytes, Eviction eviction,
                           std::uint64_t body_bytes_max = UINT64_MAX);

/// A cache that knows the future. After each request it evicts what has the greatest product of
/// size and distance to its next request, the newcomer included; what is not asked for again is not
/// kept at all. With equal sizes that is Belady's algorithm, the best there is; with unequal ones
/// nobody knows the best in reasonable time, and this is merely hard to beat. Among objects of
/// nearly one size (a ninth) the farthest counts. `admitted` is not asked.
ModelResult simulate_clairvoyant(const ModelTrace& trace, std::uint64_t capacity_bytes);

/// More hits than any cache of that size can have, clairvoyant ones included: to turn a request
/// into a hit, its object must be kept since the request before, which takes its size times the
/// requests between; the cheapest ones that add up to the capacity times all requests. An infinite
/// cache's hits where that is less. Berger, Beckmann, Harchol-Balter: Practical Bounds on Optimal
/// Caching with Variable Object Sizes, 2018 (PFOO-U).
std::uint64_t hits_bound(const ModelTrace& trace, std::uint64_t capacity_bytes);

}  // namespace secondsight::loadtest
