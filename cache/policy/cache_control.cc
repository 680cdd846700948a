#include "cache/policy/cache_control.h"

#include <algorithm>

#include "cache/policy/fields.h"
#include "cache/policy/list.h"

namespace secondsight::cache::policy {
namespace {

/// One member of the list, taken apart.
struct Directive {
  std::string_view name;
  std::string_view value;  // quoted-string contents without the quotes, escapes left alone
  bool has_value = false;
  bool is_well_formed = false;

  bool is(std::string_view other) const noexcept { return equals_ignoring_case(name, other); }
};

/// "max-age =3" and "no-store; x" are malformed, but their names are still plain: a restriction
/// must not vanish because of a stray byte.
Directive read_directive(std::string_view member) {
  Directive directive;
  std::size_t name_size = 0;
  while (name_size < member.size() && is_token(member.substr(name_size, 1))) ++name_size;
  directive.name = member.substr(0, name_size);
  const std::string_view rest = member.substr(name_size);
  if (rest.empty()) {
    directive.is_well_formed = !directive.name.empty();
    return directive;
  }
  const auto equals = rest.find('=');
  directive.has_value = equals != std::string_view::npos;
  if (!directive.has_value) return directive;
  std::string_view value = rest.substr(equals + 1);
  const bool is_quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  directive.is_well_formed = equals == 0 && name_size > 0 && (is_quoted || is_token(value));
  if (is_quoted) value = value.substr(1, value.size() - 2);
  directive.value = value;
  return directive;
}

/// RFC 9111 4.2.1: unreadable freshness is no freshness.
Seconds seconds_or_zero(const Directive& directive) {
  if (!directive.is_well_formed) return Seconds{0};
  return parse_delta_seconds(directive.value).value_or(Seconds{0});
}

void keep_smallest(std::optional<Seconds>& slot, Seconds value) {
  slot = slot ? std::min(*slot, value) : value;
}

void keep_largest(std::optional<Seconds>& slot, Seconds value) {
  slot = slot ? std::max(*slot, value) : value;
}

}  // namespace

std::optional<Seconds> parse_delta_seconds(std::string_view text) noexcept {
  if (text.empty()) return std::nullopt;
  std::int64_t seconds = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    seconds = std::min<std::int64_t>(seconds * 10 + (c - '0'), kDeltaSecondsMax.count());
  }
  return Seconds{seconds};
}

void read_cache_control(std::string_view line, ResponseDirectives& directives) {
  ListMembers members(line, Quotes::String);
  while (const auto member = members.next()) {
    const Directive d = read_directive(*member);
    if (d.is("max-age")) {
      keep_smallest(directives.max_age, seconds_or_zero(d));
    } else if (d.is("s-maxage")) {
      keep_smallest(directives.s_maxage, seconds_or_zero(d));
    } else if (d.is("stale-while-revalidate")) {
      keep_smallest(directives.stale_while_revalidate, seconds_or_zero(d));
    } else if (d.is("stale-if-error")) {
      keep_smallest(directives.stale_if_error, seconds_or_zero(d));
    } else if (d.is("no-store")) {
      directives.no_store = true;
    } else if (d.is("no-cache")) {
      directives.no_cache = true;
    } else if (d.is("private")) {
      directives.is_private = true;
    } else if (d.is("must-revalidate")) {
      directives.must_revalidate = true;
    } else if (d.is("proxy-revalidate")) {
      directives.proxy_revalidate = true;
    } else if (d.is("public")) {
      directives.is_public = directives.is_public || d.is_well_formed;
    } else if (d.is("must-understand")) {
      directives.must_understand = directives.must_understand || d.is_well_formed;
    }
  }
  // Whatever the quote swallowed may have been a restriction that nothing may lift.
  if (members.unterminated()) {
    directives.no_store = true;
    directives.is_private = true;
  }
}

void read_cache_control(std::string_view line, RequestFacts& facts) {
  ListMembers members(line, Quotes::String);
  while (const auto member = members.next()) {
    const Directive d = read_directive(*member);
    if (d.is("max-age")) {
      keep_smallest(facts.max_age, seconds_or_zero(d));
    } else if (d.is("min-fresh")) {
      // Unreadable: as much as there can be, so that nothing is fresh enough.
      const auto value = d.is_well_formed ? parse_delta_seconds(d.value) : std::nullopt;
      keep_largest(facts.min_fresh, value.value_or(kDeltaSecondsMax));
    } else if (d.is("max-stale")) {
      const bool takes_any = d.is_well_formed && !d.has_value;
      keep_smallest(facts.max_stale, takes_any ? kDeltaSecondsMax : seconds_or_zero(d));
    } else if (d.is("stale-if-error")) {
      keep_smallest(facts.stale_if_error, seconds_or_zero(d));
    } else if (d.is("no-store")) {
      facts.no_store = true;
    } else if (d.is("no-cache")) {
      facts.no_cache = true;
    } else if (d.is("only-if-cached")) {
      facts.only_if_cached = facts.only_if_cached || d.is_well_formed;
    }
  }
  if (members.unterminated()) {
    facts.no_store = true;
    facts.no_cache = true;
  }
}

}  // namespace secondsight::cache::policy
