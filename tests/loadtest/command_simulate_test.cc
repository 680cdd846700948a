#include <gmock/gmock.h>
#include <string>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "tests/loadtest/run_command.h"
#include "tests/loadtest/test_files.h"

namespace secondsight::loadtest {
namespace {

using testing::HasSubstr;
using testing::Not;

/// 100 objects of 1,000 bytes, asked three times in a row, each time in order.
std::string small_trace() {
  std::string text = "timestamp_seconds,key,size_bytes\n";
  for (int i = 0; i < 300; ++i)
    text += std::to_string(i) + ",k" + std::to_string(i % 100) + ",1000\n";
  return text;
}

TEST(SimulateCommand, ComparesASmallTraceOnDiskAndInMemory) {
  const TemporaryDirectory files;
  const std::string trace = files.write("small.csv", small_trace());
  const std::string json = files.path("report.json");
  const Ran ran = run("simulate '" + trace + "' --keys 100% --json '" + json + "'");
  ASSERT_EQ(ran.code, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("300 requests for 100 objects"));
  EXPECT_THAT(ran.text, HasSubstr("filter: 2 MiB for 100 keys in each of two generations"));
  EXPECT_THAT(ran.text, HasSubstr("below LRU: "));

  const auto report = boost::json::parse(read_text(json)).as_object();
  const auto& comparisons = report.at("comparisons").as_array();
  ASSERT_EQ(comparisons.size(), 2u);
  const auto& on_disk = comparisons[0].at("runs").as_array();
  ASSERT_EQ(on_disk.size(), 1u) << "every size was raised to the least";
  EXPECT_EQ(on_disk[0].at("hits"), 100u) << "written the second time";
  EXPECT_EQ(on_disk[0].at("lru").at("hits"), 100u);
  EXPECT_EQ(on_disk[0].at("lru_admit_all").at("hits"), 200u);
  EXPECT_EQ(on_disk[0].at("hits_bound"), 200u);
  EXPECT_EQ(comparisons[1].at("runs").as_array().size(), 5u);
}

TEST(SimulateCommand, BothSizesMakePairsWithThePolicyThatIsNamed) {
  const TemporaryDirectory files;
  const std::string trace = files.write("small.csv", small_trace());
  const std::string json = files.path("report.json");
  const Ran ran = run("simulate '" + trace + "' '" + trace +
                      "' --disk 1MiB,2MiB --memory 100% --policy always --json '" + json + "'");
  ASSERT_EQ(ran.code, 0) << ran.text;
  const auto report = boost::json::parse(read_text(json)).as_object();
  const auto& comparisons = report.at("comparisons").as_array();
  ASSERT_EQ(comparisons.size(), 2u) << "a trace each";
  EXPECT_EQ(comparisons[0].at("policy"), "always");
  const auto& runs = comparisons[0].at("runs").as_array();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].at("disk_bytes"), 2u << 20);
  EXPECT_EQ(runs[1].at("memory_bytes"), 100'000u);
  EXPECT_EQ(runs[1].at("hits"), 200u);
}

TEST(SimulateCommand, APolicyTakesWhatItAloneIsTold) {
  const TemporaryDirectory files;
  const std::string trace = files.write("small.csv", small_trace());
  const std::string json = files.path("report.json");
  struct Case {
    const char* arguments;
    const char* name;
    std::uint64_t hits;
    bool remembers;
  };
  for (const Case& c :
       {Case{"probability --probability 1", "probability (probability = 1)", 200, false},
        Case{"size-probability --size-scale 1", "size-probability (size_scale = \"1\")", 0, false},
        Case{"nth-sighting --sightings 2", "nth-sighting (sightings = 2)", 100, true},
        Case{"nth-sighting", "nth-sighting", 0, true}, Case{"exact", "exact", 100, true},
        Case{"never", "never", 0, false}}) {
    const Ran ran = run("simulate '" + trace + "' --disk 1MiB --keys 100% --json '" + json +
                        "' --policy " + c.arguments);
    ASSERT_EQ(ran.code, 0) << ran.text;
    EXPECT_THAT(ran.text, HasSubstr(c.name));
    EXPECT_EQ(ran.text.find(", which took ") != std::string::npos, c.remembers) << ran.text;
    const auto report = boost::json::parse(read_text(json)).as_object();
    const auto& comparison = report.at("comparisons").as_array()[0];
    EXPECT_EQ(comparison.at("policy"), c.name);
    const auto& first = comparison.at("runs").as_array()[0].as_object();
    EXPECT_EQ(first.at("hits"), c.hits) << c.name;
    EXPECT_EQ(first.at("admission_bytes").to_number<std::uint64_t>() > 0, c.remembers) << c.name;
  }
}

TEST(SimulateCommand, BadUsageSaysWhatIsWrongAndEndsWithTwo) {
  const TemporaryDirectory files;
  const std::string trace = "simulate '" + files.write("small.csv", small_trace()) + "' ";
  struct Case {
    const char* arguments;
    const char* says;
  };
  for (const Case& c : {
           Case{"--disk 5x", "--disk: '5x' is neither"},
           Case{"--disk 1MiB,", "--disk: '' is neither"},
           Case{"--memory -1%", "--memory: '-1%' is neither"},
           Case{"--memory 0", "--memory: '0' is neither"},
           Case{"--policy sometimes", "--policy sometimes: [admission] policy must be"},
           Case{"--policy nth-sighting --sightings 1", "sightings must be between 2 and 8, not 1"},
           Case{"--policy probability --probability x", "--policy probability: "},
           Case{"--policy size-probability --size-scale 5x", "which is not a size"},
           Case{"--policy always --probability 0.5", "used by policy \"probability\" only"},
           Case{"--keys some", "--keys: 'some' is neither"},
           Case{"--window 3", "--window: '3' is no time"},
           Case{"--max-object big", "--max-object: 'big'"},
           Case{"--bogus", "unrecognised option '--bogus'"},
       }) {
    const Ran ran = run(trace + c.arguments);
    EXPECT_EQ(ran.code, 2) << c.arguments << '\n' << ran.text;
    EXPECT_THAT(ran.text, HasSubstr(c.says)) << c.arguments;
  }
  EXPECT_THAT(run("simulate").text, HasSubstr("a trace is needed"));
  EXPECT_EQ(run("simulate").code, 2);
  EXPECT_EQ(run("simulate '" + files.path("none.csv") + "'").code, 1);
}

/// The claim of docs/experiments.md that no other test would notice.
TEST(SimulateCommand, TheMemoryTierHitsMoreThanLruOnTheProxyTrace) {
  const std::string trace = recorded_trace("bu98-proxy.csv.gz");
  NEED_RECORDED_TRACE(trace);
  const Ran ran = run("simulate '" + trace + "' --memory 0.1%,1%,10%");
  EXPECT_EQ(ran.code, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("below LRU: 0 of 3"));
}

}  // namespace
}  // namespace secondsight::loadtest
