#include "proxy/log_reader.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <boost/iostreams/copy.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <gtest/gtest.h>

#include "proxy/log_merge.h"

namespace secondsight::proxy {
namespace {

namespace fs = std::filesystem;
namespace io = boost::iostreams;
using namespace std::chrono_literals;

/// A line of that second.
std::string line_of(int second, const std::string& target) {
  const std::string digits = std::to_string(second);
  return "1.2.3.4 - - [30/Nov/2026:21:03:" + std::string(2 - digits.size(), '0') + digits +
         " +0000] \"GET " + target + " HTTP/1.1\" 200 1\n";
}

std::string gzip(const std::string& text) {
  std::istringstream in(text);
  io::filtering_istream packed;
  packed.push(io::gzip_compressor());
  packed.push(in);
  std::ostringstream out;
  io::copy(packed, out);
  return out.str();
}

class LogReaderTest : public ::testing::Test {
 protected:
  LogReaderTest() {
    std::string name = (fs::temp_directory_path() / "secondsight-log-XXXXXX").string();
    directory = ::mkdtemp(name.data()) != nullptr ? name : "";
  }
  ~LogReaderTest() override { fs::remove_all(directory); }

  std::string file(const std::string& name, const std::string& content) const {
    const std::string path = directory + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  /// The targets of all lines that say something.
  std::vector<std::string> targets_in(const std::string& content) {
    auto reader = LogReader::open(file("log", content));
    std::vector<std::string> targets;
    admission::LoggedRequest request;
    while ((*reader)->next(request)) targets.push_back(request.target);
    faults = (*reader)->faults();
    return targets;
  }
  using Targets = std::vector<std::string>;
  std::string directory;
  LogFaults faults;
};

TEST_F(LogReaderTest, ReadsPlainAndGzip) {
  const std::string log = line_of(1, "/a") + line_of(2, "/b");
  EXPECT_EQ(targets_in(log), (Targets{"/a", "/b"}));
  EXPECT_EQ(targets_in(log.substr(0, log.size() - 1)), (Targets{"/a", "/b"}));
  EXPECT_EQ(targets_in(gzip(log)), (Targets{"/a", "/b"}));
  EXPECT_EQ(targets_in(gzip(line_of(1, "/a")) + gzip(line_of(2, "/b"))), (Targets{"/a", "/b"}))
      << "what was compressed in two goes";
  EXPECT_EQ(faults.lines, 2U);
  EXPECT_EQ(faults.bad_lines, 0U);
  EXPECT_FALSE(faults.is_damaged);
}

TEST_F(LogReaderTest, TakesLineEndsOfAllKinds) {
  std::string log = line_of(1, "/a");
  log.insert(log.size() - 1, "\r");
  EXPECT_EQ(targets_in("\n" + log + "\r\n\n" + line_of(2, "/b") + "\n"), (Targets{"/a", "/b"}));
  EXPECT_EQ(faults.bad_lines, 0U) << "an empty line is none";
  EXPECT_EQ(targets_in(""), Targets{});
  EXPECT_EQ(faults.lines, 0U);
}

TEST_F(LogReaderTest, CountsBadLinesAndShowsTheFirst) {
  std::string log;
  for (int i = 0; i < 5; ++i)
    log += line_of(i, "/a") + "bad \x1b[31m " + std::string(200, 'x') + "\n";
  EXPECT_EQ(targets_in(log).size(), 5U);
  EXPECT_EQ(faults.lines, 10U);
  EXPECT_EQ(faults.bad_lines, 5U);
  ASSERT_EQ(faults.examples.size(), 3U);
  EXPECT_EQ(faults.examples[1], "line 4: no time such as [30/Nov/2026:21:03:29 +0100]: bad ?[31m " +
                                    std::string(70, 'x') + "...");
}

TEST_F(LogReaderTest, SkipsALineWithoutEnd) {
  for (const std::size_t more : {1U, 2U, 100'000U}) {
    const std::string huge(LogReader::kLineBytesMax + more, 'x');
    EXPECT_EQ(targets_in(line_of(1, "/a") + huge + "\n" + line_of(2, "/b")), (Targets{"/a", "/b"}));
    EXPECT_EQ(faults.bad_lines, 1U);
    EXPECT_EQ(targets_in(line_of(1, "/a") + huge), (Targets{"/a"})) << "at the end of the file";
  }
  // Exactly as much as may be.
  const std::string line = line_of(1, "/");
  const std::string target = "/" + std::string(LogReader::kLineBytesMax - line.size() + 1, 'x');
  EXPECT_EQ(targets_in(line_of(1, target) + line_of(2, "/b")), (Targets{target, "/b"}));
}

TEST_F(LogReaderTest, UsesWhatIsInFrontOfDamage) {
  std::string log;
  for (int i = 0; i < 20'000; ++i) log += line_of(i % 60, "/" + std::to_string(i * 7919));
  std::string packed = gzip(log);
  const auto cut = targets_in(packed.substr(0, packed.size() / 2));
  EXPECT_TRUE(faults.is_damaged);
  EXPECT_GT(cut.size(), 1'000U);
  EXPECT_LT(cut.size(), 19'000U);
  packed[packed.size() / 2] = static_cast<char>(packed[packed.size() / 2] ^ 0x55);
  targets_in(packed);
  EXPECT_TRUE(faults.is_damaged || faults.bad_lines > 0);
}

TEST_F(LogReaderTest, SaysWhatCannotBeOpened) {
  EXPECT_EQ(LogReader::open(directory + "/none").error(),
            boost::system::errc::no_such_file_or_directory);
  EXPECT_EQ(LogReader::open(directory).error(), boost::system::errc::is_a_directory);
}

TEST_F(LogReaderTest, MergesLogsByTheirTimes) {
  Settings settings;
  settings.admission.window = 10s;
  const admission::FingerprintSeed seed(admission::FingerprintSeed::Bytes{});
  const admission::FilterSize size{.line_count = 1'000, .keys_per_generation = 10'000};
  const auto now = WallTime(1'796'072'580'000ms) + 35s;  // 21:03:35
  const auto words_after = [&](const std::vector<std::string>& logs) {
    admission::TwoGenerationFilter filter(size, 10s, SteadyTime{});
    LogSightings sightings(settings, seed, filter, "a.example", now);
    LogMerge merge;
    for (std::size_t i = 0; i < logs.size(); ++i)
      EXPECT_TRUE(merge.open(file(std::to_string(i), logs[i])));
    merge.run(sightings);
    sightings.finish();
    std::vector<std::uint64_t> words(2 * filter.words_per_generation());
    const std::span both(words);
    filter.copy_generation(admission::Generation::Current, both.first(words.size() / 2));
    filter.copy_generation(admission::Generation::Previous, both.last(words.size() / 2));
    EXPECT_EQ(sightings.sightings(), 34U);
    return words;
  };
  std::string all, even, odd, early, late;
  for (int second = 1; second <= 34; ++second) {
    const std::string line = line_of(second, "/" + std::to_string(second));
    all += line;
    (second % 2 == 0 ? even : odd) += line;
    (second <= 17 ? early : late) += line;
  }
  const auto wanted = words_after({all});
  EXPECT_TRUE(words_after({even, odd}) == wanted) << "two servers side by side";
  EXPECT_TRUE(words_after({late, early}) == wanted) << "rotated files, the latest first";
  EXPECT_TRUE(words_after({"", late, "bad\n", early}) == wanted);
}

}  // namespace
}  // namespace secondsight::proxy
