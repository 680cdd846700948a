#include "cache/policy/vary.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "cache/policy/hop_by_hop.h"
#include "cache/policy/list.h"
#include "cache/policy/preferences.h"

namespace secondsight::cache::policy {
namespace {

/// Fields whose values are not comma-separated lists: a comma in them is text.
constexpr std::array<std::string_view, 8> kSingletons{
    "authorization",       "cookie",  "from",      "host", "origin",
    "proxy-authorization", "referer", "user-agent"};

void append_line(std::string_view name, std::string_view value, std::string& out) {
  if (std::find(kSingletons.begin(), kSingletons.end(), name) != kSingletons.end()) {
    if (!out.empty()) out.append(",");
    out.append(trim(value));
    return;
  }
  ListMembers members(value, Quotes::String);
  while (const auto member = members.next()) {
    if (!out.empty()) out.append(",");
    out.append(*member);
  }
}

/// An unencoded answer is always acceptable unless refused, so that "identity" says nothing where
/// no coding is accepted beside it. Where one is, it says which goes first; "*" may refuse it. RFC
/// 9110 12.5.3.
void drop_needless_identity(std::vector<Preference>& codings) {
  const auto identity = std::find_if(codings.begin(), codings.end(), [](const Preference& p) {
    return p.name == "identity" && p.weight > 0;
  });
  const bool matters = std::any_of(codings.begin(), codings.end(), [](const Preference& p) {
    return p.name == "*" || (p.name != "identity" && p.weight > 0);
  });
  if (identity != codings.end() && !matters) codings.erase(identity);
}

void append_preference(const Preference& preference, std::string& out) {
  if (!out.empty()) out.append(",");
  out.append(preference.name);
  if (preference.weight == 1000) return;
  out.append(";q=0");
  if (preference.weight == 0) return;
  const std::string thousandths = std::to_string(1000 + preference.weight).substr(1);
  out.append(".").append(thousandths, 0, thousandths.find_last_not_of('0') + 1);
}

/// Empty when the field has no preferences, or unreadable ones.
std::optional<std::string> normalised_preferences(std::string_view name,
                                                  const FieldBlock& request) {
  const bool is_encoding = name == "accept-encoding";
  if (!is_encoding && name != "accept-language") return std::nullopt;
  auto preferences = read_preferences(
      request, is_encoding ? PreferenceField::AcceptEncoding : PreferenceField::AcceptLanguage);
  if (!preferences) return std::nullopt;
  if (is_encoding) drop_needless_identity(*preferences);
  std::string text;
  for (const Preference& preference : *preferences) append_preference(preference, text);
  return text;
}

/// As the origin sees it: without what Connection keeps from it.
std::optional<std::string> normalised(std::string_view name, const FieldBlock& request) {
  if (is_named_by_connection(request, name)) return std::nullopt;
  if (auto preferences = normalised_preferences(name, request)) return preferences;
  std::optional<std::string> value;
  for (const FieldLine line : request) {
    if (!equals_ignoring_case(line.name, name)) continue;
    if (!value) value.emplace();
    append_line(name, line.value, *value);
  }
  return value;
}

void append_sized(std::string_view text, std::string& out) {
  out.append(std::to_string(text.size())).append(":").append(text);
}

}  // namespace

std::string vary_text(const std::vector<std::string>& vary, const FieldBlock& request) {
  std::string text;
  for (const std::string& name : vary) {
    append_sized(name, text);
    const auto value = normalised(name, request);
    text.append(value ? "=" : "!");
    if (value) append_sized(*value, text);
  }
  return text;
}

}  // namespace secondsight::cache::policy
