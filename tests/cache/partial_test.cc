#include "cache/partial.h"

#include <random>

#include <gtest/gtest.h>

#include "cache/policy/read_facts.h"
#include "tests/cache/cache_fixture.h"

namespace secondsight::cache {
namespace {

constexpr std::uint64_t kComplete = 1'000;

/// Bytes [first, last] of a representation of kComplete bytes, in pieces of `piece_bytes`.
std::shared_ptr<Object> part(std::uint64_t first, std::uint64_t last,
                             std::string_view etag = "\"v1\"", std::uint64_t piece_bytes = 7,
                             std::string_view x = "1") {
  auto head = std::make_shared<ObjectHead>();
  head->status = 206;
  head->fields.add("ETag", etag);
  head->fields.add("X-Value", x);
  head->fields.add("Content-Range", "bytes " + std::to_string(first) + "-" + std::to_string(last) +
                                        "/" + std::to_string(kComplete));
  head->facts = policy::read_facts(206, head->fields, WallTime{});
  std::vector<ChunkPtr> body;
  for (std::uint64_t at = first; at <= last; at += piece_bytes)
    body.push_back(chunk_of(std::min(piece_bytes, last + 1 - at), at));
  return make_object(partial_key(key_of("/a"), kSeed), std::move(head), std::move(body));
}

Chunk bytes_of(const Object& object) {
  Chunk all;
  for (const ChunkPtr& piece : object.body) all.insert(all.end(), piece->begin(), piece->end());
  return all;
}

std::string range_of(const ObjectPtr& object) {
  return object ? object->head->fields.joined("Content-Range").value_or("none") : "null";
}

TEST(Partial, WhatIsCombined) {
  struct Row {
    const char* clause;
    std::shared_ptr<Object> older, newer;
    const char* range;
  };
  for (const Row& row : {
           Row{"RFC 9111 3.4: side by side", part(0, 99), part(100, 199), "bytes 0-199/1000"},
           Row{"RFC 9111 3.4: the newer before the older", part(100, 199), part(0, 99),
               "bytes 0-199/1000"},
           Row{"RFC 9111 3.4: overlapping", part(0, 150), part(100, 199), "bytes 0-199/1000"},
           Row{"RFC 9111 3.4: inside", part(0, 999), part(100, 199), "bytes 0-999/1000"},
           Row{"RFC 9111 3.4: around", part(100, 199), part(0, 999), "bytes 0-999/1000"},
           Row{"RFC 9111 3.4: the same", part(5, 9), part(5, 9), "bytes 5-9/1000"},
           Row{"RFC 9111 3.4: a gap", part(0, 98), part(100, 199), "null"},
           Row{"RFC 9110 15.3.7.3: another tag", part(0, 99), part(100, 199, "\"v2\""), "null"},
           Row{"RFC 9110 15.3.7.3: weak tags", part(0, 99, "W/\"v1\""), part(100, 199, "W/\"v1\""),
               "null"},
           Row{"RFC 9110 15.3.7.3: no tags", part(0, 99, ""), part(100, 199, ""), "null"},
       }) {
    SCOPED_TRACE(row.clause);
    const ObjectPtr joined = combined(*row.older, *row.newer);
    EXPECT_EQ(range_of(joined), row.range);
  }
  auto lying = part(100, 199);
  lying->body_bytes = 50;
  EXPECT_EQ(combined(*part(0, 99), *lying), nullptr) << "shorter than it says";
}

TEST(Partial, CombinedBytesAreThoseOfTheRepresentation) {
  std::mt19937 random(20261130);
  for (int round = 0; round < 300; ++round) {
    const auto some = [&] {
      const std::uint64_t a = random() % kComplete, b = random() % kComplete;
      return part(std::min(a, b), std::max(a, b), "\"v1\"", 1 + random() % 300);
    };
    const auto older = some();
    const auto newer = some();
    const ObjectPtr joined = combined(*older, *newer);
    if (!joined) continue;
    const auto range = kept_range(*joined->head, joined->body_bytes);
    ASSERT_TRUE(range);
    EXPECT_TRUE(bytes_of(*joined) == *chunk_of(range->range.size, range->range.first));
    EXPECT_EQ(is_complete(*joined), range->range.size == kComplete);
  }
}

TEST(Partial, TheNewerHeadGoesOverTheOlder) {
  const auto older = part(0, 99, "\"v1\"", 7, "old");
  const auto newer = part(100, 199, "\"v1\"", 7, "new");
  EXPECT_EQ(combined(*older, *newer)->head->fields.find("X-Value"), "new");
  const auto whole = joined_head(*older->head, *newer->head, std::nullopt);
  EXPECT_EQ(whole->status, 200);
  EXPECT_FALSE(whole->fields.contains("Content-Range"));
  EXPECT_EQ(whole->facts.status, 200);
}

TEST(Partial, WhatMayBeKept) {  // RFC 9111 3.3: only as what it is
  const auto good = part(10, 19);
  EXPECT_TRUE(kept_range(*good->head, 10));
  EXPECT_TRUE(kept_range(*good->head, std::nullopt));
  EXPECT_FALSE(kept_range(*good->head, 9));
  ObjectHead whole = *good->head;
  whole.status = 200;
  EXPECT_FALSE(kept_range(whole, 10));
  ObjectHead twice = *good->head;
  twice.fields.add("Content-Range", "bytes 10-19/1000");
  EXPECT_FALSE(kept_range(twice, 10)) << "two ranges of one body";
}

TEST(Partial, ItsKeyIsNoOthers) {
  const CacheKey key = key_of("/a");
  const CacheKey part_of_it = partial_key(key, kSeed);
  policy::FieldBlock request;
  EXPECT_NE(part_of_it.text(), key.text());
  EXPECT_NE(part_of_it.text(), key.variant({"x"}, WallTime{}, request, kSeed).text());
}

}  // namespace
}  // namespace secondsight::cache
