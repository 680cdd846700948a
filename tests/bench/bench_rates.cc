#include <algorithm>
#include <array>
#include <fcntl.h>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <random>
#include <unistd.h>

#include <boost/json/array.hpp>

#include "config/units.h"
#include "tests/bench/bench_disk.h"
#include "tests/bench/store_bench.h"

namespace secondsight::bench {
namespace {

using namespace literals;

constexpr std::uint64_t kRoundBytes = 256_MiB;  // written and read in a round, each way
constexpr std::size_t kBodies = 64;

struct Rate {
  double seconds = 0, cpu_seconds = 0;
};

class Stopwatch {
 public:
  Rate read() const { return {seconds_since(began_), cpu_seconds() - cpu_began_}; }

 private:
  std::int64_t began_ = nanoseconds_now();
  double cpu_began_ = cpu_seconds();
};

/// The bare disk: one file, reserved, written front to back, synced as often as the log does.
class RawFile {
 public:
  RawFile(const std::string& path, std::uint64_t bytes, std::uint64_t sync_bytes)
      : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)),
        sync_bytes_(sync_bytes) {
    if (descriptor_ < 0) fail("cannot create " + path);
    if (::posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes)) != 0) fail("disk full");
  }
  ~RawFile() { ::close(descriptor_); }
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  void append(const cache::Chunk& bytes) {
    const auto at = static_cast<off_t>(end_);
    if (::pwrite(descriptor_, bytes.data(), bytes.size(), at) != static_cast<ssize_t>(bytes.size()))
      fail("pwrite");
    if ((end_ + bytes.size()) / sync_bytes_ != end_ / sync_bytes_) sync();
    end_ += bytes.size();
  }
  void sync() {
    if (::fdatasync(descriptor_) != 0) fail("fdatasync");
  }
  void read(std::uint64_t at, std::span<std::byte> out) {
    if (::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(at)) !=
        static_cast<ssize_t>(out.size()))
      fail("pread");
  }

 private:
  int descriptor_;
  std::uint64_t sync_bytes_;
  std::uint64_t end_ = 0;
};

struct Round {
  Rate raw_append, append, raw_read, read;
  double written_per_payload_byte = 0, written_per_body_byte = 0;
};

Round measure_round(const std::string& directory, std::size_t size, unsigned number) {
  std::filesystem::create_directory(directory);
  const std::uint64_t count = kRoundBytes / size;
  std::vector<cache::ChunkPtr> bodies;
  for (std::size_t i = 0; i < kBodies; ++i) bodies.push_back(make_body(i, size));
  std::vector<std::uint64_t> order(count);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(number));

  const std::uint64_t capacity = 2 * kRoundBytes;
  RawFile raw(directory + "/raw", kRoundBytes, cache::log::ObjectLog::segment_bytes_for(capacity));
  BenchDisk disk(directory + "/log", capacity);
  std::vector<std::shared_ptr<cache::Object>> objects;
  std::uint64_t payload = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    objects.push_back(make_object(i, bodies[i % kBodies], disk.seed()));
    payload += payload_bytes(*objects.back());
  }
  Round round;
  const auto append_raw = [&] {
    const Stopwatch watch;
    for (std::uint64_t i = 0; i < count; ++i) raw.append(*bodies[i % kBodies]);
    raw.sync();
    round.raw_append = watch.read();
  };
  const auto append_log = [&] {
    const std::uint64_t written = kernel_written_bytes();
    const Stopwatch watch;
    for (const auto& object : objects) disk.put(*object);
    disk.close();
    round.append = watch.read();
    const auto bytes = static_cast<double>(kernel_written_bytes() - written);
    round.written_per_payload_byte = bytes / static_cast<double>(payload);
    round.written_per_body_byte = bytes / static_cast<double>(count * size);
  };
  const auto read_raw = [&] {
    std::vector<std::byte> body(size);
    const Stopwatch watch;
    for (const std::uint64_t i : order) raw.read(i * size, body);
    round.raw_read = watch.read();
  };
  const auto read_log = [&] {
    std::vector<std::byte> body;
    const Stopwatch watch;
    for (const std::uint64_t i : order)
      if (!disk.get(objects[i]->key, body) || body.size() != size) fail("an object is missing");
    round.read = watch.read();
  };
  if (number % 2 == 0) {  // who comes first in a round changes
    append_raw();
    append_log();
    read_raw();
    read_log();
  } else {
    append_log();
    append_raw();
    read_log();
    read_raw();
  }
  std::filesystem::remove_all(directory);
  return round;
}

/// The middle one of the rounds.
template <class Figure>
double median(const std::vector<Round>& rounds, Figure figure) {
  std::vector<double> all;
  for (const Round& round : rounds) all.push_back(figure(round));
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

double megabytes_a_second(const Rate& rate) {
  return static_cast<double>(kRoundBytes) / 1e6 / rate.seconds;
}

}  // namespace

boost::json::object measure_rates(const std::string& directory, unsigned rounds) {
  std::cout << "Rates. MB/s of the bare disk and of the log, the log's share of it (medians of "
            << rounds
            << " rounds), and what the\nkernel wrote for each byte of payload (key, head and body) "
               "and of body.\nReads: from the page cache, every block verified.\n"
            << "      size   append raw       log    share     read raw       log    share   "
               "written/payload  /body\n";
  boost::json::array rows;
  for (const std::size_t size : {2_KiB, 16_KiB, 64_KiB, 1_MiB}) {
    std::vector<Round> all;
    for (unsigned i = 0; i < rounds; ++i) all.push_back(measure_round(directory, size, i));
    const auto of = [&all](auto figure) { return median(all, figure); };
    const double raw_append = of([](const Round& r) { return megabytes_a_second(r.raw_append); });
    const double append = of([](const Round& r) { return megabytes_a_second(r.append); });
    const double append_share =
        of([](const Round& r) { return r.raw_append.seconds / r.append.seconds; });
    const double append_cpu =
        of([](const Round& r) { return r.append.cpu_seconds / r.raw_append.cpu_seconds; });
    const double raw_read = of([](const Round& r) { return megabytes_a_second(r.raw_read); });
    const double read = of([](const Round& r) { return megabytes_a_second(r.read); });
    const double read_share =
        of([](const Round& r) { return r.raw_read.seconds / r.read.seconds; });
    const double payload = of([](const Round& r) { return r.written_per_payload_byte; });
    const double body = of([](const Round& r) { return r.written_per_body_byte; });
    std::cout << std::setw(10) << size << std::fixed << std::setprecision(0) << std::setw(13)
              << raw_append << std::setw(10) << append << std::setprecision(2) << std::setw(9)
              << append_share << std::setprecision(0) << std::setw(13) << raw_read << std::setw(10)
              << read << std::setprecision(2) << std::setw(9) << read_share << std::setprecision(3)
              << std::setw(18) << payload << std::setw(7) << body << std::endl;
    rows.push_back(boost::json::object{{"body_bytes", size},
                                       {"raw_append_mb_per_second", raw_append},
                                       {"append_mb_per_second", append},
                                       {"append_share", append_share},
                                       {"append_cpu_ratio", append_cpu},
                                       {"raw_read_mb_per_second", raw_read},
                                       {"read_mb_per_second", read},
                                       {"read_share", read_share},
                                       {"written_per_payload_byte", payload},
                                       {"written_per_body_byte", body}});
  }
  return {{"round_bytes", kRoundBytes}, {"rounds", rounds}, {"rows", std::move(rows)}};
}

}  // namespace secondsight::bench
