// What of a flight's response goes into the cache: wholes, parts, freshened heads.
#include <algorithm>
#include <utility>

#include "cache/partial.h"
#include "cache/policy/validation.h"
#include "cache/variants.h"
#include "proxy/flight.h"
#include "proxy/response.h"

namespace secondsight::proxy {
namespace {

using cache::policy::Storability;

/// A gathered body of many small pieces becomes one, so that a hit is one write.
constexpr std::uint64_t kJoinedBodyBytesMax = 64U << 10;

std::vector<cache::ChunkPtr> joined(const std::deque<cache::ChunkPtr>& pieces,
                                    std::uint64_t bytes) {
  if (pieces.size() <= 1 || bytes > kJoinedBodyBytesMax) return {pieces.begin(), pieces.end()};
  auto whole = std::make_shared<cache::Chunk>();
  whole->reserve(bytes);
  for (const auto& piece : pieces) whole->insert(whole->end(), piece->begin(), piece->end());
  return {std::move(whole)};
}

}  // namespace

void Flight::handle_not_modified(const OriginHead& head) {
  const auto told = make_object_head(head, {request_sent_, services_.clock.wall()});
  if (!cache::policy::may_freshen(plan_.stale->facts, told->facts)) {
    // Of another version: what is stored is not that, and everyone looks again without it.
    forget(plan_.key, nullptr);
    return end(OriginError::Cancelled);
  }
  auto fresh = freshened_head(*plan_.stale, *told);
  const auto storable_for = [&](const cache::policy::RequestFacts& facts) {
    return cache::policy::storability(facts, fresh->facts) == Storability::Storable;
  };
  if (!storable_for({})) {
    forget(plan_.primary, plan_.vary_marker);
  } else if (!cache::covers(plan_.vary_marker, fresh->facts.vary)) {
    // Under this key it would answer requests that select another.
    forget(plan_.key, nullptr);
  } else if (plan_.refresh && storable_for(plan_.facts)) {
    publish([&] { plan_.refresh(fresh); });
  }
  answer_all(Arrival::NotModified, std::move(fresh));
}

void Flight::keep_whole() {
  cache::ObjectPtr object;
  std::optional<cache::Admitted> admitted;
  {
    const std::lock_guard lock(mutex_);
    object = std::make_shared<cache::Object>(*stored_key_, head_, joined(window_, end_), end_);
    admitted = admitted_;
  }
  object->purges_seen.store(purges_seen_, std::memory_order_relaxed);
  if (services_.cache.has_newer(object->key, *object->head)) return;  // it was overtaken
  if (admitted) {
    if (marker_) services_.cache.persist_marker(marker_);
    services_.cache.store(*admitted, object);
  }
  services_.cache.keep(object, admitted ? cache::Newcomer::SeenBefore : cache::Newcomer::First);
}

/// Whether a 206 is worth keeping until its whole comes: not where other requests may get another
/// one under this key, nor what would not fit.
bool Flight::may_keep_part(const cache::ObjectHead& head, const OriginHead& received) const {
  if (services_.settings.cache.memory_bytes == 0) return false;
  const auto range = cache::kept_range(head, received.content_length);
  if (!range || range->range.size > services_.cache.whole_body_bytes_max()) return false;
  return cache::covers(plan_.vary_marker, head.facts.vary);
}

/// The head of the whole, where a 206 is the rest of what is stored; its length goes into `head`.
/// Null: it is not.
std::shared_ptr<const cache::ObjectHead> Flight::complete_prefix(OriginHead& head) const {
  const auto told = make_object_head(head, {request_sent_, services_.clock.wall()});
  const auto rest = cache::kept_range(*told, head.content_length);
  const std::uint64_t begin = plan_.prefix->body_bytes;
  const auto known = cache::kept_range(*plan_.prefix->head, begin);
  if (!rest || !known || rest->complete_bytes != known->complete_bytes) return nullptr;
  if (rest->range.first != begin || rest->range.end() != *rest->complete_bytes) return nullptr;
  if (!cache::policy::matches_strongly(told->facts.etag, plan_.prefix->head->facts.etag))
    return nullptr;
  head.status = 200;
  head.content_length = rest->complete_bytes;
  return cache::joined_head(*plan_.prefix->head, *told, std::nullopt);
}

/// With what was there before; once all is there, as the whole it is.
void Flight::keep_part() {
  cache::Cache& cache = services_.cache;
  cache::ObjectPtr part;
  std::optional<cache::Admitted> admitted;
  {
    const std::lock_guard lock(mutex_);
    if (!cache::kept_range(*head_, end_)) return;
    part = std::make_shared<cache::Object>(cache::partial_key(*stored_key_, cache.seed()), head_,
                                           joined(window_, end_), end_);
    admitted = admitted_;
  }
  part->purges_seen.store(purges_seen_, std::memory_order_relaxed);
  part = cache.keep_part(*stored_key_, part);
  if (!cache::is_complete(*part)) return;
  cache.forget_part(*stored_key_);
  const auto whole = std::make_shared<cache::Object>(
      *stored_key_, cache::joined_head(*part->head, *part->head, std::nullopt), part->body,
      part->body_bytes);
  whole->purges_seen.store(part->purges_seen.load(std::memory_order_relaxed),
                           std::memory_order_relaxed);
  if (admitted) {
    if (plan_.vary_marker) cache.persist_marker(plan_.vary_marker);
    cache.store(*admitted, whole);
  }
  cache.keep(whole, admitted ? cache::Newcomer::SeenBefore : cache::Newcomer::First);
}

void Flight::forget(const cache::CacheKey& key, const cache::ObjectPtr& marker) {
  flights_.forget(services_.cache, plan_.primary.fingerprint(), key, marker,
                  services_.clock.wall());
}

}  // namespace secondsight::proxy
