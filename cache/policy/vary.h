#pragma once
#include <string>
#include <vector>

#include "cache/policy/fields.h"

namespace secondsight::cache::policy {

/// Text that two requests share exactly if a response with this Vary may answer both: each
/// nominated field with its joined, whitespace-normalised value, or its absence. Names and values
/// are length-prefixed, so that no two different requests give one text. Whitespace is removed
/// around the commas of lists, outside quoted strings; fields that hold one value (User-Agent,
/// Cookie) are only trimmed. Accept-Encoding and Accept-Language are compared by what they mean
/// (read_preferences()), unless unreadable. RFC 9111 4.1.
std::string vary_text(const std::vector<std::string>& vary, const FieldBlock& request);

}  // namespace secondsight::cache::policy
