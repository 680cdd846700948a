#include "proxy/access_log.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "tests/proxy/running_proxy.h"

namespace secondsight::proxy::test {
namespace {

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(AccessLog, ALineIsOneJsonObjectWhateverTheRequestHolds) {
  AccessRecord record;
  record.time = WallTime{std::chrono::milliseconds{1}};
  record.duration = std::chrono::microseconds{250};
  record.method = "GET";
  record.host = "a\"b\\";
  record.target = "/x\ny";
  record.status = 200;
  record.body_bytes = 5;
  record.outcome = "hit";
  record.detail = "memory";
  const std::string line = format_access_line(record);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto parsed = boost::json::parse(line).as_object();
  EXPECT_EQ(parsed.at("time"), "1970-01-01T00:00:00.001Z");
  EXPECT_EQ(parsed.at("host"), "a\"b\\");
  EXPECT_EQ(parsed.at("target"), "/x\ny");
  EXPECT_EQ(parsed.at("duration_us"), 250);
  EXPECT_EQ(parsed.at("status"), 200);
  EXPECT_EQ(parsed.at("body_bytes"), 5);
  EXPECT_EQ(parsed.at("outcome"), "hit");
  EXPECT_EQ(parsed.at("detail"), "memory");
}

TEST(AccessLog, AppendsWhatWasNotedAndDropsWhatDoesNotFit) {
  const TemporaryDirectory folder;
  const std::string file = (folder.path() / "access").string();
  Metrics metrics;
  AccessRecord record;
  const std::string target(1U << 20, 't');
  record.target = target;
  {
    auto log = AccessLog::open(file, metrics);
    ASSERT_TRUE(log.has_value());
    for (int i = 0; i < 5; ++i) (*log)->note(record);
    (*log)->flush();
    (*log)->note(record);
  }
  const std::string written = contents(file);
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 4)
      << "three fit the buffer, one came after";
  EXPECT_NE(metrics.expose().find("secondsight_access_log_dropped_total 2"), std::string::npos);
}

TEST(AccessLog, AFileThatCannotBeOpenedIsSaid) {
  Metrics metrics;
  EXPECT_EQ(AccessLog::open("/nowhere/at/all", metrics).error(),
            boost::system::errc::no_such_file_or_directory);
}

TEST(AccessLog, EveryAnsweredRequestHasALine) {
  RoutedOrigin origin;
  origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
  const TemporaryDirectory folder;
  const std::string file = (folder.path() / "access").string();
  RunningProxy proxy(origin.url(), [&](Settings& s) { s.log.access = file; });
  proxy.get("/a");
  proxy.get("/a", "Range: bytes=1-2\r\n");
  proxy.send("POST", "/a", {}, "x");
  proxy.stop();
  std::ifstream in(file);
  std::vector<std::string> seen;
  for (std::string line; std::getline(in, line);) {
    const auto o = boost::json::parse(line).as_object();
    seen.push_back(std::string(o.at("method").as_string()) + " " +
                   std::to_string(o.at("status").as_int64()) + " " +
                   std::to_string(o.at("body_bytes").as_int64()) + " " +
                   std::string(o.at("outcome").as_string()) + " " +
                   (o.contains("detail") ? std::string(o.at("detail").as_string()) : "-"));
  }
  std::sort(seen.begin(), seen.end());  // a line is noted after its answer, by either worker
  EXPECT_EQ(seen, (std::vector<std::string>{"GET 200 5 miss first-sighting", "GET 206 2 hit memory",
                                            "POST 200 5 bypass method"}));
}

}  // namespace
}  // namespace secondsight::proxy::test
