#include "loadtest/simulate_report.h"

#include <gmock/gmock.h>
#include <string>

#include <gtest/gtest.h>

namespace secondsight::loadtest {
namespace {

using testing::HasSubstr;
using testing::Not;

ComparedRun run(std::uint64_t hits, std::uint64_t lru_hits) {
  ComparedRun run;
  run.sizes.disk_bytes = 1 << 20;
  run.cache.disk_hits = hits;
  run.cache.hit_bytes = 5'000;
  run.cache.admitted_bytes = 2'000;
  run.cache.reappended_bytes = 100;
  run.cache.written_bytes = 2'500'000;
  run.lru = {.hits = lru_hits, .hit_bytes = 4'000, .admitted_bytes = 1'000};
  run.lru_all.hits = 41;
  run.fifo.hits = 42;
  run.clairvoyant.hits = 61;
  run.hits_bound = 62;
  return run;
}

Comparison comparison() {
  Comparison of;
  of.workload = {"some.csv.gz", 100, 60, 45, 2 << 20};
  of.requested_bytes = 10'000;
  of.policy = "always";
  of.runs = {run(50, 49), run(45, 49)};
  return of;
}

TEST(SimulateReport, TableShowsEachSizeAndWhereItIsBelowLru) {
  const std::string table = table_of(comparison());
  EXPECT_THAT(table, HasSubstr("some.csv.gz: 100 requests for 60 objects"));
  EXPECT_THAT(table, HasSubstr("1 MiB (50 %)"));
  EXPECT_THAT(table, HasSubstr("50.00   42.00   49.00   41.00   61.00   62.00    50.00   40.00"));
  EXPECT_THAT(table, HasSubstr("5.0       2.50\n")) << "re-appended, written";
  EXPECT_THAT(table, HasSubstr("below LRU: 1 of 2, by at most 4.00 points"));
}

TEST(SimulateReport, SaysWhatThePolicyTook) {
  Comparison of = comparison();
  EXPECT_THAT(table_of(of), HasSubstr("(2 MiB), always\n")) << "it remembers nothing";
  of.runs[1].cache.admission_bytes = 3U << 20;
  of.runs[1].cache.rotations_by_age = 4;
  of.runs[1].cache.rotations_by_fill = 1;
  EXPECT_THAT(table_of(of), HasSubstr("always, which took 3 MiB and rotated 5 times (1 of them "
                                      "full)\n"));
  const boost::json::object report = json_of(of);
  const boost::json::object& second = report.at("runs").as_array()[1].as_object();
  EXPECT_EQ(second.at("admission_bytes"), 3u << 20);
  EXPECT_EQ(second.at("rotations_by_age"), 4u);
  EXPECT_EQ(second.at("rotations_by_fill"), 1u);
}

TEST(SimulateReport, WithoutADiskNothingIsSaidOfWriting) {
  Comparison of = comparison();
  for (ComparedRun& run : of.runs) run.sizes = {.memory_bytes = 1 << 20};
  EXPECT_THAT(table_of(of), Not(HasSubstr("written")));
}

TEST(SimulateReport, JsonHasTheKeysThatScriptsRead) {
  const boost::json::object report = json_of(comparison());
  EXPECT_EQ(report.at("trace"), "some.csv.gz");
  EXPECT_EQ(report.at("policy"), "always");
  EXPECT_EQ(report.at("workload").at("requested_bytes"), 10'000u);
  const boost::json::object& first = report.at("runs").as_array()[0].as_object();
  EXPECT_EQ(first.at("disk_bytes"), 1u << 20);
  EXPECT_EQ(first.at("hits"), 50u);
  EXPECT_EQ(first.at("reappended_bytes"), 100u);
  EXPECT_EQ(first.at("lru").at("hits"), 49u);
  EXPECT_EQ(first.at("lru_admit_all").at("hits"), 41u);
  EXPECT_EQ(first.at("fifo").at("hits"), 42u);
  EXPECT_EQ(first.at("clairvoyant").at("hits"), 61u);
  EXPECT_EQ(first.at("hits_bound"), 62u);
}

}  // namespace
}  // namespace secondsight::loadtest
