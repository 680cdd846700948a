#include "proxy/flight_table.h"

#include "proxy/flight.h"

namespace secondsight::proxy {
namespace {

std::size_t shard_of(const admission::Fingerprint& key) noexcept {
  return key.high >> 58;
}

std::uint32_t seconds_of(SteadyTime now) noexcept {
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count());
}

}  // namespace

std::shared_ptr<Flight> FlightTable::find_or_add(const admission::Fingerprint& key,
                                                 const std::shared_ptr<Flight>& fresh) {
  Shard& shard = shards_[shard_of(key)];
  const std::lock_guard lock(shard.mutex);
  return shard.flights.try_emplace(key, fresh).first->second;
}

void FlightTable::remove(const admission::Fingerprint& key, const Flight& flight) {
  std::shared_ptr<Flight> last;  // let go outside the lock
  Shard& shard = shards_[shard_of(key)];
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.flights.find(key);
  if (found == shard.flights.end() || found->second.get() != &flight) return;
  last = std::move(found->second);
  shard.flights.erase(found);
}

bool FlightTable::contains(const admission::Fingerprint& key) const {
  const Shard& shard = shards_[shard_of(key)];
  const std::lock_guard lock(shard.mutex);
  return shard.flights.contains(key);
}

std::uint64_t FlightTable::count() const {
  std::uint64_t sum = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    sum += shard.flights.size();
  }
  return sum;
}

void FlightTable::note_uncacheable(const admission::Fingerprint& key, SteadyTime now) noexcept {
  const std::uint64_t until = seconds_of(now + kUncacheableMemory);
  uncacheable_[key.low % kUncacheableSlots].store((key.high << 32) | until,
                                                  std::memory_order_relaxed);
}

void FlightTable::note_cacheable(const admission::Fingerprint& key) noexcept {
  auto& slot = uncacheable_[key.low % kUncacheableSlots];
  if ((slot.load(std::memory_order_relaxed) >> 32) == (key.high & UINT32_MAX))
    slot.store(0, std::memory_order_relaxed);
}

bool FlightTable::is_uncacheable(const admission::Fingerprint& key, SteadyTime now) const noexcept {
  const std::uint64_t entry =
      uncacheable_[key.low % kUncacheableSlots].load(std::memory_order_relaxed);
  return (entry >> 32) == (key.high & UINT32_MAX) && (entry & UINT32_MAX) > seconds_of(now);
}

bool FlightTable::reserve_whole(std::uint64_t bytes) noexcept {
  if (whole_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= kWholeBytesMax)
    return true;
  whole_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

void FlightTable::release_whole(std::uint64_t bytes) noexcept {
  whole_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace secondsight::proxy
