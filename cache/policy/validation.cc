#include "cache/policy/validation.h"

#include <algorithm>
#include <array>

#include "cache/policy/hop_by_hop.h"
#include "cache/policy/http_date.h"
#include "cache/policy/list.h"

namespace secondsight::cache::policy {
namespace {

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) noexcept {
  return std::any_of(names.begin(), names.end(),
                     [name](std::string_view n) { return equals_ignoring_case(n, name); });
}

constexpr std::array<std::string_view, 6> kReplacedByValidators{
    "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Range"};

/// What a 304 cannot change: the stored bytes stay as they are, and so does what describes them.
constexpr std::array<std::string_view, 2> kBoundToStoredBytes{"Content-Encoding", "Content-Range"};

/// RFC 9110 15.4.5; the last two say the same to the caches they are for.
constexpr std::array<std::string_view, 8> kIn304{
    "Cache-Control",     "Content-Location", "Date", "ETag", "Expires", "Vary",
    "CDN-Cache-Control", "Surrogate-Control"};

bool is_weak(std::string_view etag) noexcept {
  return etag.substr(0, 2) == "W/";
}

std::string_view opaque_tag(std::string_view etag) noexcept {
  return is_weak(etag) ? etag.substr(2) : etag;
}

/// One If-None-Match line. "*" is true: there is a stored response.
bool any_matches(std::string_view line, std::string_view stored_etag) {
  ListMembers members(line, Quotes::EntityTag);
  while (const auto member = members.next())
    if (*member == "*" || matches_weakly(*member, stored_etag)) return true;
  return false;
}

}  // namespace

bool matches_strongly(std::string_view a, std::string_view b) noexcept {
  return !a.empty() && a == b && !is_weak(a);
}

bool matches_weakly(std::string_view a, std::string_view b) noexcept {
  return !a.empty() && !b.empty() && opaque_tag(a) == opaque_tag(b);
}

bool is_not_modified(const FieldBlock& request, const ResponseFacts& stored,
                     const ExchangeTimes& times) {
  bool has_if_none_match = false;
  for (const FieldLine line : request) {
    if (!equals_ignoring_case(line.name, "If-None-Match")) continue;
    if (any_matches(line.value, stored.etag)) return true;
    has_if_none_match = true;
  }
  if (has_if_none_match) return false;

  const auto since_text = request.find("If-Modified-Since");
  if (!since_text) return false;
  const auto since = parse_http_date(*since_text, times.response_received);
  if (!since) return false;
  const WallTime changed = stored.last_modified.value_or(
      stored.date.value_or(std::chrono::floor<Seconds>(times.response_received)));
  return changed <= *since;
}

FieldBlock with_validators(const FieldBlock& request, const ResponseFacts& stored,
                           const FieldBlock& stored_fields) {
  FieldBlock fields;
  fields.reserve(request.text().size() + 128, request.count() + 2);
  for (const FieldLine line : request)
    if (!is_one_of(line.name, kReplacedByValidators)) fields.add(line.name, line.value);
  if (!stored.etag.empty()) fields.add("If-None-Match", stored.etag);
  // As the origin wrote it: some compare the text.
  const auto last_modified = stored_fields.find("Last-Modified");
  if (stored.last_modified && last_modified) fields.add("If-Modified-Since", *last_modified);
  return fields;
}

FieldBlock freshened(const FieldBlock& stored, const FieldBlock& not_modified) {
  const FieldBlock received = storable_fields(not_modified);
  FieldBlock updates;
  for (const FieldLine line : received)
    if (!is_one_of(line.name, kBoundToStoredBytes)) updates.add(line.name, line.value);

  FieldBlock fields;
  fields.reserve(stored.text().size() + updates.text().size(), stored.count() + updates.count());
  for (const FieldLine line : stored)
    if (!updates.contains(line.name)) fields.add(line.name, line.value);
  for (const FieldLine line : updates) fields.add(line.name, line.value);
  return fields;
}

bool may_freshen(const ResponseFacts& stored, const ResponseFacts& not_modified) noexcept {
  const bool is_strong = matches_strongly(not_modified.etag, not_modified.etag);
  return !is_strong || not_modified.etag == stored.etag;
}

HeadVerdict judge_by_head(const ResponseFacts& stored, std::uint64_t stored_bytes,
                          const ResponseFacts& head,
                          std::optional<std::uint64_t> head_content_length) {
  const bool is_same = (head.etag.empty() || head.etag == stored.etag) &&
                       (!head.last_modified || head.last_modified == stored.last_modified) &&
                       head_content_length.value_or(stored_bytes) == stored_bytes;
  return is_same ? HeadVerdict::Same : HeadVerdict::Outdated;
}

FieldBlock not_modified_fields(const FieldBlock& stored) {
  FieldBlock fields;
  const bool needs_last_modified = !stored.contains("ETag");
  for (const FieldLine line : stored) {
    const bool is_last_modified =
        needs_last_modified && equals_ignoring_case(line.name, "Last-Modified");
    if (is_last_modified || is_one_of(line.name, kIn304)) fields.add(line.name, line.value);
  }
  return fields;
}

}  // namespace secondsight::cache::policy
