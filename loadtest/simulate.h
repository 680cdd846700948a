#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "config/settings.h"
#include "config/units.h"
#include "loadtest/baseline.h"
#include "loadtest/plan.h"

namespace secondsight::loadtest {

/// The least disk that the settings allow.
inline constexpr std::uint64_t kSimulatedDiskBytesMin = 1_MiB;

/// The cache whose offline run is asked for: what of the settings matters to it.
struct SimulatedCacheSizes {
  std::uint64_t disk_bytes = 0;    // 0: memory only; else at least kSimulatedDiskBytesMin
  std::uint64_t memory_bytes = 0;  // 0: no memory tier
  std::uint64_t max_object = CacheSettings{}.max_object;
};

/// What the cache did. Written bytes are those handed to the log's file system.
struct SimulationResult {
  std::uint64_t memory_hits = 0, disk_hits = 0;
  std::uint64_t hit_bytes = 0;       // of bodies
  std::uint64_t written_bytes = 0;   // all: records, footers, segment headers
  std::uint64_t admitted_bytes = 0;  // records of admitted objects
  std::uint64_t reappended_bytes = 0;
  std::uint64_t disk_bytes_peak = 0, memory_bytes_peak = 0;
  std::uint64_t admission_bytes = 0;  // what the policy remembers sightings in, at the end
  std::uint64_t rotations_by_age = 0, rotations_by_fill = 0;

  std::uint64_t hits() const noexcept { return memory_hits + disk_hits; }
};

/// Runs the plan's requests through the product's own classes (admission policy, memory tier,
/// index, object log and what writes to it) in the order in which the proxy would use them, each
/// request ended before the next begins. The clock is the trace's, bodies are zeros, and the disk
/// is memory. One thread; the same plan and settings give the same result. Throws RunError where
/// the log cannot be opened, std::invalid_argument for an admission that cannot be.
SimulationResult simulate(const Plan& plan, const AdmissionSettings& admission,
                          const SimulatedCacheSizes& sizes);

/// The plan for models of equal size. On disk an object is charged its records, as the log would
/// write them; in memory what Object::memory_bytes() says, and a table's share.
enum class Medium : std::uint8_t { Disk, Memory };
ModelTrace model_trace(const Plan& plan, Medium medium);

/// For each request, whether the policy admits it when it sights them all in order.
std::vector<bool> admitted_requests(const Plan& plan, const AdmissionSettings& admission);

}  // namespace secondsight::loadtest
