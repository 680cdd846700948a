#include "cache/object.h"

#include <algorithm>
#include <utility>

namespace secondsight::cache {
namespace {

/// What malloc takes for `bytes`: an 8-byte header, multiples of 16, at least 32 (glibc).
constexpr std::uint64_t heap_bytes(std::uint64_t bytes) noexcept {
  if (bytes == 0) return 0;
  const std::uint64_t rounded = (bytes + 8 + 15) & ~std::uint64_t{15};
  return rounded < 32 ? 32 : rounded;
}

/// Short texts lie inside the string itself.
std::uint64_t heap_bytes(const std::string& text) noexcept {
  return text.capacity() > std::string().capacity() ? heap_bytes(text.capacity() + 1) : 0;
}

/// Two counters and a virtual table beside every shared value.
constexpr std::uint64_t kControlBlockBytes = 24;

std::uint64_t head_bytes(const ObjectHead& head) noexcept {
  std::uint64_t bytes = heap_bytes(sizeof(ObjectHead) + kControlBlockBytes);
  bytes += heap_bytes(head.reason) + heap_bytes(head.facts.etag);
  bytes += heap_bytes(head.fields.memory_bytes());
  bytes += heap_bytes(head.facts.vary.capacity() * sizeof(std::string));
  for (const std::string& name : head.facts.vary) bytes += heap_bytes(name);
  return bytes;
}

}  // namespace

std::uint64_t Object::memory_bytes() const noexcept {
  std::uint64_t bytes = heap_bytes(sizeof(Object) + kControlBlockBytes) + heap_bytes(key.text());
  if (head) bytes += head_bytes(*head);
  bytes += heap_bytes(body.capacity() * sizeof(ChunkPtr));
  for (const ChunkPtr& chunk : body)
    bytes += heap_bytes(sizeof(Chunk) + kControlBlockBytes) + heap_bytes(chunk->capacity());
  return bytes;
}

std::shared_ptr<const ObjectHead> stale_head(const ObjectHead& head, WallTime stale_since) {
  auto stale = std::make_shared<ObjectHead>(head);
  stale->facts.stale_since = std::min(head.facts.stale_since.value_or(stale_since), stale_since);
  return stale;
}

std::shared_ptr<Object> make_object(CacheKey key, std::shared_ptr<const ObjectHead> head,
                                    std::vector<ChunkPtr> body) {
  std::uint64_t body_bytes = 0;
  for (const ChunkPtr& chunk : body) body_bytes += chunk->size();
  return std::make_shared<Object>(std::move(key), std::move(head), std::move(body), body_bytes);
}

}  // namespace secondsight::cache
