#include "proxy/explain_range.h"

#include <algorithm>
#include <optional>

#include <boost/json/array.hpp>

#include "cache/policy/validation.h"
#include "config/units.h"
#include "proxy/exchange_rules.h"
#include "proxy/explain_part.h"
#include "proxy/selection.h"

namespace secondsight::proxy {
namespace {

namespace json = boost::json;
namespace policy = cache::policy;

json::object no_facts() {
  return {{"status", nullptr},
          {"parts", json::array{}},
          {"complete_bytes", nullptr},
          {"asks_for", nullptr}};
}

policy::FieldBlock without_if_range(const policy::FieldBlock& fields) {
  policy::FieldBlock kept;
  for (const auto line : fields)
    if (!policy::equals_ignoring_case(line.name, "If-Range")) kept.add(line.name, line.value);
  return kept;
}

/// Why a stored response is not served in parts.
std::string why_whole(const Situation& s) {
  if (s.head->status != 200) return "there are parts of a 200 only";
  const auto fields = without_if_range(s.request.fields);
  const bool is_if_range = select_parts(fields, *s.head, s.body_bytes).status != 200;
  return is_if_range ? "If-Range names another version than the stored one"
                     : "a Range like this one is not served in parts";
}

/// What a stream of the whole would give; empty where that depends on what is not known yet.
std::optional<Selection> foresee_parts(const Situation& s, bool completes) {
  if (completes) return select_of_part(s);
  if (s.head && s.head->status == 200) return select_parts(s.request.fields, *s.head, s.body_bytes);
  if (s.request.fields.contains("If-Range")) return std::nullopt;
  cache::ObjectHead head;
  head.status = 200;
  constexpr std::uint64_t kLong = std::uint64_t{1} << 40;
  Selection parts = select_parts(s.request.fields, head, kLong);
  const Selection of_longer = select_parts(s.request.fields, head, 2 * kLong);
  const bool counts_from_end = !std::equal(
      parts.ranges.begin(), parts.ranges.end(), of_longer.ranges.begin(), of_longer.ranges.end(),
      [](const auto& a, const auto& b) { return a.first == b.first; });
  if (counts_from_end) return std::nullopt;
  return parts;
}

std::string why_part(const Situation& s, const policy::RequestFacts& request) {
  if (!is_sharable(request, s.request.has_body())) return "what this request gets is for it alone";
  if (s.is_uncacheable) return "the whole was uncacheable lately";
  if (s.verdict == admission::Verdict::Never) return "the policy writes nothing";
  if (s.verdict == admission::Verdict::Undecided)
    return "a draw decides about the whole, when it comes";
  return s.sightings_needed == 2 ? "the whole is fetched for a part at its second sighting"
                                 : "the whole is fetched for a part when its sightings suffice";
}

/// What a whole of that length is served as; the words are for who gets parts of it.
RangeStory tell_selection(const Selection& selection, std::uint64_t complete_bytes) {
  RangeStory story{.facts = no_facts(), .words = {}};
  story.facts["status"] = selection.status;
  story.facts["complete_bytes"] = complete_bytes;
  if (selection.status != 206) return story;
  std::string list;
  auto& parts = story.facts["parts"].as_array();
  for (const policy::ByteRange& range : selection.ranges) {
    parts.push_back(json::object{{"first", range.first}, {"last", range.end() - 1}});
    list.append(list.empty() ? "" : ", ")
        .append(std::to_string(range.first) + "-" + std::to_string(range.end() - 1));
  }
  story.words = (selection.ranges.size() > 1 ? "206 multipart: bytes " : "206: bytes ") + list +
                " of " + std::to_string(complete_bytes);
  return story;
}

}  // namespace

RangeStory tell_range_of_hit(const Situation& s) {
  if (s.head->status == 200 &&
      policy::is_not_modified(s.request.fields, s.head->facts, s.head->times)) {
    RangeStory story{.facts = no_facts(), .words = {}};
    story.facts["status"] = 304;
    story.words = "none of it: answered 304";
    return story;
  }
  const bool is_200 = s.head->status == 200;
  const Selection selection = is_200 ? select_parts(s.request.fields, *s.head, s.body_bytes)
                                     : select_whole(*s.head, s.body_bytes);
  RangeStory story = tell_selection(selection, s.body_bytes);
  if (selection.status == 416) {
    story.words = "416: nothing of it lies within the " + std::to_string(s.body_bytes) + " bytes";
  } else if (selection.status != 206) {
    story.words = std::to_string(selection.status) + ", the whole: " + why_whole(s);
  }
  return story;
}

RangeStory tell_range_of_part(const Situation& s) {
  return tell_selection(select_of_part(s), s.part->range.complete_bytes.value_or(0));
}

RangeStory tell_range_of_fetch(const Situation& s, const policy::RequestFacts& request,
                               const RangeFetch& fetch) {
  if (fetch.validates) {
    RangeStory story = tell_range_of_hit(s);
    story.facts["asks_for"] = "whole";
    story.words = "validated without it; of what is stored: " + story.words;
    return story;
  }
  RangeStory story{.facts = no_facts(), .words = {}};
  if (!fetch.is_shared) {
    story.facts["asks_for"] = "part";
    story.words = "the origin is asked for that part alone: " + why_part(s, request);
    return story;
  }
  const std::uint64_t reach_bytes = fetch.is_kept ? kRangeReachBytes : kPassingReachBytes;
  const std::uint64_t there_bytes = fetch.completes ? s.part->range.range.size : 0;
  const auto parts = foresee_parts(s, fetch.completes);
  const bool is_too_far = !fetch.joins && parts && !is_in_reach(*parts, there_bytes + reach_bytes);
  const std::string asks_for = fetch.completes ? "rest" : "whole";
  if (is_too_far) {
    story.facts["asks_for"] = asks_for + "-then-part";
    story.words = "the " + asks_for + " is asked for, and this part alone behind it: it " +
                  (parts->is_ascending()
                       ? "begins more than " + format_bytes(reach_bytes) + " ahead of what has come"
                       : std::string("is several in another order than the body"));
    return story;
  }
  if (fetch.completes) story = tell_range_of_part(s);
  if (s.head && s.head->status == 200 && !fetch.joins) story = tell_range_of_hit(s);
  story.facts["asks_for"] = asks_for;
  story.words = "the " + asks_for + " is asked for, and this part served from " +
                (fetch.completes ? "the whole" : "it") +
                " as it comes; alone if it begins more than " + format_bytes(reach_bytes) +
                " ahead";
  return story;
}

}  // namespace secondsight::proxy
