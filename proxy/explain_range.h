#pragma once
#include <string>

#include <boost/json/object.hpp>

#include "cache/policy/facts.h"
#include "proxy/explain.h"

namespace secondsight::proxy {

/// What becomes of the Range of a GET, for programs and for people.
struct RangeStory {
  boost::json::object facts;  // see docs/operations.md
  std::string words;
};

/// What of the stored response a request gets that is answered with it. Pure.
RangeStory tell_range_of_hit(const Situation& situation);

/// What of a part that is kept a request gets that is answered with it. Pure.
RangeStory tell_range_of_part(const Situation& situation);

/// How a request that asks the origin does so.
struct RangeFetch {
  bool is_shared = false;  // with others, or alone
  bool joins = false;      // a fetch that is under way
  bool validates = false;  // what is stored
  bool completes = false;  // the beginning that is kept
  bool is_kept = false;    // what comes, if it may be
};
/// What the origin is asked for in place of a part. Pure.
RangeStory tell_range_of_fetch(const Situation& situation,
                               const cache::policy::RequestFacts& request, const RangeFetch& fetch);

}  // namespace secondsight::proxy
