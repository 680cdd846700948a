#include "config/metrics.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace secondsight {
namespace {

TEST(Metrics, ExposeCountersAndGaugesByName) {
  Metrics metrics;
  metrics.gauge("queue_bytes", "Bytes that wait.", {}, [] { return 1536.0; });
  metrics.counter("requests_total", "Requests.", {{"method", "GET"}, {"status", "200"}}).add(3);
  metrics.counter("requests_total", "Requests.", {{"method", "HEAD"}, {"status", "200"}}).add();
  metrics.counter_from("kernel_written_bytes_total", "What the kernel counts.", {},
                       [] { return 4096.0; });
  EXPECT_EQ(metrics.expose(),
            "# HELP kernel_written_bytes_total What the kernel counts.\n"
            "# TYPE kernel_written_bytes_total counter\n"
            "kernel_written_bytes_total 4096\n"
            "# HELP queue_bytes Bytes that wait.\n"
            "# TYPE queue_bytes gauge\n"
            "queue_bytes 1536\n"
            "# HELP requests_total Requests.\n"
            "# TYPE requests_total counter\n"
            "requests_total{method=\"GET\",status=\"200\"} 3\n"
            "requests_total{method=\"HEAD\",status=\"200\"} 1\n");
}

TEST(Metrics, NothingRegisteredIsAnEmptyPage) {
  EXPECT_EQ(Metrics{}.expose(), "");
}

TEST(Metrics, OneNameAndItsLabelsAreOneCounterInAnyOrder) {
  Metrics metrics;
  Counter& first = metrics.counter("c_total", "C.", {{"a", "1"}, {"b", "2"}});
  Counter& second = metrics.counter("c_total", "C.", {{"b", "2"}, {"a", "1"}});
  Counter& other = metrics.counter("c_total", "C.", {{"a", "2"}, {"b", "1"}});
  EXPECT_EQ(&first, &second);
  EXPECT_NE(&first, &other);
}

TEST(Metrics, ReferencesOutliveLaterRegistrations) {
  Metrics metrics;
  Counter& first = metrics.counter("c_total", "C.", {{"n", "first"}});
  for (int i = 0; i < 1'000; ++i) {
    metrics.counter("c_total", "C.", {{"n", std::to_string(i)}});
    metrics.counter("c" + std::to_string(i) + "_total", "C.");
  }
  first.add(7);
  EXPECT_NE(metrics.expose().find("c_total{n=\"first\"} 7\n"), std::string::npos);
}

TEST(Metrics, LargeCountsKeepTheirDigits) {
  Metrics metrics;
  metrics.counter("c_total", "C.").add(1'234'567'890'123'456);
  EXPECT_NE(metrics.expose().find("c_total 1234567890123456\n"), std::string::npos);
}

TEST(Metrics, EscapeLabelValuesAndShowOddNumbers) {
  Metrics metrics;
  metrics.gauge("g", "G.", {{"path", "a\"b\\c\nd"}},
                [] { return std::numeric_limits<double>::infinity(); });
  metrics.gauge("n", "N.", {}, [] { return std::nan(""); });
  const std::string page = metrics.expose();
  EXPECT_NE(page.find("g{path=\"a\\\"b\\\\c\\nd\"} +Inf\n"), std::string::npos) << page;
  EXPECT_NE(page.find("n Nan\n"), std::string::npos) << page;
}

TEST(Metrics, AReadMayAskTheRegistry) {
  Metrics metrics;
  metrics.gauge("g", "G.", {}, [&metrics] {
    return static_cast<double>(metrics.counter("late_total", "Late.").value());
  });
  EXPECT_NE(metrics.expose().find("g 0\n"), std::string::npos);
}

TEST(MetricsDeathTest, RefuseWhatPrometheusCouldNotRead) {
  Metrics metrics;
  metrics.counter("c_total", "C.");
  EXPECT_DEATH(metrics.counter("no-hyphens", "C."), "CheckMetricName");
  EXPECT_DEATH(metrics.counter("c_total", "Another help."), "help");
  EXPECT_DEATH(metrics.gauge("c_total", "C.", {}, [] { return 0.0; }), "type");
  metrics.gauge("g", "G.", {}, [] { return 0.0; });
  EXPECT_DEATH(metrics.gauge("g", "G.", {}, [] { return 0.0; }), "is_new");
}

}  // namespace
}  // namespace secondsight
