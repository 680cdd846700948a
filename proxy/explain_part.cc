#include "proxy/explain_part.h"

#include <boost/json/object.hpp>

#include "cache/partial.h"
#include "cache/policy/http_date.h"
#include "config/units.h"
#include "proxy/exchange_rules.h"

namespace secondsight::proxy {

namespace json = boost::json;
namespace policy = cache::policy;

PartUse part_use(const Situation& s, const policy::RequestFacts& request) {
  if (s.head || !s.part || !may_use_part(request, *s.part->head, s.now)) return PartUse::None;
  return lies_within(select_of_part(s), s.part->range.range) ? PartUse::All : PartUse::Beyond;
}

Selection select_of_part(const Situation& s) {
  const auto whole = cache::joined_head(*s.part->head, *s.part->head, std::nullopt);
  return select_parts(s.request.fields, *whole, s.part->range.complete_bytes.value_or(0));
}

json::value facts_of_part(const Situation& s) {
  if (!s.part) return nullptr;
  const Seconds left = time_to_live(*s.part->head, s.now);
  return json::object{{"first", s.part->range.range.first},
                      {"last", s.part->range.range.end() - 1},
                      {"complete_bytes", s.part->range.complete_bytes.value_or(0)},
                      {"entity_tag", s.part->head->facts.etag},
                      {"is_fresh", left > Seconds{0}},
                      {"seconds_left", left.count()},
                      {"fresh_until", policy::format_http_date(s.now + left)}};
}

std::string words_of_part(const Situation& s) {
  const policy::ByteRange& held = s.part->range.range;
  const Seconds left = time_to_live(*s.part->head, s.now);
  return "bytes " + std::to_string(held.first) + "-" + std::to_string(held.end() - 1) + " of " +
         std::to_string(s.part->range.complete_bytes.value_or(0)) + " in memory, entity tag " +
         s.part->head->facts.etag + (left > Seconds{0} ? ", fresh until " : ", stale since ") +
         policy::format_http_date(s.now + left);
}

std::string why_not_part(const Situation& s, const policy::RequestFacts& request) {
  if (request.has_conditions) return "the request has conditions";
  const Seconds left = time_to_live(*s.part->head, s.now);
  if (left <= Seconds{0}) return "it is stale for " + format_duration(-left);
  return "it would have to be validated";
}

}  // namespace secondsight::proxy
