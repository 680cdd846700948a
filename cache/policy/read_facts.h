#pragma once
#include <string_view>

#include "cache/policy/facts.h"
#include "cache/policy/fields.h"

namespace secondsight::cache::policy {

/// The border: from here on no rule sees header text. Pure; never fails (what cannot be read is
/// read as the least caching it could mean). `received` is when the response came: two-digit years
/// are read relative to it.
ResponseFacts read_facts(int status, const FieldBlock& fields, WallTime received);
RequestFacts read_facts(std::string_view method, const FieldBlock& fields);

}  // namespace secondsight::cache::policy
