// What the disk cache costs beside the bare disk, and how it behaves with millions of objects:
// make bench-store. docs/experiments.md has a run of it.
#include "tests/bench/store_bench.h"

#include <filesystem>
#include <fstream>
#include <iostream>

#include <boost/json/serialize.hpp>
#include <boost/program_options.hpp>

#include "tests/bench/bench_disk.h"

int main(int argc, char** argv) {
  namespace options = boost::program_options;
  using secondsight::bench::fail;
  std::string directory, json;
  std::uint64_t objects_max = 0;
  unsigned rounds = 0;
  options::options_description known("usage: store_bench [options]");
  known.add_options()("directory", options::value(&directory)->default_value("store-bench"),
                      "made, used and removed; on the disk to be measured")(
      "objects", options::value(&objects_max)->default_value(10'000'000),
      "the most objects to go up to")("rounds", options::value(&rounds)->default_value(3),
                                      "of each rate")("json", options::value(&json),
                                                      "where the figures go as JSON")(
      "keep", "leave the directory with the most objects there: a proxy can be started on it")(
      "help", "print this");
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

  boost::json::object figures;
  if (rounds > 0) figures["rates"] = secondsight::bench::measure_rates(directory, rounds);
  std::vector<std::uint64_t> counts;
  for (std::uint64_t count = 100'000; count < objects_max; count *= 10) counts.push_back(count);
  counts.push_back(objects_max);
  figures["scale"] = secondsight::bench::measure_scale(directory, counts, given.count("keep") > 0);
  if (!json.empty()) std::ofstream(json) << boost::json::serialize(figures) << '\n';
  return 0;
}
