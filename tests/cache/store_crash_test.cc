// A whole store's life on a simulated disk, cut off at every point: then it is opened again, and
// must hold what it promised. docs/testing.md says how to run one seed again.
#include <algorithm>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "config/log.h"
#include "tests/cache/store_simulation.h"

namespace secondsight::cache {
namespace {

namespace errc = boost::system::errc;
using test::SimFileSystem;

constexpr int kSteps = 120;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const given = std::getenv(name);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

/// The long sweep sets more of both. 0 points: every one.
const std::uint64_t kFirstSeed = from_environment("SECONDSIGHT_TEST_SEED", 1);
const std::uint64_t kSeeds = from_environment("SECONDSIGHT_TEST_SEEDS", 4);
const std::uint64_t kPoints = from_environment("SECONDSIGHT_TEST_POINTS", 30);

/// Thousands of disks fail here, and each would have its lines.
class StoreCrash : public ::testing::Test {
 protected:
  StoreCrash() {
    constexpr auto kNothing = static_cast<LogLevel>(static_cast<int>(LogLevel::Error) + 1);
    set_log_level(kNothing);
  }
  ~StoreCrash() override { set_log_level(LogLevel::Info); }

  static std::uint64_t operations_of(std::uint64_t seed) {
    SimFileSystem disk(seed);
    StoreWorkload workload(disk, seed);
    EXPECT_TRUE(workload.open());
    workload.run(kSteps);
    workload.close();
    return disk.operations();
  }

  /// Calls run(seed, operation) for points that are spread over each seed's run.
  template <class Run>
  void at_many_points(Run run) {
    for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kSeeds; ++seed) {
      const auto operations = operations_of(seed);
      ASSERT_GT(operations, 300U) << "seed " << seed;
      const std::uint64_t step =
          kPoints == 0 ? 1 : std::max<std::uint64_t>(operations / kPoints, 1);
      for (std::uint64_t at = kPoints == 0 ? 0 : seed % step; at < operations; at += step) {
        SCOPED_TRACE("SECONDSIGHT_TEST_SEED=" + std::to_string(seed) + ", operation " +
                     std::to_string(at));
        run(seed, at);
        if (HasFailure()) return;
      }
    }
  }
};

TEST_F(StoreCrash, ThePowerFailsAtAnyOperation) {
  at_many_points([](std::uint64_t seed, std::uint64_t at) {
    SimFileSystem disk(seed * 1'000'003 + at);
    StoreWorkload workload(disk, seed);
    disk.crash_at(at);
    if (workload.open()) workload.run(kSteps);
    workload.close();
    workload.cut_power();
    workload.check_recovered();
  });
}

TEST_F(StoreCrash, ThePowerFailsAgainWhileItOpens) {
  at_many_points([](std::uint64_t seed, std::uint64_t at) {
    SimFileSystem disk(seed * 1'000'003 + at);
    StoreWorkload workload(disk, seed);
    disk.crash_at(at);
    if (workload.open()) workload.run(kSteps);
    for (std::uint64_t again = at % 3; again < 40; again += 5) {
      workload.close();
      workload.cut_power();
      disk.crash_at(disk.operations() + again);
      workload.open();
      if (!disk.has_crashed()) break;
    }
    workload.close();
    workload.cut_power();
    workload.check_recovered();
  });
}

TEST_F(StoreCrash, OperationsFailThenThePower) {
  at_many_points([](std::uint64_t seed, std::uint64_t at) {
    for (const auto error : {errc::io_error, errc::no_space_on_device}) {
      SimFileSystem disk(seed * 1'000'003 + at);
      StoreWorkload workload(disk, seed);
      for (std::uint64_t i = 0; i <= at % 5; ++i) disk.fail_operation(at + i, error);
      workload.open();
      workload.run(kSteps);
      workload.cut_power();
      workload.check_recovered();
    }
  });
}

/// A disk that lies: what it lost may be missed and what it hit may be damaged, but whatever is
/// read is right, and the store opens and goes on.
TEST_F(StoreCrash, AWriteGoesAstray) {
  at_many_points([](std::uint64_t seed, std::uint64_t at) {
    SimFileSystem disk(seed * 1'000'003 + at);
    StoreWorkload workload(disk, seed);
    for (std::uint64_t i = 0; i < 5; ++i) disk.send_astray(at + i);
    ASSERT_TRUE(workload.open());
    workload.expect_lies();
    workload.run(kSteps);
    workload.cut_power();
    ASSERT_TRUE(workload.open());
    workload.run(kSteps);
    workload.check_all();
  });
}

TEST_F(StoreCrash, WithoutFaultsEveryKeySaysItsLatestVersion) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 5 * kSeeds; ++seed) {
    SCOPED_TRACE("SECONDSIGHT_TEST_SEED=" + std::to_string(seed));
    SimFileSystem disk(seed);
    StoreWorkload workload(disk, seed);
    ASSERT_TRUE(workload.open());
    workload.run(5 * kSteps);
    workload.check_all();
    EXPECT_GT(*workload.segments().begin(), 1U) << "nothing was reclaimed";
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace secondsight::cache
