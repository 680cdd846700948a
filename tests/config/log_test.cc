#include "config/log.h"

#include <gtest/gtest.h>

namespace secondsight {
namespace {

using std::chrono::milliseconds;

WallTime noon() {
  return std::chrono::sys_days{std::chrono::year{2026} / 11 / 30} + std::chrono::hours{12} +
         milliseconds{123};
}

TEST(LogLine, HasTimeLevelMessageAndFields) {
  EXPECT_EQ(
      format_log_line(noon(), LogLevel::Warning, "disk is slow",
                      {{"path", "/var/cache"}, {"why", "no space left"}}),
      "2026-11-30T12:00:00.123Z warning \"disk is slow\" path=/var/cache why=\"no space left\"\n");
  EXPECT_EQ(format_log_line(WallTime{milliseconds{-1}}, LogLevel::Debug, "early", {}),
            "1969-12-31T23:59:59.999Z debug early\n");
}

TEST(LogLine, EscapesWhatCouldForgeALine) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
      {"plain-value_1.2/3:4", "plain-value_1.2/3:4"},
      {"", R"("")"},
      {"a b", R"("a b")"},
      {"a=b", R"("a=b")"},
      {"a\"b", R"("a\"b")"},
      {"a\\b", R"("a\\b")"},
      {"a\nerror forged", R"("a\nerror forged")"},
      {"\r\t", R"("\r\t")"},
      {"\x1b[2J", R"("\x1b[2J")"},
      {"\x7f", R"("\x7f")"},
      {"\xc3\xa9", R"("\xc3\xa9")"},
      {std::string_view{"\0", 1}, R"("\x00")"},
  };
  for (const auto& [value, shown] : cases) {
    const std::string line = format_log_line(noon(), LogLevel::Info, "m", {{"v", value}});
    EXPECT_EQ(line, "2026-11-30T12:00:00.123Z info m v=" + std::string{shown} + "\n");
  }
  EXPECT_EQ(format_log_line(noon(), LogLevel::Error, "two\nlines", {}),
            "2026-11-30T12:00:00.123Z error \"two\\nlines\"\n");
}

TEST(LogLine, NoByteOfAValueLeavesItsQuotes) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string value{'a', static_cast<char>(byte), 'b'};
    const std::string line = format_log_line(noon(), LogLevel::Info, "m", {{"v", value}});
    for (std::size_t i = 0; i + 1 < line.size(); ++i) {
      EXPECT_TRUE(line[i] >= 0x20 && line[i] < 0x7f) << byte;
    }
    EXPECT_EQ(line.back(), '\n') << byte;
  }
}

TEST(LogLine, IsCutAtWhatAPipeTakesInOnePiece) {
  const std::string line =
      format_log_line(noon(), LogLevel::Info, "m", {{"v", std::string(1'000'000, 'x')}});
  EXPECT_EQ(line.size(), 4096U);
  EXPECT_EQ(line.back(), '\n');
}

TEST(LogLine, GoesToStandardErrorFromItsLevelOn) {
  set_log_level(LogLevel::Warning);
  testing::internal::CaptureStderr();
  log_line(LogLevel::Info, "dropped");
  log_line(LogLevel::Warning, "kept", {{"n", "1"}});
  log_line(LogLevel::Error, "kept too");
  const std::string written = testing::internal::GetCapturedStderr();
  set_log_level(LogLevel::Info);
  EXPECT_EQ(written.find("dropped"), std::string::npos);
  EXPECT_NE(written.find(" warning kept n=1\n"), std::string::npos);
  EXPECT_NE(written.find(" error \"kept too\"\n"), std::string::npos);
}

TEST(LogLevel, IsReadBackFromItsName) {
  for (const LogLevel level :
       {LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error}) {
    EXPECT_EQ(parse_log_level(to_string(level)), level);
  }
  EXPECT_EQ(parse_log_level("verbose"), std::nullopt);
  EXPECT_EQ(parse_log_level(""), std::nullopt);
}

}  // namespace
}  // namespace secondsight
