#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache/key.h"
#include "cache/policy/facts.h"
#include "cache/policy/fields.h"

namespace secondsight::cache {

/// One piece of a body: written once, then shared unchanged by flights, readers and the writer.
using Chunk = std::vector<std::byte>;
using ChunkPtr = std::shared_ptr<const Chunk>;

/// A response head as kept: end-to-end fields only, without Age (which is computed). Immutable once
/// shared.
struct ObjectHead {
  int status = 0;
  std::string reason;
  policy::FieldBlock fields;
  policy::ResponseFacts facts;
  policy::ExchangeTimes times{};
};

/// A whole response in memory. Immutable but for its mark.
struct Object {
  Object(CacheKey object_key, std::shared_ptr<const ObjectHead> object_head,
         std::vector<ChunkPtr> object_body = {}, std::uint64_t object_body_bytes = 0)
      : key(std::move(object_key)),
        head(std::move(object_head)),
        body(std::move(object_body)),
        body_bytes(object_body_bytes) {}

  CacheKey key;
  std::shared_ptr<const ObjectHead> head;  // shared with the refreshed copies of the same body
  std::vector<ChunkPtr> body;
  std::uint64_t body_bytes = 0;
  bool is_vary_marker = false;  // no response: head->facts.vary says how to find the variants

  /// Whether the disk has it or the writer has taken it. Relaxed: set twice at worst means written
  /// twice.
  mutable std::atomic<bool> on_disk{false};
  /// No purge up to this one concerns it (PurgeList::sequence()): of a response, as it was before
  /// the origin was asked; it grows as the object is judged. Relaxed: judged again at worst.
  mutable std::atomic<std::uint64_t> purges_seen{0};

  /// All it costs in RAM, allocator overhead estimated; shared heads and chunks count in full.
  /// Walks the body's chunks.
  std::uint64_t memory_bytes() const noexcept;
};
using ObjectPtr = std::shared_ptr<const Object>;

/// A head that a purge made stale then, or earlier.
std::shared_ptr<const ObjectHead> stale_head(const ObjectHead& head, WallTime stale_since);

/// An object of these parts, body_bytes counted. Yours to change until it is shared.
std::shared_ptr<Object> make_object(CacheKey key, std::shared_ptr<const ObjectHead> head,
                                    std::vector<ChunkPtr> body);

}  // namespace secondsight::cache
