#include "cache/policy/preferences.h"

#include <algorithm>

#include "cache/policy/list.h"

namespace secondsight::cache::policy {
namespace {

constexpr char to_lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}
constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}
constexpr bool is_alpha(char c) noexcept {
  return to_lower(c) >= 'a' && to_lower(c) <= 'z';
}

/// "*" or subtags of one to eight characters, the first of letters only. RFC 4647 2.1.
bool is_language_range(std::string_view name) noexcept {
  if (name == "*") return true;
  std::size_t size = 0;
  bool is_first = true;
  for (const char c : name) {
    if (c == '-') {
      if (size == 0) return false;
      size = 0;
      is_first = false;
    } else if (++size > 8 || !(is_alpha(c) || (is_digit(c) && !is_first))) {
      return false;
    }
  }
  return size > 0;
}

/// "0" to "1" with at most three decimals, in thousandths. RFC 9110 12.4.2.
std::optional<int> read_qvalue(std::string_view text) noexcept {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1')) return std::nullopt;
  if (text.size() > 1 && text[1] != '.') return std::nullopt;
  int weight = text[0] - '0';
  for (std::size_t i = 2; i < 5; ++i) {
    const char c = i < text.size() ? text[i] : '0';
    if (!is_digit(c)) return std::nullopt;
    weight = weight * 10 + (c - '0');
  }
  if (weight > 1000) return std::nullopt;
  return weight;
}

/// What stands behind the name: nothing, or one weight.
std::optional<int> read_weight(std::string_view text) noexcept {
  if (text.empty()) return 1000;
  const std::string_view parameter = trim(text.substr(1));  // without the semicolon
  if (!equals_ignoring_case(parameter.substr(0, 2), "q=")) return std::nullopt;
  return read_qvalue(parameter.substr(2));
}

std::optional<Preference> read_preference(std::string_view member, PreferenceField field) {
  const auto semicolon = std::min(member.find(';'), member.size());
  const std::string_view name = trim(member.substr(0, semicolon));
  const bool is_readable =
      field == PreferenceField::AcceptLanguage ? is_language_range(name) : is_token(name);
  const auto weight = read_weight(member.substr(semicolon));
  if (!is_readable || !weight) return std::nullopt;

  Preference preference{.name = std::string(name), .weight = *weight};
  std::transform(name.begin(), name.end(), preference.name.begin(), to_lower);
  if (field == PreferenceField::AcceptEncoding &&
      (preference.name == "x-gzip" || preference.name == "x-compress")) {
    preference.name.erase(0, 2);
  }
  return preference;
}

}  // namespace

std::optional<std::vector<Preference>> read_preferences(const FieldBlock& request,
                                                        PreferenceField field) {
  const std::string_view field_name =
      field == PreferenceField::AcceptLanguage ? "Accept-Language" : "Accept-Encoding";
  std::vector<Preference> preferences;
  bool is_present = false;
  for (const FieldLine line : request) {
    if (!equals_ignoring_case(line.name, field_name)) continue;
    is_present = true;
    ListMembers members(line.value);
    while (const auto member = members.next()) {
      auto preference = read_preference(*member, field);
      if (!preference) return std::nullopt;
      preferences.push_back(std::move(*preference));
    }
  }
  if (!is_present) return std::nullopt;

  const auto by_name = [](const Preference& a, const Preference& b) { return a.name < b.name; };
  std::sort(preferences.begin(), preferences.end(), by_name);
  preferences.erase(std::unique(preferences.begin(), preferences.end()), preferences.end());
  const auto same_name = [](const Preference& a, const Preference& b) { return a.name == b.name; };
  if (std::adjacent_find(preferences.begin(), preferences.end(), same_name) != preferences.end())
    return std::nullopt;
  std::stable_sort(preferences.begin(), preferences.end(),
                   [](const Preference& a, const Preference& b) { return a.weight > b.weight; });
  return preferences;
}

std::optional<std::string> preferred_language(const FieldBlock& request) {
  auto languages = read_preferences(request, PreferenceField::AcceptLanguage);
  if (!languages || languages->empty()) return std::nullopt;
  Preference& first = languages->front();
  const bool is_shared = languages->size() > 1 && (*languages)[1].weight == first.weight;
  if (is_shared || first.weight == 0 || first.name == "*") return std::nullopt;
  return std::move(first.name);
}

}  // namespace secondsight::cache::policy
