#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

#include "cache/log/object_log.h"

namespace secondsight::test {

using cache::log::Location;
using cache::log::ObjectLog;
using cache::log::RecordHead;
using cache::log::RecordKind;
using cache::log::RecordView;

inline constexpr std::uint64_t kSeedId = 0x5EED5EED5EED5EED;

/// Errors of Results as readable test failures.
template <class R>
void expect_ok(const R& result, const char* what) {
  EXPECT_TRUE(result.has_value()) << what << ": "
                                  << (result.has_value() ? "" : result.error().message());
}
#define EXPECT_OK(expression) ::secondsight::test::expect_ok((expression), #expression)

admission::Fingerprint fingerprint_of(std::uint64_t key);
std::string key_text(std::uint64_t key);

/// Bytes that differ in every word between keys, versions and places, so that no wrong byte passes.
std::vector<std::byte> body_of(std::uint64_t key, std::uint64_t version, std::size_t bytes);

/// One record of a test, and what it needs to live until it is appended.
struct TestRecord {
  TestRecord(std::uint64_t key, std::uint64_t version, std::size_t body_bytes,
             RecordKind kind = RecordKind::Object);
  TestRecord(const TestRecord&) = delete;
  TestRecord& operator=(const TestRecord&) = delete;

  std::string key, head;
  std::vector<std::byte> body;
  std::span<const std::byte> piece;
  RecordView view;
};

struct ReadBack {
  RecordHead head;
  std::vector<std::byte> body;
};
/// Opens the object and reads its whole body.
Result<ReadBack> read_all(const ObjectLog& log, const Location& location,
                          ReadMode mode = ReadMode::Blocking);

/// The version that the head names; -1 when head, key or body are not exactly what was written.
std::int64_t version_read(const ReadBack& read, std::uint64_t key);

/// What an index would hold: the newest record of each key, Tombstones applied, Parts and Purges
/// left out.
struct TestIndex {
  ObjectLog::OnRecord recorder();
  ObjectLog::OnReclaimed reclaimer();
  void put(const admission::Fingerprint& fingerprint, RecordKind kind, const Location& location);
  std::optional<Location> find(std::uint64_t key) const;

  std::unordered_map<std::uint64_t, Location> places;  // by Fingerprint::low
  std::uint64_t reclaimed = 0;
};

inline void ignore_reclaimed(const admission::Fingerprint&, const Location&) {}
inline void ignore_recovered(const admission::Fingerprint&, RecordKind, const Location&) {}

Result<std::unique_ptr<ObjectLog>> open_log(FileSystem& files, std::uint32_t segment_bytes,
                                            std::uint32_t segments,
                                            const ObjectLog::OnRecord& recovered,
                                            std::uint64_t seal_bytes = 0);

/// A fresh directory, removed with all in it at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace secondsight::test
