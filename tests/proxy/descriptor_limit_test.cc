#include "proxy/descriptor_limit.h"

#include <cstdlib>
#include <sys/resource.h>

#include <gtest/gtest.h>

#include "config/units.h"

namespace secondsight::proxy {
namespace {

using namespace literals;

/// The process's limit, put back at the end.
class DescriptorLimit : public ::testing::Test {
 protected:
  DescriptorLimit() { ::getrlimit(RLIMIT_NOFILE, &before_); }
  ~DescriptorLimit() override { ::setrlimit(RLIMIT_NOFILE, &before_); }
  static rlim_t soft() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
  }
  rlimit before_{};
};

Settings few() {
  Settings settings;
  settings.proxy.workers = 1;
  settings.proxy.max_connections = 100;
  settings.origin.max_connections = 10;
  return settings;
}

TEST_F(DescriptorLimit, CoversConnectionsAndSegments) {
  Settings settings = few();
  settings.cache.disk_bytes = 0;
  const auto without_disk = descriptors_wanted(settings, 1);
  EXPECT_GE(without_disk, 110U);
  EXPECT_GE(descriptors_wanted(settings, 3), without_disk + 2 * 110);
  settings.cache.disk_bytes = 10_GiB;
  EXPECT_GE(descriptors_wanted(settings, 1), without_disk + 64);
  settings.cache.disk_bytes = 100_GiB;  // 400 segments, as they are never larger than 256 MiB
  EXPECT_GE(descriptors_wanted(settings, 1), without_disk + 400);
}

TEST_F(DescriptorLimit, IsRaisedToWhatIsWanted) {
  const Settings settings = few();
  const rlim_t wanted = descriptors_wanted(settings, 1);
  ASSERT_LT(wanted, before_.rlim_max);
  const rlimit low{64, before_.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  testing::internal::CaptureStderr();
  raise_descriptor_limit(settings);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(soft(), wanted);
}

TEST_F(DescriptorLimit, AHardLimitThatIsTooLowIsSaid) {
  const auto with_low_limit = [] {
    const rlimit low{64, 100};
    if (::setrlimit(RLIMIT_NOFILE, &low) != 0) std::exit(1);
    raise_descriptor_limit(few());
    std::exit(soft() == 100 ? 0 : 2);
  };
  EXPECT_EXIT(with_low_limit(), testing::ExitedWithCode(0),
              "limit of open files is below .* limit=100");
}

TEST_F(DescriptorLimit, IsNeverLowered) {
  const rlim_t before = soft();
  raise_descriptor_limit(few());
  EXPECT_GE(soft(), before);
}

}  // namespace
}  // namespace secondsight::proxy
