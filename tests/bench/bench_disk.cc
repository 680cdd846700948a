#include "tests/bench/bench_disk.h"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <utility>

#include "cache/policy/http_date.h"
#include "cache/replay.h"
#include "config/clock.h"

namespace secondsight::bench {

cache::CacheKey key_of(std::uint64_t number, const admission::FingerprintSeed& seed) {
  return cache::CacheKey::primary("http", "bench.example", "/objects/" + std::to_string(number),
                                  seed);
}

cache::ChunkPtr make_body(std::uint64_t number, std::size_t bytes) {
  auto body = std::make_shared<cache::Chunk>(bytes);
  std::mt19937_64 random(number);
  for (std::byte& byte : *body) byte = static_cast<std::byte>(random());
  return body;
}

std::shared_ptr<cache::Object> make_object(std::uint64_t number, cache::ChunkPtr body,
                                           const admission::FingerprintSeed& seed) {
  auto head = std::make_shared<cache::ObjectHead>();
  head->status = 200;
  head->reason = "OK";
  static const WallTime now = SystemClock().wall();
  head->times = {now, now};
  head->fields.add("Date", cache::policy::format_http_date(now));
  head->fields.add("Content-Type", "text/css");
  head->fields.add("Content-Length", std::to_string(body->size()));
  head->fields.add("ETag", "\"" + std::to_string(number) + "-5d8c72a5\"");
  head->fields.add("Cache-Control", "max-age=86400");
  return cache::make_object(key_of(number, seed), std::move(head), {std::move(body)});
}

std::uint64_t payload_bytes(const cache::Object& object) noexcept {
  return object.key.text().size() + object.head->reason.size() + 2 +
         object.head->fields.text().size() + object.body_bytes;
}

BenchDisk::BenchDisk(const std::string& directory, std::uint64_t capacity_bytes) {
  auto files = PosixFileSystem::open_directory(directory);
  if (!files) fail("cannot use " + directory + ": " + files.error().message());
  files_ = std::move(*files);
  const auto seed = admission::FingerprintSeed::load_or_create(directory);
  if (!seed) fail("cannot make the seed: " + seed.error().message());
  seed_ = std::make_unique<admission::FingerprintSeed>(*seed);
  purges_ = std::make_unique<cache::PurgeList>(*seed_);
  cache::Replay replay(index_);
  auto log = cache::log::ObjectLog::open(
      *files_,
      {.capacity_bytes = capacity_bytes,
       .segment_bytes = cache::log::ObjectLog::segment_bytes_for(capacity_bytes),
       .seed_id = seed_->id()},
      [&replay](const admission::Fingerprint& key, cache::log::RecordKind kind,
                const cache::log::Location& at) { replay.add(key, kind, at); },
      [&replay](std::uint64_t records) { replay.expect(records); });
  if (!log) fail("cannot open the log: " + log.error().message());
  replay.finish();
  log_ = std::move(*log);
  store_ = std::make_unique<cache::DiskStore>(*log_, index_, nullptr, *purges_, metrics_);
}

BenchDisk::~BenchDisk() = default;

void BenchDisk::put(const cache::Object& object) {
  const auto entry = store_->write(object);
  if (!entry) fail("a write failed");
  index_.insert(object.key.fingerprint(), *entry);
}

bool BenchDisk::get(const cache::CacheKey& key, std::vector<std::byte>& body) {
  const auto entry = index_.find(key.fingerprint());
  if (!entry) return false;
  const auto reader = log_->open_object(entry->location, ReadMode::Blocking);
  if (!reader || (*reader)->head().key != key.text()) return false;
  body.resize((*reader)->head().body_bytes);
  return (*reader)->read_body(0, body, ReadMode::Blocking).has_value();
}

void BenchDisk::close() {
  store_->close();
}

void fail(const std::string& what) {
  std::cerr << program_invocation_short_name << ": " << what << '\n';
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
}

std::int64_t nanoseconds_now() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

double seconds_since(std::int64_t nanoseconds) noexcept {
  return static_cast<double>(nanoseconds_now() - nanoseconds) / 1e9;
}

std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::uint64_t kernel_written_bytes() {
  std::ifstream io("/proc/self/io");
  std::string name;
  std::uint64_t value = 0;
  while (io >> name >> value)
    if (name == "write_bytes:") return value;
  return 0;
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace secondsight::bench
