#include "loadtest/written.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/loadtest/test_files.h"

namespace secondsight::loadtest {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

TEST(ProcessIo, ReadsTheKernelsText) {
  const auto io = parse_process_io(
      "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n"
      "cancelled_write_bytes: 7\n");
  ASSERT_TRUE(io);
  EXPECT_EQ(io->written, 6u);
  EXPECT_EQ(io->cancelled, 7u);
}

TEST(ProcessIo, RefusesOtherText) {
  for (const char* const text : {"", "write_bytes", "\nwrite_bytes: x\ncancelled_write_bytes: 1\n",
                                 "\nwrite_bytes: 5\n", "rchar: 1\ncancelled_write_bytes: 7\n"}) {
    EXPECT_FALSE(parse_process_io(text)) << text;
  }
}

TEST(ProcessIo, ReadsThisProcessAndSaysWhenThereIsNone) {
  EXPECT_TRUE(read_process_io(getpid()));
  EXPECT_EQ(read_process_io(0).error(), boost::system::errc::no_such_file_or_directory);
}

TEST(Directory, SumsItsFiles) {
  const TemporaryDirectory directory;
  directory.write("a", std::string(10'000, 'x'));
  std::filesystem::create_directory(directory.path("sub"));
  directory.write("sub/b", "y");
  const auto use = measure_directory(directory.path(""));
  ASSERT_TRUE(use);
  EXPECT_EQ(use->files, 2u);
  EXPECT_EQ(use->size_bytes, 10'001u);
  EXPECT_EQ(measure_directory(directory.path("absent")).error(),
            boost::system::errc::no_such_file_or_directory);
}

TEST(ProxyCounters, ReadsTheAgreedNames) {
  const MetricsText metrics(
      "secondsight_objects_written_total 12\n"
      "secondsight_written_bytes_total{cause=\"admitted\"} 1000\n"
      "secondsight_written_bytes_total{cause=\"header\"} 24\n"
      "secondsight_origin_fetches_total 99\n"
      "secondsight_requests_total{outcome=\"hit\"} 5\n"
      "secondsight_requests_total{outcome=\"miss\"} 7\n"
      "secondsight_filter_fill_ratio 0.25\n"
      "secondsight_filter_false_positive_rate 0.003\n"
      "secondsight_filter_memory_bytes 4096\n"
      "secondsight_index_objects 11\n"
      "secondsight_memory_bytes 1234\n"
      "secondsight_writer_queue_bytes 0\n");
  const ProxyCounters counters = read_proxy_counters(metrics);
  EXPECT_EQ(counters.objects_written, 12u);
  EXPECT_EQ(counters.bytes_written, 1'024u);
  EXPECT_EQ(counters.bytes_by_cause.at("header"), 24u);
  EXPECT_EQ(counters.origin_fetches, 99u);
  EXPECT_EQ(counters.requests_by_outcome.at("miss"), 7u);
  EXPECT_EQ(counters.filter_fill, 0.25);
  EXPECT_EQ(counters.filter_rate, 0.003);
  EXPECT_EQ(counters.filter_bytes, 4'096u);
  EXPECT_EQ(counters.index_objects, 11u);
  EXPECT_EQ(counters.memory_bytes, 1'234u);
  EXPECT_EQ(counters.writer_queue_bytes, 0u);
  EXPECT_EQ(read_proxy_counters(MetricsText("")).objects_written, std::nullopt);
}

WriteCounts agreeing() {
  WriteCounts counts;
  counts.proxy_bytes = 100 * kMiB;
  counts.kernel_bytes = 101 * kMiB;
  counts.disk_limit_bytes = 20 * kMiB;
  counts.directory = DirectoryUse{64, 20 * kMiB, 20 * kMiB, false};
  return counts;
}

TEST(Disagreements, NoneWithinTheTolerance) {
  EXPECT_TRUE(disagreements(agreeing()).empty());
  EXPECT_TRUE(disagreements(WriteCounts{}).empty()) << "nothing is known";
  WriteCounts counts = agreeing();
  counts.proxy_bytes = 0;
  counts.kernel_bytes = 500'000;
  counts.directory.reset();
  EXPECT_TRUE(disagreements(counts).empty()) << "small numbers have slack";
}

TEST(Disagreements, KernelAgainstProxyBothWays) {
  for (const std::uint64_t kernel : {85 * kMiB, 115 * kMiB, std::uint64_t{0}}) {
    WriteCounts counts = agreeing();
    counts.kernel_bytes = kernel;
    EXPECT_THAT(disagreements(counts), testing::ElementsAre(testing::HasSubstr("the kernel")))
        << kernel;
  }
}

TEST(Disagreements, DirectoryAboveItsLimitOrEmptierThanWritten) {
  WriteCounts counts = agreeing();
  counts.directory->allocated_bytes = 22 * kMiB;
  EXPECT_THAT(disagreements(counts), testing::ElementsAre(testing::HasSubstr("configured limit")));
  counts.directory->allocated_bytes = 10 * kMiB;
  EXPECT_THAT(disagreements(counts), testing::ElementsAre(testing::HasSubstr("should hold")));
}

TEST(Disagreements, TmpfsIsSaidInsteadOfCompared) {
  WriteCounts counts = agreeing();
  counts.kernel_bytes = 0;
  counts.directory->on_tmpfs = true;
  EXPECT_THAT(disagreements(counts), testing::ElementsAre(testing::HasSubstr("tmpfs")));
}

}  // namespace
}  // namespace secondsight::loadtest
