#include "proxy/explain.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include <boost/json/array.hpp>

#include "cache/policy/freshness.h"
#include "cache/policy/http_date.h"
#include "cache/policy/preferences.h"
#include "cache/policy/read_facts.h"
#include "cache/policy/validation.h"
#include "config/units.h"
#include "proxy/exchange_rules.h"
#include "proxy/explain_part.h"
#include "proxy/explain_range.h"

namespace secondsight::proxy {
namespace {

namespace json = boost::json;
namespace policy = cache::policy;
using admission::Verdict;
using cache::Detail;

/// Beyond every lifetime and every stale use that a directive can give.
constexpr std::int64_t kForEver = std::int64_t{1} << 33;

/// The response that any cache may keep, if the request does not forbid it.
policy::ResponseFacts most_storable() {
  policy::ResponseFacts facts;
  facts.status = 200;
  facts.directives.is_public = true;
  facts.directives.max_age = Seconds{1};
  return facts;
}

std::string text_of(Seconds duration) {
  return format_duration(duration);
}

std::string listed(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text.append(text.empty() ? "" : ", ").append(item);
  return text;
}

json::array array_of(const std::vector<std::string>& items) {
  json::array array;
  for (const std::string& item : items) array.emplace_back(item);
  return array;
}

/// HTTP lets field values have bytes that are no UTF-8; neither JSON nor a terminal does.
std::string to_ascii(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string ascii;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      ascii.push_back(c);
    } else {
      ascii.append("\\x").append({kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  return ascii;
}

void make_ascii(json::value& value) {
  if (auto* text = value.if_string()) *text = to_ascii(*text);
  if (auto* object = value.if_object())
    for (auto& member : *object) make_ascii(member.value());
  if (auto* array = value.if_array())
    for (json::value& item : *array) make_ascii(item);
}

/// The last second from `now` on for which `holds(time)`; empty when it does not even hold now.
/// What may be done with a stored response only ever ends.
template <class Holds>
std::optional<std::int64_t> last_second(WallTime now, const Holds& holds) {
  if (!holds(now)) return std::nullopt;
  std::int64_t good = 0;
  std::int64_t bad = kForEver;
  while (good + 1 < bad) {
    const std::int64_t middle = good + (bad - good) / 2;
    (holds(now + Seconds{middle}) ? good : bad) = middle;
  }
  return good;
}

/// One explanation being told, from top to bottom.
class Account {
 public:
  explicit Account(const Situation& situation)
      : s_(situation),
        asked_(policy::read_facts(s_.request.method, s_.request.fields)),
        decision_(decide(asked_, s_.head.get(), !s_.vary.empty(), s_.now)),
        protocols_(upgrade_protocols(s_.request)),
        own_answer_(own_answer(s_.request)),
        part_use_(decision_.step == Step::Ask || decision_.step == Step::Refuse
                      ? part_use(s_, asked_)
                      : PartUse::None),
        is_spared_(decision_.step == Step::Ask && s_.head && s_.is_failing &&
                   may_stand_in(asked_, *s_.head, s_.configured_stale_if_error, s_.now)) {}

  Explanation run() {
    tell_request();
    tell_stored();
    tell_part();
    if (s_.head) tell_freshness();
    if (s_.head) tell_stale_use();
    tell_filter();
    tell_flights();
    tell_next();
    for (auto& member : out_.facts) make_ascii(member.value());
    for (auto& line : out_.words) line.second = to_ascii(line.second);
    return std::move(out_);
  }

 private:
  void word(std::string_view label, std::string text) {
    out_.words.emplace_back(label, std::move(text));
  }

  void tell_request() {
    const std::string url = "http://" + s_.request.host + s_.request.target;
    out_.facts["method"] = s_.request.method;
    out_.facts["url"] = url;
    out_.facts["key"] = s_.primary.text();
    word("request", s_.request.method + " " + url);
    word("key", s_.primary.text());
    if (s_.vary.empty()) {
      out_.facts["variant"] = nullptr;
      return;
    }
    json::array fields;
    for (const std::string& name : s_.vary) {
      const auto value = s_.request.fields.joined(name);
      fields.push_back(json::object{{"name", name}, {"value", nullptr}});
      if (value) fields.back().as_object()["value"] = *value;
    }
    out_.facts["variant"] = json::object{{"fields", std::move(fields)},
                                         {"key", s_.key.text()},
                                         {"listed", s_.variants},
                                         {"is_by_language", s_.is_by_language}};
    word("variant", variant_text());
    std::string text = std::to_string(s_.variants) + " listed";
    if (s_.is_by_language) {
      text += "; none for these values, but one in " +
              policy::preferred_language(s_.request.fields).value_or("another") +
              ", the language preferred to all others";
    }
    word("variants", text);
  }

  /// "accept-language: de; accept-encoding: (none)"
  std::string variant_text() const {
    std::string text;
    for (const std::string& name : s_.vary) {
      text.append(text.empty() ? "" : "; ").append(name).append(": ");
      text.append(s_.request.fields.joined(name).value_or("(none)"));
    }
    return text;
  }

  void tell_stored() {
    out_.facts["stored"] = s_.head != nullptr;
    if (!s_.head) {
      out_.facts["object"] = nullptr;
      word("stored", "no");
      return;
    }
    const auto last_modified = s_.head->fields.find("Last-Modified");
    json::object object{{"status", s_.head->status},
                        {"reason", s_.head->reason},
                        {"entity_tag", nullptr},
                        {"last_modified", nullptr},
                        {"body_bytes", s_.body_bytes},
                        {"in_memory", s_.in_memory},
                        {"on_its_way_to_disk", s_.is_on_its_way},
                        {"on_disk", s_.on_disk}};
    std::string text = std::to_string(s_.head->status) + " " + s_.head->reason + ", " +
                       format_bytes(s_.body_bytes);
    if (!s_.head->facts.etag.empty()) {
      object["entity_tag"] = s_.head->facts.etag;
      text += ", entity tag " + s_.head->facts.etag;
    }
    if (last_modified) {
      object["last_modified"] = *last_modified;
      text.append(", last modified ").append(*last_modified);
    }
    out_.facts["object"] = std::move(object);
    word("stored", text);
    std::vector<std::string> places;
    if (s_.in_memory) places.emplace_back("in memory");
    if (s_.is_on_its_way) places.emplace_back("on its way to disk");
    if (s_.on_disk) places.emplace_back("on disk");
    word("where", listed(places));
  }

  void tell_part() {
    out_.facts["part"] = facts_of_part(s_);
    if (s_.part) word("part", words_of_part(s_));
  }

  void tell_freshness() {
    const auto& head = *s_.head;
    const Seconds age = policy::current_age(head.facts, head.times, s_.now);
    const Seconds lifetime = policy::freshness_lifetime(head.facts, head.times, kHeuristic);
    const Seconds left = time_to_live(head, s_.now);
    const auto source = policy::lifetime_source(head.facts);
    const std::string until = policy::format_http_date(s_.now + left);
    const bool is_fresh = left > Seconds{0};
    out_.facts["freshness"] =
        json::object{{"age_seconds", age.count()},
                     {"lifetime_seconds", lifetime.count()},
                     {"lifetime_from", policy::to_string(source)},
                     {"directives_from", policy::to_string(head.facts.source)},
                     {"is_fresh", is_fresh},
                     {"seconds_left", left.count()},
                     {"fresh_until", until}};
    const bool has_source = source != policy::LifetimeSource::None;
    const bool is_targeted = head.facts.source != policy::DirectiveSource::CacheControl;
    word("age", text_of(age) + " of " + text_of(lifetime) + " (" +
                    (has_source ? std::string(policy::to_string(source)) : "no lifetime given") +
                    (is_targeted ? ", as " + std::string(policy::to_string(head.facts.source)) +
                                       " alone decides)"
                                 : ")"));
    word("fresh", is_fresh ? "until " + until + ", " + text_of(left) + " left"
                           : "no: stale since " + until + ", for " + text_of(-left));
  }

  void tell_stale_use() {
    const auto& head = *s_.head;
    const auto use_at = [&](WallTime time) {
      return policy::choose_use(asked_, head.facts, head.times, kHeuristic, time);
    };
    const Seconds left = std::max(time_to_live(head, s_.now), Seconds{0});
    const auto use_from = s_.now + left;  // of something stale
    const auto unasked =
        last_second(use_from, [&](WallTime time) { return use_at(time) != policy::Use::Validate; });
    const auto on_error_within = [&](Seconds configured) {
      return last_second(use_from, [&, configured](WallTime time) {
        return may_stand_in(asked_, head, configured, time);
      });
    };
    const auto on_error = on_error_within(s_.configured_stale_if_error);
    const bool is_configured = on_error != on_error_within(Seconds{0});
    std::string veto(policy::stale_veto(head.facts.directives));
    if (veto.empty() && asked_.no_cache) veto = "the request's no-cache";
    json::object stale{{"without_waiting", nullptr},
                       {"on_error", nullptr},
                       {"forbidden_by", nullptr},
                       {"configured_seconds", s_.configured_stale_if_error.count()},
                       {"is_by_configuration", is_configured},
                       {"is_origin_failing", s_.is_failing}};
    std::vector<std::string> uses;
    const auto tell = [&](const char* name, const std::string& when,
                          std::optional<std::int64_t> seconds) {
      if (!seconds) return;
      const bool ends = *seconds + 1 < kForEver;
      const std::string until = policy::format_http_date(use_from + Seconds{*seconds});
      stale[name] = json::object{{"ends", ends}, {"until", nullptr}};
      if (ends) stale[name].as_object()["until"] = until;
      uses.push_back(ends ? "until " + until + when : std::string("for ever") + when);
    };
    tell("without_waiting", ", without waiting for the origin", unasked);
    tell("on_error",
         is_configured ? ", if the origin fails (configured stale_if_error of " +
                             text_of(s_.configured_stale_if_error) + ")"
                       : std::string(", if the origin fails"),
         on_error);
    if (!veto.empty()) stale["forbidden_by"] = veto;
    out_.facts["stale_use"] = std::move(stale);
    if (uses.empty()) {
      word("stale use", veto.empty() ? "none: no directive of either side allows it (any more)"
                                     : "none: " + veto + " forbids it");
    }
    for (std::string& use : uses) word("stale use", std::move(use));
    if (s_.is_failing) word("origin", "it failed for this key a moment ago");
  }

  void tell_filter() {
    const bool is_drawn = s_.verdict == Verdict::Undecided;
    out_.facts["filter"] = admission::to_string(s_.verdict);
    out_.facts["chance"] = is_drawn ? json::value(s_.chance) : json::value(nullptr);
    word("filter", filter_words());
  }

  std::string filter_words() const {
    switch (s_.verdict) {
      case Verdict::Always:
        return "the policy writes everything to disk";
      case Verdict::Repeat:
        return "repeat: sighted within the window";
      case Verdict::Chance:
        return "chance: the draw is certain to be for it";
      case Verdict::FirstSighting:
        return "first sighting: not seen within the window";
      case Verdict::FewSightings:
        return "few sightings: seen within the window, but this is not the " + nth_sighting();
      case Verdict::NotChosen:
        return "not chosen: the draw is certain to be against it";
      case Verdict::Never:
        return "the policy writes nothing to disk";
      case Verdict::Undecided:
        break;
    }
    return by_chance();
  }

  /// "second sighting", "5th sighting": the one that is admitted.
  std::string nth_sighting() const {
    const unsigned n = s_.sightings_needed;
    return (n == 2 ? "second" : std::to_string(n) + (n == 3 ? "rd" : "th")) + " sighting";
  }

  /// "by chance, p = 0.1"
  std::string by_chance() const {
    std::array<char, 32> number{};
    std::snprintf(number.data(), number.size(), "%.3g", s_.chance);
    const bool is_guess = s_.is_chance_by_size && !s_.head;
    return std::string("by chance, p = ") + number.data() +
           (is_guess ? " for a body of unknown length" : "");
  }

  void tell_flights() {
    out_.facts["is_being_fetched"] = s_.is_being_fetched;
    out_.facts["is_remembered_as_uncacheable"] = s_.is_uncacheable;
    word("fetch", s_.is_being_fetched ? "one is under way" : "none is under way");
    if (s_.is_uncacheable)
      word("uncacheable", "it was lately: its requests do not wait for each other");
  }

  void tell_next() {
    json::object next{{"action", nullptr},
                      {"forward", nullptr},
                      {"detail", nullptr},
                      {"because", because()},
                      {"validators", json::array{}},
                      {"names_tags", json::array{}},
                      {"completes", nullptr},
                      {"range", nullptr},
                      {"joins", false},
                      {"keeps", nullptr}};
    std::string then;
    if (!protocols_.empty()) {
      next["action"] = "upgrade";
      next["forward"] = to_string(Forward::Bypass);
      word("next", "passed to the origin as an upgrade to " + protocols_);
      then = "nothing of it touches the cache, whether the origin agrees or not";
    } else if (is_spared_) {
      then = tell_hit(next);
    } else if (part_use_ == PartUse::All) {
      then = tell_part_hit(next);
    } else {
      then = tell_step(next);
    }
    if (asked_.has_range && asked_.method == policy::Method::Head && protocols_.empty())
      word("range", "ignored: it counts for GET alone");
    word("because", because());
    if (!then.empty()) word("then", then);
    out_.facts["next"] = std::move(next);
  }

  std::string tell_step(json::object& next) {
    std::string then;
    switch (decision_.step) {
      case Step::Serve:
      case Step::ServeStaleAndRevalidate:
        then = tell_hit(next);
        break;
      case Step::Ask:
        then = tell_fetch(next);
        break;
      case Step::Refuse:
        next["action"] = "refuse";
        word("next", "504: the origin may not be asked");
        break;
      case Step::PassOn:
        if (own_answer_ != OwnAnswer::None) {
          next["action"] = "answer-here";
          next["detail"] = to_string(own_answer_);
          word("next", own_answer_ == OwnAnswer::TraceBody ? "400, without asking the origin"
                                                           : "200, without asking the origin");
          break;
        }
        next["action"] = "pass-on";
        next["forward"] = to_string(decision_.forward);
        word("next", "passed on to the origin");
        if (asked_.method == policy::Method::Unsafe)
          then = "a success makes the cache forget this URL";
        break;
    }
    return then;
  }

  void tell_range(json::object& next, RangeStory story) {
    next["range"] = std::move(story.facts);
    word("range", std::move(story.words));
  }
  bool has_get_range() const { return asked_.has_range && asked_.method == policy::Method::Get; }

  std::string tell_hit(json::object& next) {
    const bool is_stale_hit = decision_.step == Step::ServeStaleAndRevalidate;
    next["action"] = is_stale_hit || is_spared_ ? "stale-hit" : "hit";
    next["detail"] = is_spared_ ? "stale-if-error"
                                : to_string(s_.served_from_memory ? Detail::Memory : Detail::Disk);
    const bool is_304 = s_.head->status == 200 &&
                        policy::is_not_modified(s_.request.fields, s_.head->facts, s_.head->times);
    std::string text = is_stale_hit || is_spared_ ? "a stale hit" : "a hit";
    text += s_.served_from_memory ? " in memory" : " on disk";
    if (is_304) text += ", answered 304: the client has what is stored";
    word("next", text);
    if (has_get_range()) tell_range(next, tell_range_of_hit(s_));
    std::string then;
    if (is_spared_) then = "asks nobody: the origin is spared for a few seconds";
    if (is_stale_hit) {
      const bool revalidates = may_revalidate_behind(asked_, s_.request.has_body());
      then =
          revalidates ? "asks the origin behind it" : "asks nobody behind it: only plain GETs may";
    }
    if (s_.would_promote && s_.served_from_memory && asked_.method == policy::Method::Get) {
      const bool is_drawn = s_.verdict == Verdict::Undecided;
      next["keeps"] = is_drawn ? "by-chance" : "disk";
      then.append(then.empty() ? "" : "; ").append("written to disk");
      then += is_drawn ? " " + by_chance() : ": " + why_promoted();
    }
    return then;
  }

  std::string tell_part_hit(json::object& next) {
    next["action"] = "hit";
    next["detail"] = to_string(Detail::Memory);
    word("next", "a hit in memory, of the part that is kept");
    tell_range(next, tell_range_of_part(s_));
    return "a sighting of the whole";
  }

  std::string tell_fetch(json::object& next) {
    const bool validates = s_.head && can_validate(asked_, s_.head->facts);
    next["action"] = validates ? "validate" : "fetch";
    const Forward forward = part_use_ == PartUse::Beyond ? Forward::Partial : decision_.forward;
    next["forward"] = to_string(forward);
    std::string text = "fetched from the origin: ";
    if (validates) {
      const auto fields = policy::with_validators({}, s_.head->facts, s_.head->fields);
      std::vector<std::string> validators;
      for (const auto line : fields)
        validators.push_back(std::string(line.name) + ": " + std::string(line.value));
      next["validators"] = array_of(validators);
      text = "validated with " + listed(validators) + ": ";
    }
    word("next", text.append(to_string(forward)));
    const bool is_shared =
        is_sharable(asked_, s_.request.has_body()) && !s_.is_uncacheable &&
        (!asked_.has_range || fetches_whole({.is_stored = s_.head != nullptr,
                                             .verdict = s_.verdict,
                                             .is_being_fetched = s_.is_being_fetched}));
    const bool joins = is_shared && s_.is_being_fetched;
    next["joins"] = joins;
    const bool leads = is_shared && !joins && !s_.head;
    const bool completes = leads && tell_completion(next);
    if (leads && !completes && !asked_.has_range && !s_.tags.empty()) {
      next["names_tags"] = array_of(s_.tags);
      word("names", listed(s_.tags) + ": the origin says whether one of these variants will do");
    }
    const bool is_part = has_get_range() && !is_shared && !validates;
    const std::string keeping = tell_keeping(next, is_part);
    if (has_get_range()) {
      tell_range(next, tell_range_of_fetch(s_, asked_,
                                           {.is_shared = is_shared,
                                            .joins = joins,
                                            .validates = validates,
                                            .completes = completes,
                                            .is_kept = next["keeps"] != "nothing"}));
    }
    std::string then;
    if (joins) then = "waits for the fetch that is under way; ";
    if (validates) then += "a 304 freshens what is stored; another answer: ";
    return then + keeping;
  }

  /// False: no beginning of it is kept.
  bool tell_completion(json::object& next) {
    const auto range = s_.part ? range_behind(s_.part->range.range) : std::nullopt;
    if (!range) return false;
    const std::string& tag = s_.part->head->facts.etag;
    next["completes"] = json::object{{"range", *range}, {"if_range", tag}};
    word("rest",
         "asked for with Range: " + *range + ", If-Range: " + tag + ": the beginning is kept");
    return true;
  }

  /// What becomes of a response that may be kept.
  std::string tell_keeping(json::object& next, bool is_part) const {
    const auto storable = policy::storability(asked_, most_storable());
    if (storable != policy::Storability::Storable) {
      next["keeps"] = "nothing";
      next["detail"] = policy::to_string(storable);
      return storable == policy::Storability::Method ? "not kept: only the answer to a GET is"
                                                     : "not kept: the request's no-store";
    }
    if (is_part) {
      next["keeps"] = s_.has_memory_tier ? "memory" : "nothing";
      if (!s_.has_memory_tier)
        return "not kept: parts are in memory only; but it is a sighting of the whole";
      next["detail"] = to_string(Detail::Part);
      return "may be kept as a part, if it has a strong entity tag, and is a sighting of the "
             "whole; if the whole comes in its place, that may be kept";
    }
    if (s_.verdict == Verdict::Undecided && s_.sighting == Detail::Chance) {
      next["keeps"] = "by-chance";
      return "written to disk " + by_chance() + ", if it may be kept; else " +
             (s_.has_memory_tier ? "kept in memory only" : "not kept");
    }
    next["detail"] = to_string(s_.sighting);
    const bool is_written = is_admitted(s_.sighting);
    next["keeps"] = is_written ? "disk" : s_.has_memory_tier ? "memory" : "nothing";
    if (is_written) return "written to disk as it comes, if it may be kept: " + why_written();
    return (s_.has_memory_tier ? "kept in memory only, if it may be kept: " : "not kept: ") +
           why_not_written();
  }

  std::string why_written() const {
    if (s_.sighting == Detail::Always) return "the policy writes everything";
    if (s_.sighting == Detail::Chance) return "the draw is certain";
    return s_.verdict == Verdict::Repeat ? "it is a repeat" : "it replaces what is there";
  }

  std::string why_promoted() const {
    return s_.verdict == Verdict::Chance ? "the draw is certain" : "it is its " + nth_sighting();
  }

  std::string why_not_written() const {
    switch (s_.sighting) {
      case Detail::FirstSighting:
        return "it is a first sighting";
      case Detail::FewSightings:
        return "it is not its " + nth_sighting();
      case Detail::NotChosen:
        return "the draw is certain to be against it";
      case Detail::Never:
        return "the policy writes nothing";
      case Detail::TooLarge:
        return "it is too large for the disk";
      default:
        return "there is no disk";
    }
  }

  std::string because() const {
    if (!protocols_.empty()) return "the request asks for another protocol";
    if (own_answer_ == OwnAnswer::TraceBody) return "a TRACE has no body";
    if (own_answer_ == OwnAnswer::MaxForwards) return "Max-Forwards lets it go no further";
    if (decision_.step == Step::PassOn)
      return s_.request.method + ": only GET and HEAD are answered from the cache";
    std::string text = s_.head ? because_of_stored() : because_of_part();
    if (is_spared_) text += "; the origin failed a moment ago, and a stale answer may stand in";
    if (decision_.step == Step::Refuse) text += "; and the request's only-if-cached";
    return text;
  }

  static std::string why_served(Seconds left) {
    return left > Seconds{0}
               ? "fresh for " + text_of(left) + " more"
               : "stale for " + text_of(-left) + ", which the request's max-stale allows";
  }

  /// Of what is stored for the request there is a part at most.
  std::string because_of_part() const {
    if (part_use_ == PartUse::All)
      return "it lies within the part that is kept, " +
             why_served(time_to_live(*s_.part->head, s_.now));
    std::string text =
        s_.part ? "nothing but a part is stored for this " : "nothing is stored for this ";
    text += s_.vary.empty() ? "URL" : "variant: " + variant_text();
    if (part_use_ == PartUse::Beyond) return text + "; not all that is asked for lies within it";
    if (s_.part && has_get_range() && decision_.step == Step::Ask)
      text += "; it does not do: " + why_not_part(s_, asked_);
    return text;
  }

  std::string because_of_stored() const {
    const auto& response = s_.head->facts.directives;
    const Seconds left = time_to_live(*s_.head, s_.now);
    const std::string stale = "stale for " + text_of(-left);
    switch (decision_.step) {
      case Step::Serve:
        return why_served(left);
      case Step::ServeStaleAndRevalidate:
        return stale + ", within stale-while-revalidate=" +
               std::to_string(response.stale_while_revalidate.value_or(Seconds{0}).count());
      default:
        break;
    }
    const Causes causes = request_causes();
    if (decision_.forward == Forward::Request) {
      return "fresh, but refused by the request's " +
             listed(causes.alone.empty() ? causes.all : causes.alone);
    }
    std::string text = response.no_cache ? "the response's no-cache asks for it each time" : stale;
    if (!response.no_cache && !policy::stale_veto(response).empty())
      text.append("; ").append(policy::stale_veto(response)).append(" forbids to serve it so");
    if (!causes.alone.empty())
      text += "; the request's " + listed(causes.alone) + " forbids to serve it so";
    return text;
  }

  /// The request's directives that ask for something better than what is stored.
  struct Causes {
    std::vector<std::string> all;
    std::vector<std::string> alone;  // those without which it would do
  };
  Causes request_causes() const {
    const auto would_do = [this](const policy::RequestFacts& request) {
      return policy::choose_use(request, s_.head->facts, s_.head->times, kHeuristic, s_.now) !=
             policy::Use::Validate;
    };
    Causes causes;
    const auto weigh = [&](bool is_there, std::string name, auto without) {
      if (!is_there) return;
      policy::RequestFacts request = asked_;
      without(request);
      if (would_do(request)) causes.alone.push_back(name);
      causes.all.push_back(std::move(name));
    };
    const auto with_value = [](const char* name, const std::optional<Seconds>& value) {
      return std::string(name) + "=" + std::to_string(value.value_or(Seconds{0}).count());
    };
    weigh(asked_.no_cache, "no-cache", [](auto& request) { request.no_cache = false; });
    weigh(asked_.max_age.has_value(), with_value("max-age", asked_.max_age),
          [](auto& request) { request.max_age.reset(); });
    weigh(asked_.min_fresh.has_value(), with_value("min-fresh", asked_.min_fresh),
          [](auto& request) { request.min_fresh.reset(); });
    return causes;
  }

  const Situation& s_;
  const policy::RequestFacts asked_;
  const Decision decision_;
  const std::string protocols_;  // that the request may be upgraded to; empty: it is not
  const OwnAnswer own_answer_;   // of what is passed on
  const PartUse part_use_;
  const bool is_spared_;  // what is stored answers, although the origin should be asked
  Explanation out_;
};

}  // namespace

Explanation explain(const Situation& situation) {
  return Account(situation).run();
}

}  // namespace secondsight::proxy
