#include "tests/cache/log/log_fixture.h"

#include <cstdlib>
#include <filesystem>
#include <unistd.h>
#include <utility>

#include "config/encoding.h"

namespace secondsight::test {
namespace {

constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9;
  x ^= x >> 27;
  x *= 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

admission::Fingerprint fingerprint_of(std::uint64_t key) {
  return {mix(key + 0x1234567), mix(key + 0x89ABCDEF)};
}

std::string key_text(std::uint64_t key) {
  return "http://example.org/" + std::to_string(key);
}

std::vector<std::byte> body_of(std::uint64_t key, std::uint64_t version, std::size_t bytes) {
  std::vector<std::byte> body((bytes + 7) / 8 * 8);
  for (std::size_t at = 0; at < body.size(); at += 8)
    store_little_endian(body.data() + at, mix(mix(key * 1'000'003 + version) + at));
  body.resize(bytes);
  return body;
}

TestRecord::TestRecord(std::uint64_t key_number, std::uint64_t version, std::size_t body_bytes,
                       RecordKind kind)
    : key(key_text(key_number)),
      head("version=" + std::to_string(version)),
      body(body_of(key_number, version, body_bytes)),
      piece(body) {
  view.kind = kind;
  view.fingerprint = fingerprint_of(key_number);
  view.status = 200;
  view.times = {WallTime(std::chrono::milliseconds(version)),
                WallTime(std::chrono::milliseconds(version + 1))};
  view.key = key;
  view.head = head;
  if (!body.empty()) view.body = {&piece, 1};
}

Result<ReadBack> read_all(const ObjectLog& log, const Location& location, ReadMode mode) {
  auto reader = log.open_object(location, mode);
  if (!reader) return reader.error();
  ReadBack read;
  read.head = (*reader)->head();
  read.body.resize(read.head.body_bytes);
  if (auto done = (*reader)->read_body(0, read.body, mode); !done) return done.error();
  return read;
}

std::int64_t version_read(const ReadBack& read, std::uint64_t key) {
  constexpr std::string_view kPrefix = "version=";
  if (read.head.key != key_text(key) || read.head.fingerprint != fingerprint_of(key) ||
      !read.head.head.starts_with(kPrefix))
    return -1;
  const std::int64_t version = std::atoll(read.head.head.c_str() + kPrefix.size());
  const auto times = read.head.times.request_sent.time_since_epoch().count();
  if (times != version ||
      read.body != body_of(key, static_cast<std::uint64_t>(version), read.body.size()))
    return -1;
  return version;
}

void TestIndex::put(const admission::Fingerprint& fingerprint, RecordKind kind,
                    const Location& location) {
  if (kind == RecordKind::Tombstone)
    places.erase(fingerprint.low);
  else if (kind != RecordKind::Part && kind != RecordKind::Purge)
    places[fingerprint.low] = location;
}

ObjectLog::OnRecord TestIndex::recorder() {
  return [this](const admission::Fingerprint& fingerprint, RecordKind kind,
                const Location& location) { put(fingerprint, kind, location); };
}

ObjectLog::OnReclaimed TestIndex::reclaimer() {
  return [this](const admission::Fingerprint& fingerprint, const Location& location) {
    ++reclaimed;
    const auto at = places.find(fingerprint.low);
    if (at != places.end() && at->second == location) places.erase(at);
  };
}

std::optional<Location> TestIndex::find(std::uint64_t key) const {
  const auto at = places.find(fingerprint_of(key).low);
  if (at == places.end()) return std::nullopt;
  return at->second;
}

Result<std::unique_ptr<ObjectLog>> open_log(FileSystem& files, std::uint32_t segment_bytes,
                                            std::uint32_t segments,
                                            const ObjectLog::OnRecord& recovered,
                                            std::uint64_t seal_bytes) {
  ObjectLog::Options options;
  options.seal_bytes = seal_bytes;
  options.segment_bytes = segment_bytes;
  options.capacity_bytes = std::uint64_t{segment_bytes} * segments;
  options.seed_id = kSeedId;
  return ObjectLog::open(files, options, recovered);
}

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "secondsight-").string();
  pattern.append(6, 'X');  // what mkdtemp replaces
  if (::mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace secondsight::test
