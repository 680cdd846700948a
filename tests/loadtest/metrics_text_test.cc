#include "loadtest/metrics_text.h"

#include <gtest/gtest.h>

namespace secondsight::loadtest {
namespace {

constexpr const char* kText = R"(# HELP secondsight_written_bytes_total Bytes by cause
# TYPE secondsight_written_bytes_total counter
secondsight_written_bytes_total{cause="admitted"} 1.5e+06
secondsight_written_bytes_total{cause="footer",disk="a\"b\\c\n"} 4096
secondsight_written_bytes_total 4
secondsight_up 1 1395066363000
secondsight_rate 0.0125

nameless
 {x="y"} 3
broken{x="y 3
broken{x=y} 3
not_a_number abc
trailing 12abc
)";

TEST(MetricsText, SumsOverLabels) {
  const MetricsText metrics(kText);
  EXPECT_EQ(metrics.sum("secondsight_written_bytes_total"), 1.5e6 + 4096 + 4);
  EXPECT_EQ(metrics.sum("secondsight_up"), 1);
  EXPECT_EQ(metrics.sum("secondsight_rate"), 0.0125);
  EXPECT_EQ(metrics.sum("secondsight_written_bytes"), std::nullopt) << "no prefix match";
}

TEST(MetricsText, SplitsByOneLabel) {
  const MetricsText metrics(kText);
  const auto causes = metrics.by_label("secondsight_written_bytes_total", "cause");
  EXPECT_EQ(causes, (std::map<std::string, double>{{"admitted", 1.5e6}, {"footer", 4096}}));
  EXPECT_EQ(metrics.by_label("secondsight_written_bytes_total", "disk").begin()->first,
            "a\"b\\c\n");
  EXPECT_TRUE(metrics.by_label("secondsight_up", "cause").empty());
}

TEST(MetricsText, PassesOverWhatIsNoSample) {
  const MetricsText metrics(kText);
  for (const char* const name : {"nameless", "broken", "not_a_number", "trailing", "", "#"}) {
    EXPECT_EQ(metrics.sum(name), std::nullopt) << name;
  }
  EXPECT_TRUE(MetricsText("").empty());
  EXPECT_TRUE(MetricsText("<html>404</html>").empty());
}

}  // namespace
}  // namespace secondsight::loadtest
