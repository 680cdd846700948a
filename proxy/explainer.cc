#include "proxy/explainer.h"

#include <memory>
#include <optional>
#include <utility>

#include "cache/partial.h"
#include "cache/variants.h"
#include "proxy/exchange_rules.h"
#include "proxy/request_parser.h"

namespace secondsight::proxy {

std::variant<Explanation, NotExplained> Explainer::explain(std::string_view head) const {
  const ProxySettings& limits = settings_.proxy;
  RequestParser parser({.header_bytes = limits.max_header_bytes,
                        .header_fields = limits.max_header_fields,
                        .body_bytes = limits.max_request_body});
  Request request;
  switch (parser.parse(head, request)) {
    case RequestParser::Outcome::Failed:
      return NotExplained{"not a request that the proxy takes: " +
                          std::string(word_of(parser.fault()))};
    case RequestParser::Outcome::NeedMore:
      return NotExplained{"not a whole request head"};
    case RequestParser::Outcome::Complete:
      break;
  }
  if (parser.head_bytes() < head.size()) return NotExplained{"more than one request head"};
  return proxy::explain(look(std::move(request)));
}

/// The same steps as Exchange::look_up(): the primary key, then the variant that it points to.
Situation Explainer::look(Request request) const {
  const auto primary = sites_.primary_key(request.host, request.target, request.fields);
  Situation s{.request = std::move(request),
              .now = clock_.wall(),
              .primary = primary,
              .key = primary,
              .head = nullptr};
  auto object = look_for(primary, s);
  if (object && object->is_vary_marker) {
    s.vary = object->head->facts.vary;
    const auto marker = std::exchange(object, nullptr);
    s.key = cache_.variant_key(primary, *marker, s.request.fields);
    if (cache::may_have(*marker, s.key.fingerprint())) object = look_for(s.key, s);
    const auto in_language = cache_.variant_by_language(primary, *marker, s.request.fields);
    if (!object && in_language) {
      object = look_for(*in_language, s);
      s.is_by_language = object != nullptr;
      if (object) s.key = *in_language;
    }
    s.variants = cache::variants_of(*marker).size();
    s.tags = tags_to_name(cache_.tagged_variants(primary, *marker, s.request.fields));
  }
  if (object && !object->is_vary_marker) {
    s.head = object->head;
    s.body_bytes = object->body_bytes;
    s.would_promote = cache_.would_promote(*object);
  }
  if (const auto part = cache_.look_for_part(s.key)) {
    if (const auto held = cache::kept_range(*part->head, part->body_bytes))
      s.part = KeptPart{part->head, *held};
  }
  // What is fetched in its place is taken to be as long as what is stored.
  const auto body_bytes = s.head ? std::optional(s.body_bytes) : std::nullopt;
  s.verdict = cache_.peek(s.key, body_bytes);
  s.chance = cache_.chance(body_bytes);
  s.is_chance_by_size = settings_.admission.policy == PolicyName::SizeProbability;
  s.sightings_needed = cache_.sightings_needed();
  s.sighting = cache_.foresee(s.key, body_bytes);
  s.configured_stale_if_error =
      std::chrono::duration_cast<Seconds>(sites_.stale_if_error(s.request.host));
  s.has_memory_tier = settings_.cache.memory_bytes > 0;
  s.is_being_fetched = flights_.contains(s.key.fingerprint());
  s.is_uncacheable = flights_.is_uncacheable(primary.fingerprint(), clock_.steady());
  s.is_failing = flights_.is_failing(s.key.fingerprint(), clock_.steady());
  return s;
}

/// The object of that key, without its body if it is on disk only. Notes where it is.
std::shared_ptr<const cache::Object> Explainer::look_for(const cache::CacheKey& key,
                                                         Situation& s) const {
  const cache::Places places = cache_.look(key);
  s.in_memory = places.in_memory != nullptr;
  s.is_on_its_way = places.is_on_its_way;
  s.on_disk = places.on_disk.has_value();
  s.served_from_memory = places.object() != nullptr;
  if (places.object()) return places.object();
  if (!places.on_disk) return nullptr;
  const auto opened = cache_.open_object(key, *places.on_disk, ReadMode::Blocking);
  if (!opened) return nullptr;
  auto object = std::make_shared<cache::Object>(key, opened->head, std::vector<cache::ChunkPtr>{},
                                                opened->body_bytes);
  object->is_vary_marker = opened->is_vary_marker;
  object->on_disk.store(true, std::memory_order_relaxed);
  return object;
}

}  // namespace secondsight::proxy
