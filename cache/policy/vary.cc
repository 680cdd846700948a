#include "cache/policy/vary.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "cache/policy/list.h"

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

std::optional<std::string> normalised(std::string_view name, const FieldBlock& request) {
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
