#include "loadtest/trace.h"

#include <gmock/gmock.h>
#include <sstream>
#include <string>
#include <vector>

#include <boost/iostreams/copy.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <gtest/gtest.h>

#include "loadtest/plan.h"
#include "tests/loadtest/test_files.h"

namespace secondsight::loadtest {
namespace {

constexpr const char* kHeader = "timestamp_seconds,key,size_bytes\n";

std::string gzip(const std::string& text) {
  std::istringstream in(text);
  std::ostringstream out;
  boost::iostreams::filtering_ostream stream;
  stream.push(boost::iostreams::gzip_compressor());
  stream.push(out);
  boost::iostreams::copy(in, stream);
  return out.str();
}

struct Read {
  std::vector<std::string> requests;
  TraceFaults faults;
};
Read read(const std::string& content) {
  const TemporaryDirectory directory;
  const auto reader = TraceReader::open(directory.write("trace", content));
  EXPECT_TRUE(reader);
  Read result;
  SourceRequest request;
  while ((*reader)->next(request)) {
    result.requests.push_back(request.key + ' ' + std::to_string(request.size_bytes));
  }
  EXPECT_FALSE((*reader)->next(request));
  result.faults = (*reader)->faults();
  return result;
}

TEST(TraceReader, ReadsPlainAndGzipAlike) {
  const std::string text = std::string(kHeader) + "0,a,10\n1.5,b,0\n2,a,10\n";
  const std::vector<std::string> expected{"a 10", "b 0", "a 10"};
  for (const auto& content : {text, gzip(text)}) {
    const Read result = read(content);
    EXPECT_EQ(result.requests, expected);
    EXPECT_EQ(result.faults.bad_lines, 0u);
    EXPECT_EQ(result.faults.lines, 4u);
    EXPECT_FALSE(result.faults.damaged);
  }
}

TEST(TraceReader, TakesWhatVaries) {
  EXPECT_EQ(read("").requests.size(), 0u);
  EXPECT_EQ(read(gzip("")).requests.size(), 0u);
  EXPECT_EQ(read(kHeader).requests.size(), 0u);
  EXPECT_EQ(read("5,no-header,1\n").requests.size(), 1u);
  EXPECT_EQ(read("5,no-last-newline,1").requests.size(), 1u);
  EXPECT_EQ(read("0,a,1\r\n1,b,2\r\n").requests, (std::vector<std::string>{"a 1", "b 2"}));
  EXPECT_EQ(read("0,a,1\n\n\n1,b,2\n").faults.bad_lines, 0u);
}

TEST(TraceReader, CountsAndShowsBadLinesAndGoesOn) {
  const Read result =
      read(std::string(kHeader) + "0,a,1\nrubbish\n1,b\n2,c,\n3,\x1b[31m,x\n4,d,4\n");
  EXPECT_EQ(result.requests, (std::vector<std::string>{"a 1", "d 4"}));
  EXPECT_EQ(result.faults.bad_lines, 4u);
  ASSERT_EQ(result.faults.examples.size(), 4u);
  EXPECT_EQ(result.faults.examples[0], "line 3: fewer than three fields: rubbish");
  EXPECT_THAT(result.faults.examples[3], testing::HasSubstr("?[31m")) << "no control bytes";
}

TEST(TraceReader, ShowsOnlyTheFirstBadLines) {
  std::string text;
  for (int i = 0; i < 1'000; ++i) text += "bad\n";
  const Read result = read(text);
  EXPECT_EQ(result.faults.bad_lines, 1'000u);
  EXPECT_EQ(result.faults.examples.size(), TraceFaults::kExamplesMax);
}

TEST(TraceReader, EveryKindOfBadLine) {
  SourceRequest request;
  for (const char* const line :
       {"", ",", "1,2", "x,a,1", "-1,a,1", "nan,a,1", "1,,1", "1,a,-1", "1,a,1.5", "1,a,1 ",
        "1,a,99999999999999999999", "1,a,1099511627777", "1,a,b,1", "1,.,1", "1,..,1", "1,a,"}) {
    EXPECT_FALSE(parse_trace_line(line, request).empty()) << line;
  }
  EXPECT_FALSE(parse_trace_line("1," + std::string(1'025, 'k') + ",1", request).empty());
  EXPECT_TRUE(parse_trace_line("1," + std::string(1'024, 'k') + ",1", request).empty());
  EXPECT_TRUE(parse_trace_line("1,/a b?c=\xff,1099511627776", request).empty());
}

TEST(TraceReader, DamagedGzipGivesWhatCameBefore) {
  std::string text = kHeader;
  for (int i = 0; i < 20'000; ++i) {
    text += std::to_string(i) + ",key" + std::to_string(i * 7919 % 10'007) + ",100\n";
  }
  const std::string whole = gzip(text);
  const Read cut = read(whole.substr(0, whole.size() / 2));
  EXPECT_TRUE(cut.faults.damaged);
  EXPECT_GT(cut.requests.size(), 0u);
  EXPECT_LT(cut.requests.size(), 20'000u);
  EXPECT_EQ(cut.faults.bad_lines, 0u) << "the cut line is no line";

  std::string flipped = whole;
  flipped[whole.size() - 6] = static_cast<char>(flipped[whole.size() - 6] ^ 1);  // in the checksum
  EXPECT_TRUE(read(flipped).faults.damaged);
}

TEST(TraceReader, SaysWhyAFileCannotBeRead) {
  const TemporaryDirectory directory;
  EXPECT_EQ(TraceReader::open(directory.path("absent")).error(),
            boost::system::errc::no_such_file_or_directory);
  EXPECT_EQ(TraceReader::open(directory.path("")).error(), boost::system::errc::is_a_directory);
}

TEST(TraceReader, RecordedTracesHaveTheirDocumentedFigures) {
  struct Case {
    const char* file;
    std::size_t requests;
    std::size_t objects;
    double one_hit_percent;
  };
  for (const Case& c : {Case{"bu98-proxy.csv.gz", 66'987, 36'815, 81.1},
                        Case{"wikicdn-2018-10k.csv.gz", 10'000, 6'504, 90.1},
                        Case{"blog-2016.csv.gz", 94'986, 3'281, 30.8},
                        Case{"nasa-1995-07-09.csv.gz", 32'018, 1'686, 37.8},
                        Case{"semicomplete-2015.csv.gz", 8'911, 1'339, 58.3},
                        Case{"ibm-registry-2017.csv.gz", 391'884, 121'313, 81.6}}) {
    const std::string path = recorded_trace(c.file);
    NEED_RECORDED_TRACE(path);
    const auto reader = TraceReader::open(path);
    ASSERT_TRUE(reader) << path;
    const Plan plan = make_plan(**reader);
    EXPECT_EQ(plan.requests.size(), c.requests) << path;
    EXPECT_EQ(plan.objects.size(), c.objects) << path;
    EXPECT_NEAR(100 * shape_of(plan).one_hit_object_share, c.one_hit_percent, 0.06) << path;
    EXPECT_EQ((*reader)->faults().bad_lines, 0u) << path;
    EXPECT_EQ(plan.size_changes, 0u) << path;
  }
}

}  // namespace
}  // namespace secondsight::loadtest
