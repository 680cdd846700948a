// What it costs to keep sightings for a restart: make bench-sightings. docs/admission.md has a run.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/program_options.hpp>

#include "admission/bloom_math.h"
#include "admission/sighting_journal.h"
#include "config/posix_file_system.h"
#include "proxy/sighting_keeper.h"
#include "tests/admission/keys.h"
#include "tests/bench/bench_disk.h"

namespace {

using namespace secondsight;
using namespace secondsight::admission;
using bench::fail;
using bench::nanoseconds_now;
using bench::seconds_since;

constexpr std::uint64_t kSeedId = 1;
constexpr std::chrono::hours kWindow{24};
constexpr std::size_t kBatch = 5000;  // of half a second at 10,000 a second

SightingJournal::Options options_for(const FilterSize& size) {
  return {.seed_id = kSeedId,
          .size = size,
          .window = kWindow,
          .previous_rate_max = previous_rate_max(0.01),
          .bytes_max = SightingJournal::bytes_for(size, kWindow)};
}

/// So that the next read comes from the device.
void drop_from_page_cache(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const int file = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) fail("cannot open " + entry.path().string());
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
  }
}

enum class PageCache : std::uint8_t { Warm, Cold };

boost::json::object measure_replay(const std::string& directory, std::uint64_t marks,
                                   const FilterSize& size, PageCache page_cache) {
  const auto files = PosixFileSystem::open_directory(directory);
  if (!files) fail(files.error().message());
  if (page_cache == PageCache::Cold) drop_from_page_cache(directory);
  const SystemClock clock;
  TwoGenerationFilter filter(size, kWindow, clock.steady());
  SightingJournal journal(**files, options_for(size));
  const std::int64_t began = nanoseconds_now();
  const double cpu_began = bench::cpu_seconds();
  const auto restored = journal.restore(filter, clock.wall(), clock.steady());
  const double seconds = seconds_since(began);
  const double cpu = bench::cpu_seconds() - cpu_began;
  if (!restored || restored->marks != marks) fail("not all marks came back");
  const char* const from = page_cache == PageCache::Cold ? "device" : "page cache";
  std::printf("replay of %llu marks from the %s: %.2f s, %.2f s of CPU, %.0f ns a mark\n",
              static_cast<unsigned long long>(marks), from, seconds, cpu,
              seconds * 1e9 / static_cast<double>(marks));
  return {{"from", from}, {"marks", marks}, {"seconds", seconds}, {"cpu_seconds", cpu}};
}

void write_marks(const std::string& directory, std::uint64_t marks, const FilterSize& size) {
  const auto files = PosixFileSystem::open_directory(directory);
  if (!files) fail(files.error().message());
  SightingJournal journal(**files, options_for(size));
  const SystemClock clock;
  test::Keys keys(1);
  std::vector<std::uint64_t> batch;
  while (keys.taken() < marks) {
    batch.clear();
    while (batch.size() < kBatch && keys.taken() < marks) batch.push_back(keys.next().high);
    if (const auto done = journal.append(batch, clock.wall()); !done) fail(done.error().message());
  }
  if (const auto done = journal.sync(); !done) fail(done.error().message());
}

/// New keys at an even pace, as the workers of a proxy would mark them.
boost::json::object measure_pace(const std::string& directory, std::uint64_t marks_per_second,
                                 std::chrono::seconds duration, const FilterSize& size) {
  using Clock = std::chrono::steady_clock;
  const auto files = PosixFileSystem::open_directory(directory);
  if (!files) fail(files.error().message());
  const SystemClock clock;
  Metrics metrics;
  TwoGenerationFilter filter(size, kWindow, clock.steady());
  proxy::SightingKeeper keeper(**files, options_for(size), filter, clock, metrics,
                               [] { return true; });
  keeper.start();
  test::Keys keys(2);
  const std::uint64_t written_before = bench::kernel_written_bytes();
  const double cpu_before = bench::cpu_seconds();
  const auto began = Clock::now();
  constexpr std::chrono::milliseconds kStep{10};
  for (auto due = began; due < began + duration; due += kStep) {
    std::this_thread::sleep_until(due);
    for (std::uint64_t i = 0; i < marks_per_second / (std::chrono::seconds{1} / kStep); ++i)
      filter.sight(keys.next());
  }
  keeper.stop();
  const std::chrono::duration<double> took = Clock::now() - began;
  const double cpu = bench::cpu_seconds() - cpu_before;
  const auto written = static_cast<double>(bench::kernel_written_bytes() - written_before);
  const std::uint64_t lost = keeper.lost();
  const double marks = static_cast<double>(keys.taken());
  std::printf(
      "%.0f marks a second for %.0f s: the kernel wrote %.1f KiB/s, %.2f bytes a mark; "
      "%.2f %% of a core, %llu marks lost\n",
      marks / took.count(), took.count(), written / 1024 / took.count(), written / marks,
      100 * cpu / took.count(), static_cast<unsigned long long>(lost));
  return {{"marks_per_second", marks / took.count()},
          {"seconds", took.count()},
          {"kernel_bytes_per_second", written / took.count()},
          {"bytes_per_mark", written / marks},
          {"cpu_share", cpu / took.count()},
          {"lost", lost}};
}

}  // namespace

int main(int argc, char** argv) {
  namespace options = boost::program_options;
  std::string directory, json;
  std::uint64_t marks = 0, pace = 0;
  unsigned seconds = 0;
  options::options_description known("usage: sightings_bench [options]");
  known.add_options()("directory", options::value(&directory)->default_value("sightings-bench"),
                      "made, used and removed; on the disk to be measured")(
      "marks", options::value(&marks)->default_value(50'000'000), "to be replayed")(
      "pace", options::value(&pace)->default_value(10'000), "marks a second")(
      "seconds", options::value(&seconds)->default_value(60), "at that pace")(
      "json", options::value(&json), "where the figures go as JSON")("help", "print this");
  options::variables_map given;
  try {
    options::store(options::command_line_parser(argc, argv).options(known).positional({}).run(),
                   given);
    options::notify(given);
  } catch (const options::error& error) {
    fail(error.what());
  }
  if (given.count("help") > 0) {
    std::cout << known;
    return 0;
  }
  if (std::filesystem::exists(directory)) fail(directory + " is there already");
  if (const auto fault = explain_bad_size(marks, 0.01, ~std::uint64_t{0}))
    fail("--marks: " + *fault);
  const FilterSize size = size_filter(marks, 0.01);
  boost::json::object figures;
  write_marks(directory, marks, size);
  figures["replay_warm"] = measure_replay(directory, marks, size, PageCache::Warm);
  figures["replay_cold"] = measure_replay(directory, marks, size, PageCache::Cold);
  std::filesystem::remove_all(directory);
  figures["pace"] = measure_pace(directory, pace, std::chrono::seconds(seconds), size);
  std::filesystem::remove_all(directory);
  if (!json.empty()) {
    std::ofstream out(json);
    out << boost::json::serialize(figures) << '\n';
    if (!out.flush()) fail("cannot write " + json);
  }
  return 0;
}
