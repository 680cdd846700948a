// Every system call below the log fails once, at each of its turns: what was appended without an
// error is there, before and after a restart, and nothing else is.
#include <cerrno>

#include <gtest/gtest.h>

#include "config/posix_file_system.h"
#include "config/units.h"
#include "tests/cache/log/log_fixture.h"
#include "tests/support/faulty_system_calls.h"

namespace secondsight::cache::log {
namespace {

using test::FaultySystemCalls;
using test::TestIndex;
using test::TestRecord;
using Kind = FaultySystemCalls::Kind;

constexpr std::uint32_t kSegmentBytes = 64_KiB;
constexpr std::uint64_t kRecords = 24;  // of 10 KiB: five segments

struct Fault {
  const char* name;
  Kind kind;
  int number;
};

class SystemCallFaults : public ::testing::TestWithParam<Fault> {};

void expect_all(const ObjectLog& log, const TestIndex& index) {
  for (std::uint64_t key = 0; key < kRecords; ++key) {
    const auto at = index.find(key);
    if (!at) continue;
    const auto read = test::read_all(log, *at);
    ASSERT_TRUE(read) << key << ": " << read.error().message();
    EXPECT_EQ(test::version_read(*read, key), 1) << key;
  }
}

/// One run with that call failing. Whether it came to the call.
bool run_with_fault_at(const Fault& fault, std::uint64_t call) {
  const test::TemporaryDirectory directory;
  FaultySystemCalls calls(FaultySystemCalls::Pace::Normal);
  TestIndex before;
  {
    PosixFileSystem files(directory.path(), calls);
    EXPECT_OK(files.attach());
    auto log = test::open_log(files, kSegmentBytes, 16, test::ignore_recovered, kSegmentBytes);
    EXPECT_OK(log);
    calls.fail(fault.kind, call, fault.number);
    std::uint64_t appended = 0;
    for (std::uint64_t key = 0; key < kRecords; ++key) {
      const TestRecord record(key, 1, 10_KiB);
      const auto at = (*log)->append(record.view, before.reclaimer());
      if (!at) continue;
      before.put(record.view.fingerprint, record.view.kind, *at);
      ++appended;
    }
    EXPECT_GE(appended, kRecords - 1);  // one fault costs one record, and a full disk a segment
    EXPECT_GE(before.places.size(), kRecords - 8);
    expect_all(**log, before);
    static_cast<void>((*log)->close());  // may be what fails
  }
  TestIndex after;
  PosixFileSystem files(directory.path());
  EXPECT_OK(files.attach());
  auto log = test::open_log(files, kSegmentBytes, 16, after.recorder(), kSegmentBytes);
  EXPECT_OK(log);
  EXPECT_EQ(after.places, before.places);
  expect_all(**log, after);
  return calls.has_failed();
}

TEST_P(SystemCallFaults, CostAtMostTheRecordTheyHit) {
  std::uint64_t call = 0;
  for (; run_with_fault_at(GetParam(), call); ++call)
    if (HasFailure()) FAIL() << "at call " << call;
  EXPECT_GT(call, 3U);
}

INSTANTIATE_TEST_SUITE_P(Calls, SystemCallFaults,
                         ::testing::Values(Fault{"WriteIo", Kind::Write, EIO},
                                           Fault{"WriteNoSpace", Kind::Write, ENOSPC},
                                           Fault{"WriteFileTooLarge", Kind::Write, EFBIG},
                                           Fault{"ReserveNoSpace", Kind::Reserve, ENOSPC},
                                           Fault{"ReserveQuota", Kind::Reserve, EDQUOT},
                                           Fault{"OpenTooMany", Kind::Open, EMFILE},
                                           Fault{"OpenReadOnly", Kind::Open, EROFS},
                                           Fault{"SyncIo", Kind::Sync, EIO}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace secondsight::cache::log
