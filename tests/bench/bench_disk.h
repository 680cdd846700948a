#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "admission/fingerprint.h"
#include "cache/disk_store.h"
#include "cache/index.h"
#include "cache/log/object_log.h"
#include "config/metrics.h"
#include "config/posix_file_system.h"

namespace secondsight::bench {

/// Random bytes, the same for the same number.
cache::ChunkPtr make_body(std::uint64_t number, std::size_t bytes);
/// Object number n, with a head as an origin would give it: http://bench.example/objects/N.
std::shared_ptr<cache::Object> make_object(std::uint64_t number, cache::ChunkPtr body,
                                           const admission::FingerprintSeed& seed);
/// What an origin sent and a cache has to keep: key, head and body.
std::uint64_t payload_bytes(const cache::Object& object) noexcept;
cache::CacheKey key_of(std::uint64_t number, const admission::FingerprintSeed& seed);

/// A disk cache without a proxy: log, index, and what writes to them. A proxy can be started on its
/// directory afterwards. Ends the program with a message when the disk fails.
class BenchDisk {
 public:
  BenchDisk(const std::string& directory, std::uint64_t capacity_bytes);
  ~BenchDisk();

  void put(const cache::Object& object);
  /// Reads the whole body, every block verified. False: not there.
  bool get(const cache::CacheKey& key, std::vector<std::byte>& body);
  /// Seals the log, as a clean stop does.
  void close();

  cache::Index& index() noexcept { return index_; }
  const admission::FingerprintSeed& seed() const noexcept { return *seed_; }
  const cache::log::ObjectLog& log() const noexcept { return *log_; }

 private:
  Metrics metrics_;
  cache::Index index_;
  std::unique_ptr<admission::FingerprintSeed> seed_;
  std::unique_ptr<cache::PurgeList> purges_;
  std::unique_ptr<PosixFileSystem> files_;
  std::unique_ptr<cache::log::ObjectLog> log_;
  std::unique_ptr<cache::DiskStore> store_;
};

[[noreturn]] void fail(const std::string& what);
double seconds_since(std::int64_t nanoseconds) noexcept;
std::int64_t nanoseconds_now() noexcept;
/// Of this process: resident set now, and what it had the kernel write to storage so far.
std::uint64_t resident_bytes();
std::uint64_t kernel_written_bytes();
/// CPU time of this process, user and system.
double cpu_seconds();

}  // namespace secondsight::bench
