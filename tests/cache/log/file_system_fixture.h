#pragma once
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "config/posix_file_system.h"
#include "loadtest/sparse_file_system.h"
#include "tests/cache/log/log_fixture.h"
#include "tests/support/faulty_system_calls.h"
#include "tests/support/sim_file_system.h"

namespace secondsight::test {

enum class Backend : std::uint8_t {
  Simulated,
  Posix,
  PosixTroubled,  // its calls are interrupted, and read and write a little at a time
  Sparse,         // what offline simulations use; for one thread
};

/// Runs a test on the simulated and on the real file system, and where asked on the sparse one.
class OnEveryFileSystem : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (GetParam() == Backend::Simulated) {
      simulated_ = std::make_unique<SimFileSystem>(1);
      files_ = simulated_.get();
    } else if (GetParam() == Backend::Sparse) {
      files_ = &sparse_;
    } else {
      auto& calls = GetParam() == Backend::Posix ? SystemCalls::of_kernel() : troubled_;
      posix_ = std::make_unique<PosixFileSystem>(directory_.path(), calls);
      const auto attached = posix_->attach();
      ASSERT_TRUE(attached) << attached.error().message();
      files_ = posix_.get();
    }
  }
  void TearDown() override {
    const bool is_troubled = GetParam() == Backend::PosixTroubled;
    EXPECT_EQ(troubled_.interruptions() > 0, is_troubled);
  }
  FileSystem& files() { return *files_; }

 private:
  TemporaryDirectory directory_;
  FaultySystemCalls troubled_{FaultySystemCalls::Pace::Troubled};
  std::unique_ptr<SimFileSystem> simulated_;
  loadtest::SparseFileSystem sparse_;
  std::unique_ptr<PosixFileSystem> posix_;
  FileSystem* files_ = nullptr;
};

inline std::string backend_name(const ::testing::TestParamInfo<Backend>& info) {
  switch (info.param) {
    case Backend::Simulated:
      return "Simulated";
    case Backend::Posix:
      return "Posix";
    case Backend::Sparse:
      return "Sparse";
    case Backend::PosixTroubled:
      break;
  }
  return "PosixTroubled";
}

#define INSTANTIATE_ON_EVERY_FILE_SYSTEM(suite)                                            \
  INSTANTIATE_TEST_SUITE_P(All, suite,                                                     \
                           ::testing::Values(::secondsight::test::Backend::Simulated,      \
                                             ::secondsight::test::Backend::Posix,          \
                                             ::secondsight::test::Backend::PosixTroubled), \
                           ::secondsight::test::backend_name)
#define INSTANTIATE_ON_SPARSE_FILES(suite)                                          \
  INSTANTIATE_TEST_SUITE_P(Offline, suite,                                          \
                           ::testing::Values(::secondsight::test::Backend::Sparse), \
                           ::secondsight::test::backend_name)

}  // namespace secondsight::test
