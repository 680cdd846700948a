#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "config/metrics.h"

namespace secondsight {
namespace {

constexpr unsigned kThreads = 12;  // more than the stripes, so that some are shared
constexpr int kLabels = 10;
constexpr std::uint64_t kAddsPerThread = 4'000;

TEST(CounterRace, NoAddIsLostAndNoReaderSeesItShrink) {
  Counter counter;
  std::atomic<bool> done{false};
  std::thread reader{[&] {
    std::uint64_t seen = 0;
    while (!done.load()) {
      const std::uint64_t value = counter.value();
      ASSERT_GE(value, seen);
      seen = value;
      std::this_thread::yield();
    }
  }};
  std::vector<std::thread> writers;
  for (unsigned i = 0; i < kThreads; ++i) {
    writers.emplace_back([&] {
      for (std::uint64_t n = 0; n < kAddsPerThread; ++n) counter.add(n % 2 == 0 ? 1 : 2);
    });
  }
  for (auto& writer : writers) writer.join();
  done = true;
  reader.join();
  EXPECT_EQ(counter.value(), kThreads * kAddsPerThread * 3 / 2);
}

TEST(CounterRace, RegistrationAndScrapesGoTogether) {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&metrics, i] {
      for (int n = 0; n < kLabels; ++n) {
        metrics.counter("c_total", "C.", {{"n", std::to_string(n)}}).add();
        metrics.gauge("g", "G.", {{"t", std::to_string(i)}, {"n", std::to_string(n)}},
                      [] { return 1.0; });
        if (n % 5 == 0) {
          ASSERT_FALSE(metrics.expose().empty());
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (int n = 0; n < kLabels; ++n) {
    EXPECT_EQ(metrics.counter("c_total", "C.", {{"n", std::to_string(n)}}).value(), kThreads) << n;
  }
}

}  // namespace
}  // namespace secondsight
