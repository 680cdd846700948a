#include <algorithm>
#include <array>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <malloc.h>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json/array.hpp>

#include "config/units.h"
#include "tests/bench/bench_disk.h"
#include "tests/bench/store_bench.h"

namespace secondsight::bench {
namespace {

using namespace literals;

constexpr std::size_t kBodyBytes = 100;  // small, so that ten million fit on any disk
constexpr std::uint64_t kBytesPerObject = 512;
constexpr std::uint64_t kLookups = 1'000'000;

/// What a fresh process finds.
struct Start {
  double seconds = 0;                          // from nothing to the first object read
  double index_bytes = 0, resident_bytes = 0;  // an object
  double hit_nanoseconds = 0, miss_nanoseconds = 0;
};

/// A look-up in the index, of keys in random order.
double lookup_nanoseconds(BenchDisk& disk, std::uint64_t first, std::uint64_t count) {
  std::mt19937_64 random(first + count);
  std::vector<admission::Fingerprint> keys;
  for (std::uint64_t i = 0; i < kLookups; ++i)
    keys.push_back(key_of(first + random() % count, disk.seed()).fingerprint());
  std::uint64_t found = 0;
  const auto began = nanoseconds_now();
  for (const auto& key : keys) found += disk.index().find(key) ? 1U : 0U;
  const double seconds = seconds_since(began);
  if (first == 0 && found != kLookups) fail("an object is missing");
  if (first != 0 && found != 0) fail("an object is there that was never written");
  return seconds * 1e9 / static_cast<double>(kLookups);
}

Start start(const std::string& directory, std::uint64_t capacity_bytes, std::uint64_t count) {
  ::malloc_trim(0);  // what the parent had let go must not be used again unseen
  const std::uint64_t resident = resident_bytes();
  const auto began = nanoseconds_now();
  BenchDisk disk(directory, capacity_bytes);
  std::vector<std::byte> body;
  if (!disk.get(key_of(count - 1, disk.seed()), body))
    fail("the last object is not there after a restart");
  Start start;
  start.seconds = seconds_since(began);
  if (disk.index().objects() != count) fail("objects are missing after a restart");
  const auto objects = static_cast<double>(count);
  start.index_bytes = static_cast<double>(disk.index().memory_bytes()) / objects;
  start.resident_bytes = static_cast<double>(resident_bytes() - resident) / objects;
  start.hit_nanoseconds = lookup_nanoseconds(disk, 0, count);
  start.miss_nanoseconds = lookup_nanoseconds(disk, count, count);
  return start;
}

/// The same in a process of its own, whose memory tells.
Start start_alone(const std::string& directory, std::uint64_t capacity_bytes, std::uint64_t count) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) fail("pipe");
  const pid_t child = ::fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    const Start found = start(directory, capacity_bytes, count);
    const bool is_told = ::write(ends[1], &found, sizeof found) == sizeof found;
    ::_exit(is_told ? 0 : 1);
  }
  ::close(ends[1]);
  Start found;
  const bool is_told = ::read(ends[0], &found, sizeof found) == sizeof found;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  if (!is_told) fail("the started process ended without a word");
  return found;
}

boost::json::object measure(const std::string& directory, std::uint64_t count, bool keeps) {
  std::filesystem::create_directory(directory);
  const std::uint64_t capacity = std::max<std::uint64_t>(count * kBytesPerObject, 64_MiB);
  const auto body = make_body(1, kBodyBytes);
  auto disk = std::make_unique<BenchDisk>(directory, capacity);
  double slowest_insert = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto object = make_object(i, body, disk->seed());
    const auto began = nanoseconds_now();
    disk->put(*object);
    slowest_insert = std::max(slowest_insert, seconds_since(began));
  }
  const double grown_bytes =
      static_cast<double>(disk->index().memory_bytes()) / static_cast<double>(count);
  disk->close();
  disk.reset();

  const Start clean = start_alone(directory, capacity, count);
  // Some more, and gone without a word, as kill -9 leaves it.
  disk = std::make_unique<BenchDisk>(directory, capacity);
  const std::uint64_t more = count / 100;
  for (std::uint64_t i = 0; i < more; ++i) disk->put(*make_object(count + i, body, disk->seed()));
  disk.reset();
  const Start unclean = start_alone(directory, capacity, count + more);
  if (!keeps) std::filesystem::remove_all(directory);

  std::cout << std::setw(10) << count << std::fixed << std::setprecision(1) << std::setw(9)
            << grown_bytes << std::setw(9) << clean.index_bytes << std::setw(9)
            << clean.resident_bytes << std::setprecision(2) << std::setw(9) << clean.seconds
            << std::setw(9) << unclean.seconds << std::setprecision(0) << std::setw(9)
            << clean.hit_nanoseconds << std::setw(9) << clean.miss_nanoseconds
            << std::setprecision(1) << std::setw(9) << slowest_insert * 1e3 << std::endl;
  return {{"objects", count},
          {"index_bytes_per_object_grown", grown_bytes},
          {"index_bytes_per_object_after_restart", clean.index_bytes},
          {"resident_bytes_per_object_after_restart", clean.resident_bytes},
          {"clean_start_seconds", clean.seconds},
          {"unclean_start_seconds", unclean.seconds},
          {"lookup_hit_nanoseconds", clean.hit_nanoseconds},
          {"lookup_miss_nanoseconds", clean.miss_nanoseconds},
          {"slowest_put_seconds", slowest_insert}};
}

}  // namespace

boost::json::object measure_scale(const std::string& directory,
                                  const std::vector<std::uint64_t>& counts, bool keeps_last) {
  std::cout << "\nScale. Index: bytes an object as it grew, and after a restart; resident: of the "
               "whole store.\nStart: seconds to the first object read, after a clean stop and "
               "after kill -9. Look-ups: ns.\n"
            << "   objects    grown    index resident    clean  kill -9      hit     miss  "
               "slowest put ms\n";
  boost::json::array rows;
  for (const std::uint64_t count : counts)
    rows.push_back(measure(directory, count, keeps_last && count == counts.back()));
  return {{"body_bytes", kBodyBytes}, {"rows", std::move(rows)}};
}

}  // namespace secondsight::bench
