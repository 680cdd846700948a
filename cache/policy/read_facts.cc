#include "cache/policy/read_facts.h"

#include <algorithm>
#include <array>

#include "cache/policy/cache_control.h"
#include "cache/policy/http_date.h"
#include "cache/policy/list.h"
#include "cache/policy/targeted.h"

namespace secondsight::cache::policy {
namespace {

constexpr WallTime kEpoch{};

/// An invalid date is in the past (RFC 9111 5.3); of several the earliest counts.
void read_expires(std::string_view value, WallTime received, ResponseFacts& facts) {
  const WallTime time = parse_http_date(value, received).value_or(kEpoch);
  facts.expires = facts.expires ? std::min(*facts.expires, time) : time;
}

/// The first member of a list, the others discarded; an invalid one is ignored. RFC 9111 5.1.
std::optional<Seconds> read_age(std::string_view value) {
  return parse_delta_seconds(ListMembers(value).next().value_or(std::string_view{}));
}

/// A name that is none could mean anything, so it is read as "*".
void read_vary(std::string_view value, std::vector<std::string>& vary) {
  ListMembers members(value);
  while (const auto member = members.next()) {
    std::string& name = vary.emplace_back(is_token(*member) ? *member : "*");
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  }
}

void finish_vary(std::vector<std::string>& vary) {
  if (std::find(vary.begin(), vary.end(), "*") != vary.end()) {
    vary.assign({"*"});
    return;
  }
  std::sort(vary.begin(), vary.end());
  vary.erase(std::unique(vary.begin(), vary.end()), vary.end());
}

/// A field that is meant for caches like us replaces Cache-Control and Expires. RFC 9213 2.2.
void apply_targeted_fields(const FieldBlock& fields, ResponseFacts& facts) {
  struct Target {
    std::string_view name;
    std::optional<ResponseDirectives> (*read)(std::string_view);
    DirectiveSource source;
  };
  constexpr std::array<Target, 2> kTargets{{
      {"CDN-Cache-Control", read_cdn_cache_control, DirectiveSource::CdnCacheControl},
      {"Surrogate-Control", read_surrogate_control, DirectiveSource::SurrogateControl},
  }};
  for (const Target& target : kTargets) {
    const auto value = fields.joined(target.name);
    const auto directives = value ? target.read(*value) : std::nullopt;
    if (!directives) continue;
    facts.directives = *directives;
    facts.source = target.source;
    facts.expires.reset();
    return;
  }
}

Method read_method(std::string_view method) {
  if (method == "GET") return Method::Get;
  if (method == "HEAD") return Method::Head;
  if (method == "OPTIONS" || method == "TRACE") return Method::Safe;
  return Method::Unsafe;
}

bool has_no_cache(std::string_view pragma) {
  ListMembers members(pragma, Quotes::String);
  while (const auto member = members.next())
    if (equals_ignoring_case(*member, "no-cache")) return true;
  return false;
}

}  // namespace

ResponseFacts read_facts(int status, const FieldBlock& fields, WallTime received) {
  ResponseFacts facts;
  facts.status = status;
  bool has_age = false;
  bool has_date = false;
  bool has_last_modified = false;
  std::optional<std::string_view> etag;
  bool etags_differ = false;
  bool has_targeted = false;
  for (const FieldLine line : fields) {
    const auto is = [&line](std::string_view name) {
      return equals_ignoring_case(line.name, name);
    };
    if (is("Cache-Control")) {
      read_cache_control(line.value, facts.directives);
    } else if (is("Age") && !has_age) {
      has_age = true;
      facts.age = read_age(line.value);
    } else if (is("Date") && !has_date) {
      has_date = true;
      facts.date = parse_http_date(line.value, received);
    } else if (is("Expires")) {
      read_expires(line.value, received, facts);
    } else if (is("Last-Modified") && !has_last_modified) {
      has_last_modified = true;
      facts.last_modified = parse_http_date(line.value, received);
    } else if (is("Vary")) {
      read_vary(line.value, facts.vary);
    } else if (is("ETag")) {
      etags_differ = etags_differ || (etag && *etag != line.value);
      etag = line.value;
    } else if (is("Set-Cookie")) {
      facts.has_set_cookie = true;
    } else if (is("CDN-Cache-Control") || is("Surrogate-Control")) {
      has_targeted = true;
    }
  }
  if (has_targeted) apply_targeted_fields(fields, facts);
  finish_vary(facts.vary);
  if (etag && !etags_differ) facts.etag = *etag;
  return facts;
}

RequestFacts read_facts(std::string_view method, const FieldBlock& fields) {
  RequestFacts facts;
  facts.method = read_method(method);
  bool has_cache_control = false;
  bool has_pragma_no_cache = false;
  for (const FieldLine line : fields) {
    const auto is = [&line](std::string_view name) {
      return equals_ignoring_case(line.name, name);
    };
    if (is("Cache-Control")) {
      has_cache_control = true;
      read_cache_control(line.value, facts);
    } else if (is("Pragma")) {
      has_pragma_no_cache = has_pragma_no_cache || has_no_cache(line.value);
    } else if (is("Authorization")) {
      facts.has_authorization = true;
    } else if (is("Range")) {
      facts.has_range = true;
    } else if (is("If-Match") || is("If-None-Match") || is("If-Modified-Since") ||
               is("If-Unmodified-Since")) {
      facts.has_conditions = true;
    }
  }
  if (!has_cache_control && has_pragma_no_cache) facts.no_cache = true;
  return facts;
}

}  // namespace secondsight::cache::policy
