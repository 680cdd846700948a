#include "proxy/flight_table.h"

#include "proxy/flight.h"

namespace secondsight::proxy {
namespace {

std::size_t shard_of(const admission::Fingerprint& key) noexcept {
  return key.high >> 58;
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
