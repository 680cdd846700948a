#include "proxy/verify_command.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "admission/fingerprint.h"
#include "cache/log/object_log.h"
#include "config/posix_file_system.h"
#include "tests/cache/log/log_fixture.h"

namespace secondsight::proxy {
namespace {

namespace fs = std::filesystem;
using cache::log::ObjectLog;
using cache::log::RecordKind;
using cache::log::VerifyReport;

VerifyReport full_report() {
  VerifyReport report;
  report.sealed_segments = 3;
  report.unsealed_segments = 1;
  report.older_segments = 2;
  report.other_seed_segments = 4;
  report.newer_segments = 1;
  report.unknown_segments = 5;
  report.other_files = 2;
  report.other_names = {"journal", "notes"};
  report.kinds[static_cast<std::size_t>(RecordKind::Object)] = {1, 1'024};
  report.kinds[static_cast<std::size_t>(RecordKind::Part)] = {2, 2'048};
  report.current_records = 1;
  report.parts_of_current = 2;
  report.replaced_records = 6;
  report.removed_records = 7;
  report.incomplete_objects = 8;
  report.dropped_records = 1;
  report.torn_tail_bytes = 99;
  report.bytes_read = 4'000'000;
  report.damaged = {
      {{42, 4'096, 1'024}, RecordKind::Object, cache::log::Damage::Body, "", true},
      {{43, 0, 0}, std::nullopt, cache::log::Damage::NewerVersion, "version 9", false}};
  report.damaged_count = 3;
  report.is_unreadable = true;
  return report;
}

TEST(VerifyCommand, TellsPeople) {
  EXPECT_EQ(
      to_text(full_report(), std::chrono::seconds(2)),
      "segments     3 sealed, 1 unsealed\n"
      "             4 of another seed: removed at the next start\n"
      "             2 of an older version: removed at the next start\n"
      "             1 of a newer version: no start succeeds\n"
      "             5 with nothing of ours in them\n"
      "other files  2: journal, notes\n"
      "records      1 object, 1 KiB\n"
      "             2 parts, 2 KiB\n"
      "             0 large objects, 0 B\n"
      "             0 vary markers, 0 B\n"
      "             0 tombstones, 0 B\n"
      "             0 purges, 0 B\n"
      "in use       1 record and 2 parts\n"
      "not in use   6 replaced, 7 removed\n"
      "             8 large objects that lost a part, as to reclaim\n"
      "             1 damaged record that an earlier start took out\n"
      "torn tail    99 bytes that an unclean stop left: no damage\n"
      "damaged      0000002a.segment offset 4096, object of 1 KiB that is in use: body damaged\n"
      "damaged      0000002b.segment: written by a newer version (version 9)\n"
      "             and 1 more\n"
      "read         3.81 MiB at 2 MB/s\n"
      "verdict      3 places are damaged or unreadable\n");
}

TEST(VerifyCommand, TellsPrograms) {
  const auto object =
      boost::json::parse(to_json(full_report(), std::chrono::seconds(2))).as_object();
  EXPECT_EQ(object.at("clean"), false);
  EXPECT_EQ(object.at("segments").at("unknown"), 5);
  EXPECT_EQ(object.at("other_files").as_array().size(), 2U);
  EXPECT_EQ(object.at("records").at("part").at("bytes"), 2'048);
  EXPECT_EQ(object.at("in_use").at("parts"), 2);
  EXPECT_EQ(object.at("damaged_count"), 3);
  EXPECT_EQ(object.at("unreadable"), true);
  EXPECT_EQ(object.at("damaged").at(0),
            boost::json::parse(R"({"segment":42,"offset":4096,"length":1024,
                "reason":"body damaged","in_use":true,"kind":"object"})"));
  EXPECT_EQ(object.at("damaged").at(1).at("kind"), nullptr);
}

/// A directory as a proxy leaves it.
class VerifyRun : public ::testing::Test {
 protected:
  VerifyRun() : cache_(directory_.path() + "/cache"), config_(directory_.path() + "/config.toml") {
    configure("1GiB");
  }

  void configure(const std::string& disk) {
    std::ofstream(config_) << "[origin]\nurl = \"http://127.0.0.1:9\"\n[cache]\ndisk = \"" << disk
                           << "\"\ndirectory = \"" << cache_ << "\"\n";
  }
  void fill() {
    auto files = *PosixFileSystem::open_directory(cache_);
    const auto seed = *admission::FingerprintSeed::load_or_create(cache_);
    auto log = *ObjectLog::open(
        *files, {.capacity_bytes = 1 << 20, .segment_bytes = 1 << 18, .seed_id = seed.id()},
        test::ignore_recovered);
    for (int i = 0; i < 3; ++i) {
      cache::log::RecordView view;
      const std::string key = "key " + std::to_string(i);
      view.key = key;
      view.fingerprint = seed.fingerprint_of(key);
      ASSERT_TRUE(log->append(view, test::ignore_reclaimed));
    }
    EXPECT_OK(log->close());
  }
  int run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "verify");
    out_.str("");
    error_.str("");
    return run_verify(static_cast<int>(arguments.size()), arguments.data(), out_, error_);
  }
  int run() { return run({"--config", config_.c_str()}); }

  test::TemporaryDirectory directory_;
  std::string cache_, config_;
  std::ostringstream out_, error_;
};

TEST_F(VerifyRun, ACleanDirectoryIs0) {
  fill();
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(error_.str(), "");
  EXPECT_NE(out_.str().find("3 objects"), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find("verdict      every record is whole\n"), std::string::npos);
  EXPECT_EQ(run({"--config", config_.c_str(), "--json"}), 0);
  EXPECT_EQ(boost::json::parse(out_.str()).at("clean"), true);
}

TEST_F(VerifyRun, DamageIs1AndNamed) {
  fill();
  std::fstream segment(cache_ + "/00000001.segment",
                       std::ios::in | std::ios::out | std::ios::binary);
  segment.seekp(40 + 68);
  segment.put('#');
  segment.close();
  EXPECT_EQ(run(), 1);
  EXPECT_NE(out_.str().find("00000001.segment offset 40, object of 80 B that is in use: "
                            "key or head damaged"),
            std::string::npos)
      << out_.str();
}

TEST_F(VerifyRun, ADirectoryInUseIs1) {
  fill();
  const auto running = PosixFileSystem::open_directory(cache_);
  EXPECT_EQ(run(), 1);
  EXPECT_NE(error_.str().find("another process uses it"), std::string::npos) << error_.str();
}

TEST_F(VerifyRun, WhatCannotBeReadIs1AndNothingIsMade) {
  EXPECT_EQ(run(), 1);  // no directory
  EXPECT_NE(error_.str().find(cache_), std::string::npos);
  EXPECT_FALSE(fs::exists(cache_));
  fill();
  std::ofstream(cache_ + "/seed") << "damaged";
  EXPECT_EQ(run(), 1);
  EXPECT_NE(error_.str().find("seed"), std::string::npos);
}

TEST_F(VerifyRun, WithoutASeedEverySegmentIsAStrangers) {
  fill();
  fs::remove(cache_ + "/seed");
  EXPECT_EQ(run(), 0);
  EXPECT_NE(out_.str().find("1 of another seed"), std::string::npos) << out_.str();
  EXPECT_FALSE(fs::exists(cache_ + "/seed"));
}

TEST_F(VerifyRun, BadUsageIs2) {
  EXPECT_EQ(run(std::vector<const char*>{}), 2);
  EXPECT_EQ(run({"--config", "/no/such/file"}), 2);
  EXPECT_EQ(run({"--config", config_.c_str(), "stray"}), 2);
  EXPECT_EQ(run({"--no-such", "--config", config_.c_str()}), 2);
  EXPECT_EQ(run({"--help"}), 0);
  configure("0");
  EXPECT_EQ(run(), 2);
  EXPECT_NE(error_.str().find("nothing on disk"), std::string::npos);
  EXPECT_EQ(out_.str(), "");
}

}  // namespace
}  // namespace secondsight::proxy
