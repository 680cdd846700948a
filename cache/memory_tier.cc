#include "cache/memory_tier.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "config/check.h"
#include "config/units.h"

namespace secondsight::cache {
namespace {

constexpr std::uint64_t kShardBytesMin = 16_MiB;
constexpr std::size_t kShardsMax = 64;     // more mutexes than cores gain nothing
constexpr std::uint64_t kObjectShare = 8;  // of a shard: one object must not sweep out all others
constexpr std::uint64_t kObjectBytesMax = 4_MiB;  // larger ones are the disk's and the page cache's
/// The filter remembers for longer than a ghost queue would: what is larger than this share of a
/// shard and was seen long ago must prove itself, or a few of them sweep out all others.
constexpr std::uint64_t kSeenBeforeShare = 128;
constexpr std::uint64_t kSmallShare = 10;  // of a shard for newcomers, as in the paper
constexpr std::uint8_t kUsesMax = 3;       // two bits, as in the paper

using Slot = std::uint32_t;
constexpr Slot kNoSlot = UINT32_MAX;

enum class QueueName : std::uint8_t { Small, Main };

struct Node {
  ObjectPtr object;  // null: the slot is free
  std::uint64_t bytes = 0;
  Slot newer = kNoSlot;
  Slot older = kNoSlot;  // links the free slots, too
  QueueName queue = QueueName::Small;
  std::uint8_t uses = 0;
};

/// A FIFO through the nodes.
struct Queue {
  Slot newest = kNoSlot;
  Slot oldest = kNoSlot;
  std::uint64_t bytes = 0;
};

using Map = boost::unordered_flat_map<admission::Fingerprint, Slot, admission::FingerprintHash>;

/// Boost's table keeps 16 bytes of metadata for every 15 elements.
std::uint64_t table_bytes(const Map& map) noexcept {
  return map.bucket_count() * (sizeof(Map::value_type) + 2);
}

}  // namespace

class MemoryTier::Shard {
 public:
  void set_capacity(std::uint64_t bytes) { capacity_bytes_ = bytes; }

  ObjectPtr find(const CacheKey& key, std::uint8_t use) noexcept {
    const std::lock_guard lock(mutex_);
    const Slot slot = slot_of(key);
    if (slot == kNoSlot) return nullptr;
    Node& node = nodes_[slot];
    node.uses = static_cast<std::uint8_t>(std::min<int>(node.uses + use, kUsesMax));
    return node.object;
  }

  /// What went out, to be released by the caller without the lock.
  std::vector<ObjectPtr> insert(ObjectPtr object, std::uint64_t bytes, Newcomer newcomer) {
    std::vector<ObjectPtr> released;
    const std::lock_guard lock(mutex_);
    const admission::Fingerprint fingerprint = object->key.fingerprint();
    if (const Slot same = slot_of(object->key); same != kNoSlot) {
      Node& node = nodes_[same];
      queue_of(node).bytes += bytes - node.bytes;
      node.bytes = bytes;
      released.push_back(std::exchange(node.object, std::move(object)));
      make_room(kNoSlot, released);
      return released;
    }
    // Another key of this fingerprint gives way: the table holds one.
    if (const auto other = slots_.find(fingerprint); other != slots_.end())
      evict(other->second, released);
    const Slot slot = take_slot();
    slots_.emplace(fingerprint, slot);
    Node& node = nodes_[slot];
    node.object = std::move(object);
    node.bytes = bytes;
    node.uses = 0;
    const bool is_trusted =
        newcomer == Newcomer::SeenBefore && bytes <= capacity_bytes_ / kSeenBeforeShare;
    push(slot, is_trusted ? QueueName::Main : QueueName::Small);
    make_room(slot, released);
    return released;
  }

  ObjectPtr erase(const CacheKey& key) noexcept {
    const std::lock_guard lock(mutex_);
    const Slot slot = slot_of(key);
    if (slot == kNoSlot) return nullptr;
    slots_.erase(key.fingerprint());
    return drop(slot);
  }

  /// What is there now, and what is to be released by the caller without the lock.
  struct Replaced {
    ObjectPtr now;
    std::vector<ObjectPtr> released;
  };
  Replaced replace(const ObjectPtr& old, ObjectPtr fresh, std::uint64_t bytes) {
    Replaced replaced;
    const std::lock_guard lock(mutex_);
    const Slot slot = slot_of(old->key);
    if (slot == kNoSlot) return replaced;
    Node& node = nodes_[slot];
    if (node.object != old) {
      replaced.now = node.object;
      return replaced;
    }
    queue_of(node).bytes += bytes - node.bytes;
    node.bytes = bytes;
    node.object = fresh;
    replaced.now = std::move(fresh);
    make_room(kNoSlot, replaced.released);
    return replaced;
  }

  ObjectPtr erase(const ObjectPtr& object) noexcept {
    const std::lock_guard lock(mutex_);
    const Slot slot = slot_of(object->key);
    if (slot == kNoSlot || nodes_[slot].object != object) return nullptr;
    slots_.erase(object->key.fingerprint());
    return drop(slot);
  }

  /// False: there are no more slots.
  bool walk(std::size_t& slot, std::size_t slots, std::vector<ObjectPtr>& objects) const {
    const std::lock_guard lock(mutex_);
    for (; slots > 0 && slot < nodes_.size(); ++slot, --slots)
      if (nodes_[slot].object) objects.push_back(nodes_[slot].object);
    return slot < nodes_.size();
  }

  void note_not_on_disk(const admission::Fingerprint& fingerprint) noexcept {
    const std::lock_guard lock(mutex_);
    const auto entry = slots_.find(fingerprint);
    if (entry != slots_.end())
      nodes_[entry->second].object->on_disk.store(false, std::memory_order_relaxed);
  }

  std::uint64_t bytes() const noexcept {
    const std::lock_guard lock(mutex_);
    return used_bytes();
  }
  std::uint64_t objects() const noexcept {
    const std::lock_guard lock(mutex_);
    return slots_.size();
  }
  std::uint64_t evictions() const noexcept {
    const std::lock_guard lock(mutex_);
    return evictions_;
  }

 private:
  Slot slot_of(const CacheKey& key) const noexcept {
    const auto entry = slots_.find(key.fingerprint());
    if (entry == slots_.end()) return kNoSlot;
    return nodes_[entry->second].object->key.text() == key.text() ? entry->second : kNoSlot;
  }

  Queue& queue_of(const Node& node) noexcept {
    return node.queue == QueueName::Small ? small_ : main_;
  }

  std::uint64_t used_bytes() const noexcept {
    return small_.bytes + main_.bytes + table_bytes(slots_) + nodes_.capacity() * sizeof(Node);
  }

  Slot take_slot() {
    if (free_ == kNoSlot) {
      CHECK(nodes_.size() < kNoSlot);
      nodes_.emplace_back();
      return static_cast<Slot>(nodes_.size() - 1);
    }
    return std::exchange(free_, nodes_[free_].older);
  }

  void push(Slot slot, QueueName name) noexcept {
    Node& node = nodes_[slot];
    node.queue = name;
    Queue& queue = queue_of(node);
    node.newer = kNoSlot;
    node.older = queue.newest;
    (queue.newest == kNoSlot ? queue.oldest : nodes_[queue.newest].newer) = slot;
    queue.newest = slot;
    queue.bytes += node.bytes;
  }

  void unlink(Slot slot) noexcept {
    const Node& node = nodes_[slot];
    Queue& queue = queue_of(node);
    (node.newer == kNoSlot ? queue.newest : nodes_[node.newer].older) = node.older;
    (node.older == kNoSlot ? queue.oldest : nodes_[node.older].newer) = node.newer;
    queue.bytes -= node.bytes;
  }

  /// Frees the slot; the map still has to forget it.
  ObjectPtr drop(Slot slot) noexcept {
    unlink(slot);
    Node& node = nodes_[slot];
    node.older = std::exchange(free_, slot);
    return std::move(node.object);
  }

  void evict(Slot slot, std::vector<ObjectPtr>& released) {
    slots_.erase(nodes_[slot].object->key.fingerprint());
    released.push_back(drop(slot));
    ++evictions_;
  }

  /// `newcomer` goes last of all: it was not there long enough to be judged.
  void make_room(Slot newcomer, std::vector<ObjectPtr>& released) {
    while (used_bytes() > capacity_bytes_ && !slots_.empty()) {
      const bool small_has_old = small_.oldest != kNoSlot && small_.oldest != newcomer;
      const bool main_has_old = main_.oldest != kNoSlot && main_.oldest != newcomer;
      const bool small_is_full = small_.bytes > capacity_bytes_ / kSmallShare;
      if (small_has_old && (small_is_full || !main_has_old)) {
        advance_small(released);
      } else if (main_has_old) {
        advance_main(released);
      } else {
        evict(newcomer, released);
      }
    }
  }

  void advance_small(std::vector<ObjectPtr>& released) {
    const Slot slot = small_.oldest;
    if (nodes_[slot].uses == 0) {
      evict(slot, released);
      return;
    }
    unlink(slot);
    nodes_[slot].uses = 0;
    push(slot, QueueName::Main);
  }

  void advance_main(std::vector<ObjectPtr>& released) {
    const Slot slot = main_.oldest;
    if (nodes_[slot].uses == 0) {
      evict(slot, released);
      return;
    }
    unlink(slot);
    --nodes_[slot].uses;
    push(slot, QueueName::Main);
  }

  mutable std::mutex mutex_;
  std::uint64_t capacity_bytes_ = 0;
  Map slots_;
  std::vector<Node> nodes_;
  Slot free_ = kNoSlot;
  Queue small_;
  Queue main_;
  std::uint64_t evictions_ = 0;
};

MemoryTier::MemoryTier(std::uint64_t capacity_bytes)
    : capacity_bytes_(capacity_bytes),
      shard_count_(std::clamp<std::size_t>(capacity_bytes / kShardBytesMin, 1, kShardsMax)),
      shards_(std::make_unique<Shard[]>(shard_count_)) {
  for (std::size_t i = 0; i < shard_count_; ++i)
    shards_[i].set_capacity(capacity_bytes_ / shard_count_);
}

MemoryTier::~MemoryTier() = default;

MemoryTier::Shard& MemoryTier::shard_of(const admission::Fingerprint& key) const noexcept {
  // The low half places the key inside the shard's table, so the high half picks the shard.
  return shards_[key.high % shard_count_];
}

ObjectPtr MemoryTier::find(const CacheKey& key) noexcept {
  return shard_of(key.fingerprint()).find(key, 1);
}

ObjectPtr MemoryTier::peek(const CacheKey& key) const noexcept {
  return shard_of(key.fingerprint()).find(key, 0);
}

void MemoryTier::insert(ObjectPtr object, Newcomer newcomer) {
  CHECK(object != nullptr);
  const std::uint64_t bytes = object->memory_bytes();
  Shard& shard = shard_of(object->key.fingerprint());
  if (bytes > object_bytes_max()) {
    shard.erase(object->key);
    return;
  }
  const std::vector<ObjectPtr> released = shard.insert(std::move(object), bytes, newcomer);
}

void MemoryTier::erase(const CacheKey& key) noexcept {
  shard_of(key.fingerprint()).erase(key);
}

ObjectPtr MemoryTier::replace(const ObjectPtr& old, ObjectPtr fresh) {
  const std::uint64_t bytes = fresh->memory_bytes();
  return shard_of(old->key.fingerprint()).replace(old, std::move(fresh), bytes).now;
}

void MemoryTier::erase(const ObjectPtr& object) noexcept {
  shard_of(object->key.fingerprint()).erase(object);
}

bool MemoryTier::walk(Walk& walk, std::size_t slots, std::vector<ObjectPtr>& objects) const {
  if (walk.shard == shard_count_) return false;
  if (!shards_[walk.shard].walk(walk.slot, slots, objects)) {
    ++walk.shard;
    walk.slot = 0;
  }
  return walk.shard < shard_count_;
}

void MemoryTier::note_not_on_disk(const admission::Fingerprint& fingerprint) noexcept {
  shard_of(fingerprint).note_not_on_disk(fingerprint);
}

std::uint64_t MemoryTier::object_bytes_max() const noexcept {
  return std::min(capacity_bytes_ / shard_count_ / kObjectShare, kObjectBytesMax);
}

std::uint64_t MemoryTier::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < shard_count_; ++i) sum += shards_[i].bytes();
  return sum;
}

std::uint64_t MemoryTier::objects() const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < shard_count_; ++i) sum += shards_[i].objects();
  return sum;
}

std::uint64_t MemoryTier::evictions() const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < shard_count_; ++i) sum += shards_[i].evictions();
  return sum;
}

std::uint64_t MemoryTier::capacity_bytes() const noexcept {
  return capacity_bytes_;
}

}  // namespace secondsight::cache
