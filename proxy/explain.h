#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>

#include "admission/admission_policy.h"
#include "cache/detail.h"
#include "cache/key.h"
#include "cache/object.h"
#include "cache/policy/range.h"
#include "config/clock.h"
#include "proxy/request.h"

namespace secondsight::proxy {

/// What is kept in parts of a whole (cache/partial.h): the head of a 206, and the bytes it is of.
struct KeptPart {
  std::shared_ptr<const cache::ObjectHead> head;
  cache::policy::ContentRange range;  // its complete length is known
};

/// All that the answer to one request depends on, as it is at one moment.
struct Situation {
  Request request;
  WallTime now{};

  cache::CacheKey primary;
  cache::CacheKey key;              // the variant's, where the primary key varies
  std::vector<std::string> vary{};  // the fields it varies with; empty: none is known
  std::size_t variants = 0;         // so many stored ones are listed
  std::vector<std::string> tags{};  // those that a request without a variant names
  bool is_by_language = false;      // the variant is another's, in the preferred language
  std::shared_ptr<const cache::ObjectHead> head;  // null: nothing is stored for this request
  std::uint64_t body_bytes = 0;
  std::optional<KeptPart> part{};

  bool in_memory = false;           // the memory tier has it
  bool is_on_its_way = false;       // the writer has it
  bool on_disk = false;             // the index has it
  bool served_from_memory = false;  // not read from disk for it
  bool would_promote = false;       // a GET that it answers has it written to disk

  admission::Verdict verdict = admission::Verdict::FirstSighting;  // of the policy alone
  double chance = 1;                                      // that it admits, where it is Undecided
  bool is_chance_by_size = false;                         // of the body
  unsigned sightings_needed = 2;                          // as AdmissionPolicy::sightings_needed()
  cache::Detail sighting = cache::Detail::FirstSighting;  // what a sighting would decide
  Seconds configured_stale_if_error{0};
  bool has_memory_tier = true;
  bool is_being_fetched = false;  // by a flight that others may join
  bool is_uncacheable = false;    // remembered as such, so that requests are not lined up
  bool is_failing = false;        // the origin failed for this key a moment ago
};

/// An explanation twice: for programs, and for people.
struct Explanation {
  boost::json::object facts;  // stable snake_case names, see docs/operations.md
  std::vector<std::pair<std::string_view, std::string>> words;  // label and text, one fact each
};

/// What would become of the request, and why: by the rules of the exchange itself. Pure.
Explanation explain(const Situation& situation);

}  // namespace secondsight::proxy
