#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/policy/fields.h"

namespace secondsight::cache::policy {

/// One member of Accept-Encoding or Accept-Language.
struct Preference {
  std::string name;   // lower case
  int weight = 1000;  // thousandths; 0 refuses. RFC 9110 12.4.2
  friend bool operator==(const Preference&, const Preference&) = default;
};

enum class PreferenceField : std::uint8_t { AcceptEncoding, AcceptLanguage };

/// The field's members (all its lines are one list) by falling weight, then by name, each name
/// once: two requests that differ only in order, case, whitespace, or how a weight is written give
/// the same. x-gzip is gzip and x-compress is compress (RFC 9110 8.4.1). Empty when the field is
/// absent, a member is unreadable, or one name has two weights: then only its text can be compared.
std::optional<std::vector<Preference>> read_preferences(const FieldBlock& request,
                                                        PreferenceField field);

/// The language this request prefers to every other, in lower case; empty when two share the
/// highest weight, it is "*" or refused, or the field is absent or unreadable. RFC 9110 12.5.4.
std::optional<std::string> preferred_language(const FieldBlock& request);

}  // namespace secondsight::cache::policy
