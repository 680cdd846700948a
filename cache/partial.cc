#include "cache/partial.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cache/policy/read_facts.h"
#include "cache/policy/validation.h"

namespace secondsight::cache {
namespace {

std::string to_text(const policy::ContentRange& range) {
  const std::string complete =
      range.complete_bytes ? std::to_string(*range.complete_bytes) : std::string("*");
  return "bytes " + std::to_string(range.range.first) + "-" +
         std::to_string(range.range.end() - 1) + "/" + complete;
}

}  // namespace

CacheKey partial_key(const CacheKey& key, const admission::FingerprintSeed& seed) {
  // A variant's line begins with a digit or "@".
  return CacheKey::of_text(key.text() + "\n%part", seed);
}

std::optional<policy::ContentRange> kept_range(const ObjectHead& head,
                                               std::optional<std::uint64_t> body_bytes) {
  if (head.status != 206 || !policy::matches_strongly(head.facts.etag, head.facts.etag))
    return std::nullopt;
  const auto text = head.fields.joined("Content-Range");
  const auto range = text ? policy::parse_content_range(*text) : std::nullopt;
  if (!range || !range->complete_bytes) return std::nullopt;
  if (body_bytes && *body_bytes != range->range.size) return std::nullopt;
  return range;
}

std::shared_ptr<const ObjectHead> joined_head(const ObjectHead& older, const ObjectHead& newer,
                                              std::optional<policy::ContentRange> part) {
  auto head = std::make_shared<ObjectHead>();
  head->status = part ? 206 : 200;
  head->reason = part ? "Partial Content" : "OK";
  head->times = newer.times;
  for (const auto line : policy::freshened(older.fields, newer.fields))
    if (!policy::equals_ignoring_case(line.name, "Content-Range"))
      head->fields.add(line.name, line.value);
  if (part) head->fields.add("Content-Range", to_text(*part));
  head->facts = policy::read_facts(head->status, head->fields, head->times.response_received);
  return head;
}

ObjectPtr combined(const Object& older, const Object& newer) {
  const auto a = kept_range(*older.head, older.body_bytes);
  const auto b = kept_range(*newer.head, newer.body_bytes);
  if (!a || !b || a->complete_bytes != b->complete_bytes) return nullptr;
  if (!policy::matches_strongly(older.head->facts.etag, newer.head->facts.etag)) return nullptr;
  if (a->range.end() < b->range.first || b->range.end() < a->range.first) return nullptr;
  const std::uint64_t first = std::min(a->range.first, b->range.first);
  const std::uint64_t end = std::max(a->range.end(), b->range.end());

  // The newer one's bytes, and of the older one what lies before and behind them.
  std::vector<ChunkPtr> body;
  const auto add = [&body](std::vector<ChunkPtr> pieces) {
    for (ChunkPtr& piece : pieces) body.push_back(std::move(piece));
  };
  const auto of_older = [&](std::uint64_t from, std::uint64_t to) {
    if (from < to) add(slice_of(older.body, from - a->range.first, to - a->range.first));
  };
  of_older(first, b->range.first);
  add(newer.body);
  of_older(b->range.end(), end);
  return make_object(newer.key,
                     joined_head(*older.head, *newer.head,
                                 policy::ContentRange{{first, end - first}, a->complete_bytes}),
                     std::move(body));
}

bool is_complete(const Object& part) {
  const auto range = kept_range(*part.head, part.body_bytes);
  return range && range->range.size == *range->complete_bytes;
}

std::vector<ChunkPtr> slice_of(const std::vector<ChunkPtr>& body, std::uint64_t from,
                               std::uint64_t to) {
  std::vector<ChunkPtr> slice;
  std::uint64_t first = 0;
  for (const ChunkPtr& chunk : body) {
    const std::uint64_t end = first + chunk->size();
    const std::uint64_t cut_from = std::max(first, from);
    const std::uint64_t cut_to = std::min(end, to);
    if (cut_from < cut_to) {
      const bool is_whole = cut_from == first && cut_to == end;
      const auto at = [&](std::uint64_t offset) {
        return chunk->begin() + static_cast<std::ptrdiff_t>(offset - first);
      };
      slice.push_back(is_whole ? chunk : std::make_shared<const Chunk>(at(cut_from), at(cut_to)));
    }
    first = end;
  }
  return slice;
}

}  // namespace secondsight::cache
