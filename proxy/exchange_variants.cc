// The part of Exchange that finds the variant a request selects, and where there is none asks the
// origin whether a stored one will do. RFC 9111 4.1, 4.3.3.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cache/policy/freshness.h"
#include "cache/policy/validation.h"
#include "cache/variants.h"
#include "proxy/exchange.h"
#include "proxy/exchange_rules.h"

namespace secondsight::proxy {
namespace {

namespace policy = cache::policy;
using cache::CacheKey;

}  // namespace

net::awaitable<Exchange::Found> Exchange::look_up(const CacheKey& primary) {
  Found found = find_in_memory(primary, nullptr);
  if (!found.object) co_await look_on_disk(found);
  if (!found.object || !found.object->is_vary_marker) co_return found;

  const cache::ObjectPtr marker = std::move(found.object);
  Found variant =
      make_found(services_.cache.variant_key(primary, *marker, request_.fields), marker);
  if (cache::may_have(*marker, variant.key.fingerprint())) {
    variant = find_in_memory(variant.key, marker);
    if (!variant.object) co_await look_on_disk(variant);
  }
  if (variant) co_return variant;
  const auto key = services_.cache.variant_by_language(primary, *marker, request_.fields);
  if (!key) co_return variant;
  Found in_language = find_in_memory(*key, marker);
  if (!in_language.object) co_await look_on_disk(in_language);
  if (in_language) co_return in_language;
  co_return variant;
}

/// A marker under a variant's key is never written, and not followed.
Exchange::Found Exchange::find_in_memory(const CacheKey& key, cache::ObjectPtr marker) {
  Found found = make_found(key, std::move(marker));
  found.object = services_.cache.find_in_memory(key);
  if (found.marker && found.object && found.object->is_vary_marker) found.object = nullptr;
  return found;
}

/// Leaves `found` empty when there is nothing.
net::awaitable<void> Exchange::look_on_disk(Found& found) {
  const auto entry = services_.cache.find_on_disk(found.key);
  if (!entry) co_return;
  found.seen = entry->location;
  co_await read_from_disk(found, *entry);
  if (!found.object || !found.object->is_vary_marker) co_return;
  found.disk.reset();  // the marker's own record is no response
  found.from_disk = false;
  if (found.marker) found.object = nullptr;
}

/// Names the entity tags of what other requests got: the origin says which of them, if any, it
/// would send to this one. RFC 9111 4.3.1.
void Exchange::plan_choice(FlightPlan& plan, const Found& found) const {
  if (!found.marker || !asks_about_variants_) return;
  const auto tags =
      tags_to_name(services_.cache.tagged_variants(plan.primary, *found.marker, request_.fields));
  if (tags.empty()) return;
  std::string list;
  for (const std::string& tag : tags) list.append(list.empty() ? "" : ", ").append(tag);
  plan.request.fields.add("If-None-Match", list);
  plan.asks_about_variants = true;
}

/// The origin's 304 named a variant that other requests select. No: it is not there any more, or
/// the answer does not tell which.
net::awaitable<Exchange::Served> Exchange::serve_other_variant(const CacheKey& primary,
                                                               const Found& missing,
                                                               const FlightReader& reader,
                                                               CacheStatus status) {
  const HeadPtr told = reader.head();
  asks_about_variants_ = false;  // should what it named be gone
  if (!missing.marker) co_return Served::No;
  const auto tagged = services_.cache.tagged_variants(primary, *missing.marker, request_.fields);
  const std::string& tag = told->facts.etag;
  const auto chosen =
      std::find_if(tagged.begin(), tagged.end(), [&](const cache::TaggedVariant& variant) {
        return tag.empty() ? variant.etag == tagged.front().etag
                           : policy::matches_strongly(variant.etag, tag);
      });
  const bool is_ambiguous =
      tag.empty() && std::any_of(tagged.begin(), tagged.end(), [&](const auto& variant) {
        return variant.etag != tagged.front().etag;
      });
  if (chosen == tagged.end() || is_ambiguous) co_return Served::No;
  Found other = find_in_memory(chosen->key, missing.marker);
  if (!other.object) co_await look_on_disk(other);
  // It may have been replaced since it was listed, or not have come whole.
  if (!other || !policy::matches_strongly(other.head()->facts.etag, chosen->etag))
    co_return Served::No;
  HeadPtr fresh = freshened_head(*other.head(), *told);
  if (!status.collapsed.value_or(false))
    publish([&] { keep_as_variant(primary, missing, other, fresh); });
  co_return co_await serve(other, status, Outcome::Revalidated, std::move(fresh));
}

/// From now on this request's like finds it too.
void Exchange::keep_as_variant(const CacheKey& primary, const Found& missing, const Found& other,
                               const HeadPtr& fresh) {
  if (policy::storability(facts_, fresh->facts) != policy::Storability::Storable) return;
  refresher(other)(fresh);
  if (!other.object) return;  // too large to be copied
  cache::Cache& cache = services_.cache;
  auto placement = cache.place(primary, missing.marker, request_.fields, *fresh);
  const auto copy = std::make_shared<cache::Object>(std::move(placement.key), fresh,
                                                    other.object->body, other.object->body_bytes);
  copy->purges_seen.store(purges_seen_, std::memory_order_relaxed);
  const auto sighting = cache.sight(copy->key, copy->body_bytes);
  if (sighting.admitted) {
    if (placement.marker) cache.persist_marker(placement.marker);
    cache.store(*sighting.admitted, copy);
  }
  cache.keep(copy, sighting.admitted ? cache::Newcomer::SeenBefore : cache::Newcomer::First);
}

}  // namespace secondsight::proxy
