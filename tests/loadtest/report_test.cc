#include "loadtest/report.h"

#include <gmock/gmock.h>
#include <string>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include "loadtest/fresh_proxy.h"
#include "loadtest/progress.h"
#include "tests/loadtest/test_files.h"

namespace secondsight::loadtest {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

RunReport run(const std::string& policy, std::uint64_t objects, std::uint64_t bytes) {
  RunReport report;
  report.policy = policy;
  report.drive.requests = 1'000;
  report.drive.hits = 400;
  report.drive.hit_bytes = 2'000;
  report.drive.body_bytes = 10'000;
  report.drive.outcomes[0] = 1'000;
  report.drive.details["repeat"] = 3;
  report.drive.seconds = 2;
  for (int i = 0; i < 100; ++i) report.drive.latency.record(2'000'000);
  report.origin_fetches = 600;
  report.counters.objects_written = objects;
  report.counters.bytes_written = bytes;
  report.counters.bytes_by_cause["admitted"] = bytes;
  report.kernel = ProcessIo{bytes + 1, 0};
  report.directory = DirectoryUse{4, bytes, bytes, false};
  return report;
}

WorkloadFacts workload() {
  return {"some.csv.gz", 1'000, 600, 450, 123'456};
}

TEST(Report, JsonHasTheKeysThatScriptsRead) {
  const json::object report =
      json_of(workload(), {run("always", 600, 6'000), run("second-sighting", 60, 1'500)});
  EXPECT_EQ(report.at("trace"), "some.csv.gz");
  const json::array& runs = report.at("runs").as_array();
  ASSERT_EQ(runs.size(), 2u);
  const json::object& first = runs[0].as_object();
  EXPECT_EQ(first.at("policy"), "always");
  EXPECT_EQ(first.at("requests"), 1'000u);
  EXPECT_EQ(first.at("hits"), 400u);
  EXPECT_EQ(first.at("hit_bytes"), 2'000u);
  EXPECT_EQ(first.at("origin_fetches"), 600u);
  EXPECT_EQ(first.at("objects_written"), 600u);
  EXPECT_EQ(first.at("bytes_written"), 6'000u);
  EXPECT_EQ(first.at("kernel_write_bytes"), 6'001u);
  EXPECT_EQ(first.at("errors"), 0u);
  EXPECT_EQ(first.at("corrupt_bodies"), 0u);
  EXPECT_DOUBLE_EQ(first.at("p50_ms").as_double(), 2.0);
  EXPECT_DOUBLE_EQ(first.at("p99_ms").as_double(), 2.0);
  EXPECT_EQ(first.at("bytes_written_by_cause").as_object().at("admitted"), 6'000u);
  EXPECT_EQ(first.at("outcomes").as_object().size(), kOutcomes);
  EXPECT_EQ(first.at("details").as_object().at("repeat"), 3u);
  EXPECT_DOUBLE_EQ(report.at("avoided").as_object().at("objects").as_double(), 0.9);
  EXPECT_DOUBLE_EQ(report.at("avoided").as_object().at("bytes").as_double(), 0.75);
  EXPECT_EQ(json::parse(json::serialize(report)).as_object().size(), report.size());
}

TEST(Report, UnknownNumbersAreNullNotZero) {
  RunReport bare;
  bare.policy = "x";
  const json::object report = json_of(workload(), {bare, bare});
  const json::object& first = report.at("runs").as_array()[0].as_object();
  for (const char* const key : {"origin_fetches", "objects_written", "bytes_written",
                                "kernel_write_bytes", "directory_size_bytes", "filter_fill"}) {
    EXPECT_TRUE(first.at(key).is_null()) << key;
  }
  EXPECT_TRUE(report.at("avoided").as_object().at("objects").is_null());
}

TEST(Report, AvoidedCanBeNegativeAndUnknown) {
  EXPECT_DOUBLE_EQ(*avoided(run("a", 10, 10), run("b", 20, 5)).objects, -1);
  EXPECT_EQ(avoided(run("a", 0, 0), run("b", 0, 0)).objects, std::nullopt);
}

TEST(Report, CleanMeansNeitherErrorsNorCorruptBodies) {
  RunReport report = run("a", 1, 1);
  EXPECT_TRUE(clean(report));
  report.drive.errors = 1;
  EXPECT_FALSE(clean(report));
  report.drive.errors = 0;
  report.drive.corrupt_bodies = 1;
  EXPECT_FALSE(clean(report));
}

TEST(Report, TableShowsBothRunsAndWhatIsUnknown) {
  std::vector<RunReport> runs{run("always", 12'345, 6'000'000), run("second-sighting", 1, 60'000)};
  runs[1].notes.emplace_back("something disagrees");
  runs[1].drive.examples.emplace_back("/o/x/1: wrong-bytes");
  const std::string table = table_of(workload(), runs);
  EXPECT_THAT(table, HasSubstr("some.csv.gz: 1,000 requests for 600 objects"));
  EXPECT_THAT(table, HasSubstr("75.00 % of them asked once"));
  EXPECT_THAT(table, testing::ContainsRegex("always +second-sighting"));
  EXPECT_THAT(table, testing::ContainsRegex("objects written +12,345 +1\n"));
  EXPECT_THAT(table, testing::ContainsRegex("hit ratio, objects +40.00 % +40.00 %"));
  EXPECT_THAT(table, testing::ContainsRegex("filter fill +\\? +\\?"));
  EXPECT_THAT(table, HasSubstr("writes avoided: 99.99 % of objects, 99.00 % of bytes"));
  EXPECT_THAT(table, HasSubstr("note: second-sighting: something disagrees"));
  EXPECT_THAT(table, HasSubstr("failed: second-sighting: /o/x/1: wrong-bytes"));
}

TEST(Report, WriteFileReplacesTheWholeFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("report.json", "old and longer");
  EXPECT_EQ(write_file(path, "new"), "");
  EXPECT_EQ(read_text(path), "new");
  EXPECT_NE(write_file(directory.path("no/such/place"), "x"), "");
}

TEST(Progress, SaysRateHitsAndRemainingTime) {
  DriveProgress progress;
  progress.done = 25'000;
  progress.total = 100'000;
  progress.hits = 5'000;
  progress.failed = 2;
  progress.elapsed = std::chrono::seconds(5);
  EXPECT_EQ(progress_text("always", progress),
            "always   25 %  25,000 of 100,000  5000/s  hits 20.0 %  failed 2  ETA 15 s");
  EXPECT_THAT(progress_text("x", DriveProgress{}), HasSubstr("ETA ?"));
}

TEST(Progress, Commas) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1'000), "1,000");
  EXPECT_EQ(with_commas(1'234'567), "1,234,567");
}

TEST(FreshProxy, SizesFollowTheWorkloadDownToTheSmallestDisk) {
  Plan plan;
  plan.unique_bytes = 400u << 20;
  plan.objects.resize(5'000);
  FreshProxyOptions options;
  size_for(plan, options);
  EXPECT_EQ(options.disk_bytes, 20u << 20);
  EXPECT_EQ(options.memory_bytes, 4u << 20);
  EXPECT_EQ(options.expected_keys, 500u);
  size_for(Plan{}, options);
  EXPECT_EQ(options.disk_bytes, 1u << 20);
  EXPECT_EQ(options.memory_bytes, 1u << 20);
  EXPECT_EQ(options.expected_keys, 1u);
}

TEST(FreshProxy, ConfigurationSaysWhatWasAsked) {
  FreshProxyOptions options;
  options.policy.policy = "always";
  options.origin_url = "http://127.0.0.1:9";
  options.disk_bytes = 123;
  options.memory_bytes = 45;
  options.expected_keys = 6;
  const std::string text = config_text(options, "/a \"b\"\\c");
  EXPECT_EQ(text,
            "[proxy]\nlisten = \"127.0.0.1:0\"\nworkers = 1\n\n"
            "[origin]\nurl = \"http://127.0.0.1:9\"\n\n"
            "[cache]\ndirectory = \"/a \\\"b\\\"\\\\c\"\ndisk = \"123\"\nmemory = \"45\"\n\n"
            "[admission]\npolicy = \"always\"\nexpected_keys = 6\nwindow = \"24h\"\n\n"
            "[admin]\nlisten = \"127.0.0.1:0\"\n");
  options.policy.policy = "nth-sighting";
  options.policy.sightings = "4";
  EXPECT_NE(config_text(options, "/a")
                .find("[admission]\npolicy = \"nth-sighting\"\nsightings = 4\nexpected_keys = 6\n"),
            std::string::npos);
}

}  // namespace
}  // namespace secondsight::loadtest
