#include "cache/key_rules.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include <boost/container/small_vector.hpp>

#include "cache/policy/hop_by_hop.h"
#include "cache/policy/list.h"
#include "cache/target.h"

namespace secondsight::cache {
namespace {

using policy::FieldBlock;
using policy::FieldLine;

constexpr std::size_t kUsualParams = 32;
/// Room in a key's text for the sizes and the value of one field or cookie.
constexpr std::size_t kUsualValueBytes = 48;

/// One parameter in the text of a key.
struct Param {
  std::size_t begin;
  std::size_t size;
  std::size_t name_size;
};

/// Those from `begin` on, by name, and by place where names are equal. `text` ends with them, each
/// behind its "?" or "&".
template <class Params>
void sort_params(Params& params, std::string& text) {
  const auto name = [&text](const Param& p) {
    return std::string_view(text).substr(p.begin, p.name_size);
  };
  const auto goes_before = [&](const Param& a, const Param& b) {
    const int order = name(a).compare(name(b));
    return order != 0 ? order < 0 : a.begin < b.begin;
  };
  if (std::is_sorted(params.begin(), params.end(), goes_before)) return;
  const std::size_t first = params.front().begin;
  const std::size_t end = text.size();
  std::sort(params.begin(), params.end(), goes_before);
  for (const Param& param : params) {  // behind the old ones, which then go
    if (param.begin != params.front().begin) text.push_back('&');
    text.append(text, param.begin, param.size);
  }
  text.erase(first, end - first);
}

void append_size(std::size_t size, std::string& out) {
  char digits[20];
  const auto written = std::to_chars(digits, digits + sizeof digits, size);
  out.append(digits, written.ptr).push_back(':');
}

void append_sized(std::string_view text, std::string& out) {
  append_size(text.size(), out);
  out.append(text);
}

/// "h8:x-tenant=3:abc" or "h8:x-tenant!".
void append_header(const std::string& name, const FieldBlock& fields, std::string& out) {
  out.push_back('h');
  append_sized(name, out);
  std::size_t lines = 0;
  std::size_t bytes = 0;
  for (const FieldLine line : fields) {
    if (!policy::equals_ignoring_case(line.name, name)) continue;
    ++lines;
    bytes += line.value.size();
  }
  // What does not reach the origin has no part in its answer. Were it in the key, a client could
  // have the answer to nobody in particular stored as the one for a value of its choice.
  if (lines == 0 || policy::is_named_by_connection(fields, name)) {
    out.push_back('!');
    return;
  }
  out.push_back('=');
  append_size(bytes + 2 * (lines - 1), out);
  for (const FieldLine line : fields) {
    if (!policy::equals_ignoring_case(line.name, name)) continue;
    out.append(line.value);
    if (--lines > 0) out.append(", ");
  }
}

/// "c4:lang=2:de=2:en", "c4:lang-" or "c4:lang!". RFC 6265 4.2.1.
void append_cookie(const std::string& name, const FieldBlock& fields, std::string& out) {
  out.push_back('c');
  append_sized(name, out);
  const std::size_t before = out.size();
  for (const FieldLine line : fields) {
    if (!policy::equals_ignoring_case(line.name, "Cookie")) continue;
    for (std::string_view rest = line.value; !rest.empty();) {
      const std::size_t end = std::min(rest.find(';'), rest.size());
      const std::string_view pair = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      const std::size_t equals = pair.find('=');
      // Origins disagree about blanks beside the "=": what has them may be another cookie, or none.
      const std::size_t first = std::min(pair.find_first_not_of(" \t"), pair.size());
      const std::string_view found = pair.substr(first, equals - std::min(first, equals));
      if (policy::trim(found) != name) continue;
      if (equals == std::string_view::npos) {
        out.push_back('-');
      } else {
        out.push_back(found == name ? '=' : '~');
        append_sized(pair.substr(equals + 1), out);
      }
    }
  }
  if (out.size() == before) out.push_back('!');
}

}  // namespace

KeyRules::Names::Names(const std::vector<std::string>& patterns) {
  for (std::string_view pattern : patterns) {
    const bool is_prefix = pattern.ends_with('*');
    if (is_prefix) pattern.remove_suffix(1);
    append_normalised(pattern, (is_prefix ? prefixes : whole).emplace_back());
  }
  std::sort(whole.begin(), whole.end());
}

bool KeyRules::Names::has(std::string_view name) const noexcept {
  return std::binary_search(whole.begin(), whole.end(), name, std::less<>{}) ||
         std::any_of(prefixes.begin(), prefixes.end(),
                     [name](const std::string& prefix) { return name.starts_with(prefix); });
}

KeyRules::KeyRules(const SiteSettings& site)
    : sort_(site.sort_query),
      drop_empty_(site.drop_empty_query),
      remove_dots_(site.remove_dot_segments),
      headers_(site.key_headers),
      cookies_(site.key_cookies) {
  if (!site.keep_params.empty()) {
    listed_ = Listed::Kept;
    params_ = Names(site.keep_params);
  } else if (!site.drop_params.empty()) {
    listed_ = Listed::Dropped;
    params_ = Names(site.drop_params);
  }
  has_target_rules_ = sort_ || drop_empty_ || remove_dots_ || listed_ != Listed::Nothing;
  // One order for one set, so that the order of a file makes no other keys.
  std::sort(headers_.begin(), headers_.end());
  std::sort(cookies_.begin(), cookies_.end());
}

bool KeyRules::keeps(std::string_view name) const noexcept {
  return listed_ == Listed::Nothing || params_.has(name) == (listed_ == Listed::Kept);
}

/// "?" and the parameters that stay; nothing when none does. Each name and each value is normalised
/// for itself, so that a broken escape leaves the rest as it is.
void KeyRules::append_query(std::string_view query, std::string& out) const {
  const std::size_t begin = out.size();
  boost::container::small_vector<Param, kUsualParams> params;
  for (bool is_last = false; !is_last;) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view param = query.substr(0, end);
    is_last = end == query.size();
    query.remove_prefix(is_last ? end : end + 1);

    const std::size_t before = out.size();
    out.push_back(before == begin ? '?' : '&');
    const std::size_t equals = param.find('=');
    append_normalised(param.substr(0, equals), out);
    const std::size_t name_size = out.size() - before - 1;
    if (!keeps(std::string_view(out).substr(before + 1, name_size))) {
      out.resize(before);
      continue;
    }
    if (equals != std::string_view::npos) {
      out.push_back('=');
      append_normalised(param.substr(equals + 1), out);
    }
    if (sort_) params.push_back({before + 1, out.size() - before - 1, name_size});
  }
  if (!params.empty()) sort_params(params, out);
  if (drop_empty_ && out.size() == begin + 1) out.pop_back();
}

std::string KeyRules::primary_text(std::string_view scheme, std::string_view host,
                                   std::string_view target, const FieldBlock& fields) const {
  std::string text;
  std::size_t bytes = scheme.size() + host.size() + target.size() + 8;
  if (sort_) bytes += target.size();  // twice, for a moment
  for (const auto* names : {&headers_, &cookies_})
    for (const std::string& name : *names) bytes += name.size() + kUsualValueBytes;
  text.reserve(bytes);
  text.append(scheme).append("://");
  append_host(scheme, host, text);
  if (!has_target_rules_) {
    append_target(target, text);
  } else {
    const std::size_t question = target.find('?');
    const std::string_view path = target.substr(0, question);
    if (remove_dots_) {
      append_path_without_dots(path, text);
    } else {
      append_target(path, text);
    }
    if (question != std::string_view::npos) append_query(target.substr(question + 1), text);
  }
  if (headers_.empty() && cookies_.empty()) return text;
  text.append("\n+");
  for (const std::string& name : headers_) append_header(name, fields, text);
  for (const std::string& name : cookies_) append_cookie(name, fields, text);
  return text;
}

}  // namespace secondsight::cache
