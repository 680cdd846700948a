#pragma once
#include <cstdint>
#include <string>

#include <boost/json/value.hpp>

#include "cache/policy/facts.h"
#include "proxy/explain.h"
#include "proxy/selection.h"

namespace secondsight::proxy {

/// What the part that is kept does for a request.
enum class PartUse : std::uint8_t {
  None,    // there is none, or it may not be used
  Beyond,  // not all that is asked for lies within it
  All,     // it is the answer
};
/// Of a request that would ask the origin otherwise. Pure.
PartUse part_use(const Situation& situation, const cache::policy::RequestFacts& request);
/// What the request's Range asks for of the whole that the part belongs to. Pure.
Selection select_of_part(const Situation& situation);

/// Which bytes are kept and how long they are fresh; null: none. See docs/operations.md.
boost::json::value facts_of_part(const Situation& situation);
/// The same for people, of a part that is there.
std::string words_of_part(const Situation& situation);
/// Why that part is not used for a Range request, although it may hold what is asked for.
std::string why_not_part(const Situation& situation, const cache::policy::RequestFacts& request);

}  // namespace secondsight::proxy
