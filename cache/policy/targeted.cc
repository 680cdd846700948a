#include "cache/policy/targeted.h"

#include <algorithm>
#include <array>

#include "cache/policy/cache_control.h"
#include "cache/policy/fields.h"
#include "cache/policy/list.h"
#include "cache/policy/structured_field.h"

namespace secondsight::cache::policy {
namespace {

using Type = StructuredValue::Type;

/// Our device token. The name that Via and Cache-Status give us as well.
constexpr std::string_view kOurName = "secondsight";

struct SecondsDirective {
  std::string_view name;
  std::optional<Seconds> ResponseDirectives::*slot;
};
constexpr std::array<SecondsDirective, 4> kSeconds{{
    {"max-age", &ResponseDirectives::max_age},
    {"s-maxage", &ResponseDirectives::s_maxage},
    {"stale-while-revalidate", &ResponseDirectives::stale_while_revalidate},
    {"stale-if-error", &ResponseDirectives::stale_if_error},
}};

enum class Effect : std::uint8_t { Restricts, Permits };

struct FlagDirective {
  std::string_view name;
  bool ResponseDirectives::*flag;
  Effect effect;
};
constexpr std::array<FlagDirective, 7> kFlags{{
    {"no-store", &ResponseDirectives::no_store, Effect::Restricts},
    {"no-cache", &ResponseDirectives::no_cache, Effect::Restricts},
    {"private", &ResponseDirectives::is_private, Effect::Restricts},
    {"must-revalidate", &ResponseDirectives::must_revalidate, Effect::Restricts},
    {"proxy-revalidate", &ResponseDirectives::proxy_revalidate, Effect::Restricts},
    {"public", &ResponseDirectives::is_public, Effect::Permits},
    {"must-understand", &ResponseDirectives::must_understand, Effect::Permits},
}};

Seconds to_seconds(const StructuredValue& value) noexcept {
  if (value.type != Type::Integer || value.number < 0) return Seconds{0};
  return std::min(Seconds{value.number}, kDeltaSecondsMax);
}

bool to_flag(const StructuredValue& value, Effect effect) noexcept {
  if (value.type == Type::Boolean) return value.number == 1;
  return effect == Effect::Restricts;
}

void apply(const DictionaryMember& member, ResponseDirectives& directives) noexcept {
  for (const SecondsDirective& d : kSeconds)
    if (member.key == d.name) directives.*d.slot = to_seconds(member.value);
  for (const FlagDirective& d : kFlags)
    if (member.key == d.name) directives.*d.flag = to_flag(member.value, d.effect);
}

/// One member of Surrogate-Control: the directive and whom it is for.
struct SurrogateDirective {
  enum class Target : std::uint8_t { Everyone, Us, Others };
  std::string_view text;
  Target target = Target::Everyone;
};

SurrogateDirective split_target(std::string_view member) noexcept {
  using enum SurrogateDirective::Target;
  // Behind the last quote: a semicolon inside content="..." is no target.
  const auto quote = member.rfind('"');
  const auto from = quote == std::string_view::npos ? 0 : quote;
  auto semicolon = member.find(';', from);
  SurrogateDirective directive{.text = trim(member.substr(0, semicolon))};
  while (semicolon != std::string_view::npos) {
    const auto next = member.find(';', semicolon + 1);
    const std::string_view name =
        trim(member.substr(semicolon + 1, std::min(next, member.size()) - semicolon - 1));
    if (equals_ignoring_case(name, kOurName)) {
      directive.target = Us;
    } else if (directive.target != Us) {
      directive.target = Others;
    }
    semicolon = next;
  }
  return directive;
}

/// "max-age=600+60": fresh for 600 seconds, usable for 60 more while it is revalidated.
void read_surrogate_directive(std::string_view text, ResponseDirectives& directives) {
  constexpr std::string_view kMaxAge = "max-age=";
  const auto plus = text.find('+');
  if (plus != std::string_view::npos &&
      equals_ignoring_case(text.substr(0, kMaxAge.size()), kMaxAge)) {
    read_cache_control(text.substr(0, plus), directives);
    const Seconds extension = parse_delta_seconds(text.substr(plus + 1)).value_or(Seconds{0});
    directives.stale_while_revalidate =
        std::min(extension, directives.stale_while_revalidate.value_or(extension));
  } else if (equals_ignoring_case(text, "no-store-remote")) {
    directives.no_store = true;
  } else {
    read_cache_control(text, directives);
  }
}

}  // namespace

std::optional<ResponseDirectives> read_cdn_cache_control(std::string_view field_value) {
  ResponseDirectives directives;
  bool is_empty = true;
  DictionaryMembers members(field_value);
  while (const auto member = members.next()) {
    is_empty = false;
    apply(*member, directives);
  }
  if (is_empty || members.failed()) return std::nullopt;
  return directives;
}

std::optional<ResponseDirectives> read_surrogate_control(std::string_view field_value) {
  using enum SurrogateDirective::Target;
  ResponseDirectives for_all, for_us;
  ListMembers members(field_value, Quotes::String);
  while (const auto member = members.next()) {
    const SurrogateDirective directive = split_target(*member);
    if (directive.target == Everyone) read_surrogate_directive(directive.text, for_all);
    if (directive.target == Us) read_surrogate_directive(directive.text, for_us);
  }
  for (const SecondsDirective& d : kSeconds)
    if (for_us.*d.slot) for_all.*d.slot = for_us.*d.slot;
  for (const FlagDirective& d : kFlags) for_all.*d.flag = for_all.*d.flag || for_us.*d.flag;
  if (for_all == ResponseDirectives{}) return std::nullopt;
  return for_all;
}

}  // namespace secondsight::cache::policy
