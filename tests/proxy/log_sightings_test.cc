#include "proxy/log_sightings.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "proxy/access_log.h"

namespace secondsight::proxy {
namespace {

using admission::FilterSize;
using admission::Fingerprint;
using admission::FingerprintSeed;
using admission::Generation;
using admission::LoggedRequest;
using admission::Sighting;
using admission::TwoGenerationFilter;
using namespace std::chrono_literals;

constexpr WallTime kStart{1'796'072'609'000ms};
constexpr FilterSize kSize{.line_count = 32'768, .keys_per_generation = 500'000};
constexpr std::chrono::hours kWindow = 1h;

FingerprintSeed test_seed() {
  FingerprintSeed::Bytes bytes{};
  bytes[0] = std::byte{7};
  return FingerprintSeed(bytes);
}

LoggedRequest get(std::string target, WallTime time = kStart, std::string host = "a.example") {
  return {time, "GET", std::move(host), std::move(target), 200, 1};
}

std::vector<std::uint64_t> words_of(const TwoGenerationFilter& filter, Generation which) {
  std::vector<std::uint64_t> words(filter.words_per_generation());
  filter.copy_generation(which, words);
  return words;
}

class LogSightingsTest : public ::testing::Test {
 protected:
  LogSightingsTest() { settings.admission.window = kWindow; }

  Sighting peek(std::string_view key) const { return filter.peek(seed.fingerprint_of(key)); }

  Settings settings;
  const FingerprintSeed seed = test_seed();
  TwoGenerationFilter filter{kSize, kWindow, SteadyTime{}};
};

TEST_F(LogSightingsTest, LeavesWhatAProxyWouldRememberThatSawTheSameRequests) {
  const std::uint32_t random_seed = 20261130;
  SCOPED_TRACE("seed " + std::to_string(random_seed));
  std::mt19937 random(random_seed);
  constexpr WallTime kNow = kStart + 5 * kWindow + 10min;
  LogSightings sightings(settings, seed, filter, "", kNow);
  TwoGenerationFilter proxy(kSize, kWindow, LogSightings::steady(kStart));
  const cache::Sites sites(settings, seed);
  // Rotates at once wherever it falls due: as many calls as a sweep takes, all at that time.
  WallTime rotation = kStart;
  const auto go_on_to = [&](WallTime time) {
    for (; time - rotation >= kWindow; rotation += kWindow) {
      for (std::uint64_t call = 0; call < TwoGenerationFilter::kSweepSteps + 2; ++call)
        proxy.maintain(LogSightings::steady(rotation + kWindow));
    }
  };
  WallTime time = kStart;
  for (int i = 0; i < 20'000; ++i) {
    const std::string target = "/" + std::to_string(random() % 15'000);
    EXPECT_EQ(sightings.add(get(target, time)), "");
    go_on_to(time);
    proxy.sight(sites.primary_key("a.example", target, {}).fingerprint());
    time += std::chrono::milliseconds(random() % 1'800);
  }
  sightings.finish();
  go_on_to(kNow);
  EXPECT_EQ(sightings.sightings(), 20'000U);
  EXPECT_TRUE(words_of(filter, Generation::Current) == words_of(proxy, Generation::Current));
  EXPECT_TRUE(words_of(filter, Generation::Previous) == words_of(proxy, Generation::Previous));
  EXPECT_EQ(filter.generation_start(), LogSightings::steady(kStart + 5 * kWindow));
}

TEST_F(LogSightingsTest, EndsAGenerationThatIsFull) {
  constexpr FilterSize kSmall{.line_count = 1'000, .keys_per_generation = 10'000};
  TwoGenerationFilter small(kSmall, kWindow, SteadyTime{});
  LogSightings sightings(settings, seed, small, "", kStart + 1s);
  const auto key = [&](int i) {
    return seed.fingerprint_of("http://a.example/" + std::to_string(i));
  };
  constexpr int kKeys = 100'000;
  for (int i = 0; i < kKeys; ++i) EXPECT_EQ(sightings.add(get("/" + std::to_string(i))), "");
  sightings.finish();
  for (int i = kKeys - 9'600; i < kKeys; ++i) EXPECT_EQ(small.peek(key(i)), Sighting::Repeat) << i;
  // Of ten generations two are left at most; a key of the others is a stranger. Each answer is a
  // draw of its own, and the lines of so small a filter are a tenth off the formula at most.
  constexpr int kStrangers = 8'000;
  int remembered = 0;
  for (int i = 0; i < kStrangers; ++i) remembered += small.peek(key(i)) == Sighting::Repeat ? 1 : 0;
  const double worst = 1.1 * admission::window_rates(kSmall.keys_per_line()).worst;
  const double sigma = std::sqrt(worst * (1 - worst) / kStrangers);
  EXPECT_LT(remembered / double{kStrangers}, worst + 5 * sigma);
}

TEST_F(LogSightingsTest, ForgetsWhatIsOverByNow) {
  LogSightings sightings(settings, seed, filter, "", kStart + 150min);
  EXPECT_EQ(sightings.add(get("/first", kStart)), "");
  EXPECT_EQ(sightings.add(get("/second", kStart + 61min)), "");
  EXPECT_EQ(sightings.add(get("/third", kStart + 121min)), "");
  sightings.finish();
  EXPECT_EQ(peek("http://a.example/first"), Sighting::First);
  EXPECT_EQ(peek("http://a.example/second"), Sighting::Repeat);
  EXPECT_EQ(peek("http://a.example/third"), Sighting::Repeat);
}

TEST_F(LogSightingsTest, LeavesNothingOfAnOldLog) {
  LogSightings sightings(settings, seed, filter, "", kStart + 2 * kWindow);
  EXPECT_EQ(sightings.add(get("/a", kStart)), "");
  sightings.finish();
  EXPECT_EQ(sightings.sightings(), 1U);
  EXPECT_EQ(peek("http://a.example/a"), Sighting::First);
}

TEST_F(LogSightingsTest, GoesOnBehindYearsOfSilence) {
  constexpr auto kYears = std::chrono::hours{24 * 365 * 20};
  LogSightings sightings(settings, seed, filter, "", kStart + kYears);
  EXPECT_EQ(sightings.add(get("/then", kStart)), "");
  EXPECT_EQ(sightings.add(get("/now", kStart + kYears)), "");
  sightings.finish();
  EXPECT_EQ(peek("http://a.example/then"), Sighting::First);
  EXPECT_EQ(peek("http://a.example/now"), Sighting::Repeat);
  const auto age = LogSightings::steady(kStart + kYears) - filter.generation_start();
  EXPECT_TRUE(age >= 0s && age < kWindow) << age.count();
}

TEST_F(LogSightingsTest, TakesLateLinesAndNoneOfTheFuture) {
  LogSightings sightings(settings, seed, filter, "", kStart + 90min);
  EXPECT_EQ(sightings.add(get("/a", kStart + 70min)), "");
  EXPECT_EQ(sightings.add(get("/late", kStart + 69min)), "");
  EXPECT_EQ(sightings.add(get("/skewed", kStart + 91min)), "");
  EXPECT_EQ(sightings.add(get("/future", kStart + 92min)), "its time is yet to come");
  sightings.finish();
  for (const char* key : {"http://a.example/a", "http://a.example/late", "http://a.example/skewed"})
    EXPECT_EQ(peek(key), Sighting::Repeat) << key;
  EXPECT_EQ(peek("http://a.example/future"), Sighting::First);
}

TEST_F(LogSightingsTest, CountsGetsThatWereAnswered) {
  struct Case {
    const char* method;
    int status;
    bool counts;
  };
  LogSightings sightings(settings, seed, filter, "", kStart);
  std::uint64_t counted = 0;
  for (const Case& c : {Case{"GET", 200, true}, Case{"GET", 206, true}, Case{"GET", 299, true},
                        Case{"GET", 304, true}, Case{"GET", 199, false}, Case{"GET", 301, false},
                        Case{"GET", 404, false}, Case{"GET", 500, false}, Case{"GET", 0, false},
                        Case{"HEAD", 200, false}, Case{"POST", 200, false}, Case{"get", 200, false},
                        Case{"", 200, false}}) {
    LoggedRequest request = get("/a");
    request.method = c.method;
    request.status = c.status;
    EXPECT_EQ(sightings.add(request), "");
    counted += c.counts ? 1 : 0;
    EXPECT_EQ(sightings.sightings(), counted) << c.method << ' ' << c.status;
  }
}

TEST_F(LogSightingsTest, MakesTheKeysThatTheProxyMakes) {
  settings.sites.resize(1);
  settings.sites[0].hosts = {"site.example"};
  settings.sites[0].sort_query = true;
  settings.sites[0].drop_params = {"utm_*"};
  settings.sites[0].key_cookies = {"lang"};
  struct Case {
    std::string host, target, key;
  };
  const std::vector<Case> cases{
      {"a.example", "/x?b=1", "http://a.example/x?b=1"},
      {"A.Example:80", "/%7ex", "http://a.example/~x"},
      {"a.example:8080", "/y", "http://a.example:8080/y"},
      {"", "/z", "http://fallback.example/z"},
      {"ignored.example", "http://b.example/p", "http://b.example/p"},
      {"", "http://c.example:80?q", "http://c.example/?q"},
      {"site.example", "/s?b=2&utm_source=x&a=1", "http://site.example/s?a=1&b=2\n+c4:lang!"},
  };
  LogSightings sightings(settings, seed, filter, "fallback.example", kStart);
  for (const Case& c : cases) EXPECT_EQ(sightings.add(get(c.target, kStart, c.host)), "") << c.key;
  sightings.finish();
  for (const Case& c : cases) EXPECT_EQ(peek(c.key), Sighting::Repeat) << c.key;
  EXPECT_EQ(peek("http://ignored.example/p"), Sighting::First);
}

TEST_F(LogSightingsTest, RefusesWhatTheProxyWouldNotTake) {
  struct Case {
    std::string host, target;
  };
  LogSightings sightings(settings, seed, filter, "", kStart);
  EXPECT_EQ(sightings.add(get("/a", kStart, "")), "it names no host: say which with --host");
  for (const Case& c : {Case{"a b", "/a"}, Case{"user@a.example", "/a"}, Case{"a.example", "a"},
                        Case{"a.example", "/a b"}, Case{"a.example", "/a\r\nX:y"},
                        Case{"a.example\r\nX:y", "/a"}, Case{"a.example", "*"}, Case{"", "a"},
                        Case{"a.example", "/" + std::string(settings.proxy.max_header_bytes, 'x')}})
    EXPECT_NE(sightings.add(get(c.target, kStart, c.host)), "") << c.host << c.target.substr(0, 20);
  EXPECT_EQ(sightings.sightings(), 0U);
}

TEST_F(LogSightingsTest, ReadsTheProxysOwnLog) {
  AccessRecord record;
  record.time = kStart + 123ms;
  record.method = "GET";
  record.host = "a.example:8080";
  record.target = "/a\"b\\\xe9?\x7f";
  record.status = 200;
  record.body_bytes = 5;
  record.outcome = "miss";
  std::string line = format_access_line(record);
  line.pop_back();
  LoggedRequest request;
  ASSERT_EQ(admission::parse_access_line(line, request), "");
  EXPECT_EQ(request.time, record.time);
  EXPECT_EQ(request.method, record.method);
  EXPECT_EQ(request.host, record.host);
  EXPECT_EQ(request.target, record.target);
  EXPECT_EQ(request.status, record.status);
  EXPECT_EQ(request.body_bytes, record.body_bytes);
}

}  // namespace
}  // namespace secondsight::proxy
