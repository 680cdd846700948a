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
  Found found{.key = primary, .marker = nullptr, .object = nullptr, .disk = std::nullopt};
  co_await look_under_key(found);
  if (!found.object || !found.object->is_vary_marker) co_return found;

  const cache::ObjectPtr marker = std::move(found.object);
  Found variant{.key = services_.cache.variant_key(primary, *marker, request_.fields),
                .marker = marker,
                .object = nullptr,
                .disk = std::nullopt};
  if (cache::may_have(*marker, variant.key.fingerprint())) co_await look_under_key(variant);
  if (variant) co_return variant;
  auto key = services_.cache.variant_by_language(primary, *marker, request_.fields);
  if (!key) co_return variant;
  Found in_language{
      .key = std::move(*key), .marker = marker, .object = nullptr, .disk = std::nullopt};
  co_await look_under_key(in_language);
  if (in_language) co_return in_language;
  co_return variant;
}

/// Leaves `found` empty when there is nothing, or a marker under a variant's key: never written,
/// not followed.
net::awaitable<void> Exchange::look_under_key(Found& found) {
  found.object = services_.cache.find_in_memory(found.key);
  if (!found.object) {
    const auto entry = services_.cache.find_on_disk(found.key);
    if (!entry) co_return;
    found.seen = entry->location;
    co_await read_from_disk(found, *entry);
  }
  if (found.object && found.object->is_vary_marker) {
    found.disk.reset();  // the marker's own record is no response
    found.from_disk = false;
    if (found.marker) found.object = nullptr;
  }
}

/// Names the entity tags of what other requests got: the origin says which of them, if any, it
/// would send to this one. RFC 9111 4.3.1.
void Exchange::plan_choice(FlightPlan& plan, const Found& found) const {
  if (!found.marker || !asks_about_variants_) return;
  const auto tags = tags_to_name(services_.cache.tagged_variants(plan.primary, *found.marker));
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
  if (!missing.marker) co_return Served::No;
  const auto tagged = services_.cache.tagged_variants(primary, *missing.marker);
  const std::string& tag = told->facts.etag;
  const auto chosen =
      std::find_if(tagged.begin(), tagged.end(), [&](const cache::TaggedVariant& variant) {
        return tag.empty() ? variant.etag == tagged.front().etag
                           : policy::matches_weakly(variant.etag, tag);
      });
  const bool is_ambiguous =
      tag.empty() && std::any_of(tagged.begin(), tagged.end(), [&](const auto& variant) {
        return variant.etag != tagged.front().etag;
      });
  if (chosen == tagged.end() || is_ambiguous) co_return Served::No;
  Found other{
      .key = chosen->key, .marker = missing.marker, .object = nullptr, .disk = std::nullopt};
  co_await look_under_key(other);
  if (!other) co_return Served::No;
  HeadPtr fresh = freshened_head(*other.head(), *told);
  if (!status.collapsed.value_or(false)) keep_as_variant(primary, missing, other, fresh);
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
  const auto sighting = cache.sight(copy->key, copy->body_bytes);
  if (sighting.admitted) {
    if (placement.marker) cache.persist_marker(placement.marker);
    cache.store(*sighting.admitted, copy);
  }
  cache.keep(copy, sighting.admitted ? cache::Newcomer::SeenBefore : cache::Newcomer::First);
}

}  // namespace secondsight::proxy
