#include "config/units.h"

#include <limits>

#include <gtest/gtest.h>

namespace secondsight {
namespace {

using std::chrono::milliseconds;

TEST(ParseBytes, ReadsNumbersWithAndWithoutUnits) {
  const std::vector<std::pair<std::string_view, std::uint64_t>> cases{
      {"0", 0},
      {"4096", 4096},
      {"007", 7},
      {"812B", 812},
      {"812 B", 812},
      {"1kB", 1'000},
      {"1KB", 1'000},
      {"3MB", 3'000'000},
      {"2GB", 2'000'000'000},
      {"1TB", 1'000'000'000'000},
      {"512KiB", 524'288},
      {"64 MiB", 67'108'864},
      {"10GiB", 10'737'418'240},
      {"2TiB", 2'199'023'255'552},
      {"1.5MB", 1'500'000},
      {"1.5 KiB", 1'536},
      {"0.1KiB", 102},  // rounded down to whole bytes
      {"0.999999TiB", 1'099'510'528'264},
      {"18446744073709551615", std::numeric_limits<std::uint64_t>::max()},
      {"16777215TiB", 16'777'215ULL << 40U},
  };
  for (const auto& [text, bytes] : cases) {
    const auto parsed = parse_bytes(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(ParseBytes, RefusesAnythingElse) {
  for (const std::string_view text : {"",
                                      " ",
                                      "B",
                                      "MiB",
                                      "-1",
                                      "-1MiB",
                                      "+1",
                                      "1  MiB",
                                      " 1",
                                      "1 ",
                                      "1MiB ",
                                      "1mib",
                                      "1M",
                                      "1Mi",
                                      "1XiB",
                                      "1_000",
                                      "1,5MB",
                                      "1.",
                                      "1.MB",
                                      "1.5",
                                      "1.5B",
                                      ".5MB",
                                      "1.5.5MB",
                                      "1.1234567MB",
                                      "1e3",
                                      "0x10",
                                      "18446744073709551616",
                                      "18446744073709551616B",
                                      "16777216TiB",
                                      "16777215.999999999TiB",
                                      "99999999999999999999TiB",
                                      "1MiBMiB"}) {
    EXPECT_FALSE(parse_bytes(text).has_value()) << '"' << text << '"';
  }
  EXPECT_FALSE(parse_bytes(std::string_view{"1\0MiB", 5}).has_value());
}

TEST(ParseBytes, RefusesAFractionThatOverflows) {
  EXPECT_TRUE(parse_bytes("18446744.073709TB").has_value());
  EXPECT_FALSE(parse_bytes("18446744.073710TB").has_value());
}

TEST(ParseDuration, ReadsANumberWithAUnit) {
  const std::vector<std::pair<std::string_view, milliseconds>> cases{
      {"0", milliseconds{0}},
      {"0s", milliseconds{0}},
      {"250ms", milliseconds{250}},
      {"30s", milliseconds{30'000}},
      {"5m", milliseconds{300'000}},
      {"24h", milliseconds{86'400'000}},
      {"7d", milliseconds{604'800'000}},
      {"9223372036854775807ms", milliseconds{std::numeric_limits<std::int64_t>::max()}},
  };
  for (const auto& [text, duration] : cases) EXPECT_EQ(parse_duration(text), duration) << text;
}

TEST(ParseDuration, RefusesAnythingElse) {
  for (const std::string_view text :
       {"", "s", "10", "00", "-1s", "1.5h", "1 s", "1s ", "1m30s", "1S", "1min", "1w",
        "9223372036854775808ms", "9223372036854775807s", "18446744073709551616d"}) {
    EXPECT_FALSE(parse_duration(text).has_value()) << '"' << text << '"';
  }
}

TEST(FormatBytes, KeepsThreeDigits) {
  const std::vector<std::pair<std::uint64_t, std::string_view>> cases{
      {0, "0 B"},
      {812, "812 B"},
      {1'023, "1023 B"},
      {1'024, "1 KiB"},
      {1'536, "1.5 KiB"},
      {10'189, "9.95 KiB"},
      {10'240, "10 KiB"},
      {102'348, "99.9 KiB"},
      {102'400, "100 KiB"},
      {1'048'063, "1023 KiB"},
      {1'048'064, "1 MiB"},  // not "1024 KiB"
      {10_GiB, "10 GiB"},
      {1'181'116'006, "1.1 GiB"},
      {std::numeric_limits<std::uint64_t>::max(), "16 EiB"},
  };
  for (const auto& [bytes, text] : cases) EXPECT_EQ(format_bytes(bytes), text) << bytes;
}

TEST(FormatDuration, NamesOnlyThePartsThatAreThere) {
  const std::vector<std::pair<milliseconds, std::string_view>> cases{
      {milliseconds{0}, "0s"},
      {milliseconds{250}, "250ms"},
      {milliseconds{90'000}, "1m30s"},
      {milliseconds{86'400'000}, "24h"},
      {milliseconds{3'600'001}, "1h1ms"},
      {milliseconds{-1'500}, "-1s500ms"},
      {milliseconds::min(), "-2562047788015h12m55s808ms"},
  };
  for (const auto& [duration, text] : cases) EXPECT_EQ(format_duration(duration), text) << text;
}

}  // namespace
}  // namespace secondsight
