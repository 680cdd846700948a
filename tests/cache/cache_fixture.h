#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/cache.h"
#include "config/units.h"
#include "tests/support/gated_file_system.h"
#include "tests/support/sim_file_system.h"

namespace secondsight::cache {

using namespace literals;

inline const admission::FingerprintSeed kSeed{admission::FingerprintSeed::Bytes{}};

inline CacheKey key_of(std::string_view target) {
  return CacheKey::primary("http", "test", target, kSeed);
}

inline std::shared_ptr<const ObjectHead> head_of(std::string_view value = "1") {
  auto head = std::make_shared<ObjectHead>();
  head->status = 200;
  head->reason = "OK";
  head->fields.add("X-Value", value);
  return head;
}

/// Bytes that differ from place to place.
inline ChunkPtr chunk_of(std::size_t bytes, std::size_t first = 0) {
  auto chunk = std::make_shared<Chunk>(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    (*chunk)[i] = static_cast<std::byte>(((first + i) * 2'654'435'761U) >> 13);
  return chunk;
}

inline std::shared_ptr<Object> object_of(std::string_view target, std::size_t body_bytes = 100,
                                         std::string_view value = "1") {
  std::vector<ChunkPtr> body;
  for (std::size_t at = 0; at < body_bytes; at += 64_KiB)
    body.push_back(chunk_of(std::min<std::size_t>(64_KiB, body_bytes - at), at));
  return make_object(key_of(target), head_of(value), std::move(body));
}

/// A disk in memory, behind a gate.
struct TestDisk {
  TestDisk() {
    auto disk = std::make_unique<test::SimFileSystem>(1);
    sim = disk.get();
    files = std::make_unique<test::GatedFileSystem>(std::move(disk), gate);
  }
  std::shared_ptr<test::DiskGate> gate = std::make_shared<test::DiskGate>();
  test::SimFileSystem* sim = nullptr;
  std::unique_ptr<test::GatedFileSystem> files;
};

}  // namespace secondsight::cache
