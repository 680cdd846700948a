#pragma once
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "cache/log/posix_file_system.h"
#include "loadtest/sparse_file_system.h"
#include "tests/cache/log/log_fixture.h"
#include "tests/support/sim_file_system.h"

namespace secondsight::test {

enum class Backend : std::uint8_t { Simulated, Posix, Sparse };

/// Runs a test on a file system: the simulated disk, the real one, or that of offline simulations,
/// which has one thread and is not asked where several are tested.
class OnEveryFileSystem : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (GetParam() == Backend::Simulated) {
      simulated_ = std::make_unique<SimFileSystem>(1);
      files_ = simulated_.get();
    } else if (GetParam() == Backend::Sparse) {
      files_ = &sparse_;
    } else {
      auto opened = cache::log::PosixFileSystem::open_directory(directory_.path());
      ASSERT_TRUE(opened) << opened.error().message();
      posix_ = std::move(*opened);
      files_ = posix_.get();
    }
  }
  cache::log::FileSystem& files() { return *files_; }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<SimFileSystem> simulated_;
  loadtest::SparseFileSystem sparse_;
  std::unique_ptr<cache::log::PosixFileSystem> posix_;
  cache::log::FileSystem* files_ = nullptr;
};

inline std::string backend_name(const ::testing::TestParamInfo<Backend>& info) {
  if (info.param == Backend::Sparse) return "Sparse";
  return info.param == Backend::Simulated ? "Simulated" : "Posix";
}

#define INSTANTIATE_ON_EVERY_FILE_SYSTEM(suite)                                       \
  INSTANTIATE_TEST_SUITE_P(All, suite,                                                \
                           ::testing::Values(::secondsight::test::Backend::Simulated, \
                                             ::secondsight::test::Backend::Posix),    \
                           ::secondsight::test::backend_name)
#define INSTANTIATE_ON_SPARSE_FILES(suite)                                          \
  INSTANTIATE_TEST_SUITE_P(Offline, suite,                                          \
                           ::testing::Values(::secondsight::test::Backend::Sparse), \
                           ::secondsight::test::backend_name)

}  // namespace secondsight::test
