#include <gtest/gtest.h>

#include "config/settings.h"

namespace secondsight {
namespace {

std::vector<std::string> faults_of(std::string_view toml) {
  std::vector<std::string> lines;
  const auto parsed = parse_settings(toml, "s.toml");
  if (const auto* faults = std::get_if<std::vector<Fault>>(&parsed)) {
    for (const Fault& fault : *faults) lines.push_back(to_string(fault));
  }
  return lines;
}

struct BadLine {
  std::string toml;
  std::string fault;  // without "s.toml:"
};

/// Each stands alone, on line 1, before a good origin.
void expect_faults(const std::vector<BadLine>& cases) {
  for (const BadLine& bad : cases) {
    const std::string toml = bad.toml + "\n[origin]\nurl = \"http://127.0.0.1:9000\"\n";
    const auto faults = faults_of(toml);
    ASSERT_EQ(faults.size(), 1U) << bad.toml << (faults.empty() ? "" : "\n" + faults.front());
    EXPECT_EQ(faults.front(), "s.toml:" + bad.fault);
  }
}

TEST(SettingsFaults, OfAPolicysOwnKeys) {
  expect_faults({
      {"admission = {policy = \"probability\", probability = 0}",
       "1:52: [admission] probability must be above 0 and at most 1, not 0"},
      {"admission = {policy = \"probability\", probability = 1.5}",
       "1:52: [admission] probability must be above 0 and at most 1, not 1.5"},
      {"admission = {policy = \"probability\", probability = \"10%\"}",
       "1:52: [admission] probability must be a number, such as 0.1, not a string"},
      {"admission = {policy = \"size-probability\", size_scale = 0}",
       "1:56: [admission] size_scale must be between 1 B and 1 PiB, not 0"},
      {"admission = {policy = \"size-probability\", size_scale = \"64k\"}",
       R"(1:56: [admission] size_scale is "64k", which is not a size; write a number and a unit, such as "512KiB", "64MiB" or "10GiB")"},
      {"admission = {policy = \"nth-sighting\", sightings = 1}",
       "1:51: [admission] sightings must be between 2 and 8, not 1"},
      {"admission = {policy = \"nth-sighting\", sightings = 9}",
       "1:51: [admission] sightings must be between 2 and 8, not 9"},
      {"admission.probabilty = 0.1",
       R"(1:11: unknown key "probabilty" in [admission]; did you mean "probability"?)"},
      {"cache.size_scale = 1",
       R"(1:7: unknown key "size_scale" in [cache]; it belongs to [admission])"},
  });
}

TEST(SettingsFaults, AKeyThatThePolicyDoesNotUse) {
  expect_faults({
      {"admission.probability = 0.1",
       R"(1:25: [admission] probability is used by policy "probability" only, and the policy is "second-sighting"; leave one of them out)"},
      {"admission = {size_scale = \"1MiB\", policy = \"always\"}",
       R"(1:27: [admission] size_scale is used by policy "size-probability" only, and the policy is "always"; leave one of them out)"},
      {"admission = {policy = \"probability\", sightings = 3}",
       R"(1:50: [admission] sightings is used by policy "nth-sighting" only, and the policy is "probability"; leave one of them out)"},
      // What the policy was meant to be is not known.
      {"admission = {policy = \"nth-sightings\", sightings = 3}",
       R"(1:23: [admission] policy must be "second-sighting", "always", "never", "probability", "size-probability", "nth-sighting", "classic-bloom", "scalable-bloom", "cuckoo" or "exact", not "nth-sightings"; did you mean "nth-sighting"?)"},
      {"admission = {policy = 3, sightings = 3}",
       R"(1:23: [admission] policy must be "second-sighting", "always", "never", "probability", "size-probability", "nth-sighting", "classic-bloom", "scalable-bloom", "cuckoo" or "exact", not a whole number)"},
  });
}

TEST(SettingsFaults, UnknownNames) {
  expect_faults({
      {"cache.memroy = \"1GiB\"",
       R"(1:7: unknown key "memroy" in [cache]; did you mean "memory"?)"},
      {"cache.window = \"1h\"",
       R"(1:7: unknown key "window" in [cache]; it belongs to [admission])"},
      {"cache.colour = 1", R"(1:7: unknown key "colour" in [cache])"},
      {"admin.\"a\\nb\" = 1", R"(1:7: unknown key "a\nb" in [admin])"},
      {"[prxy]", "1:2: unknown table [prxy]; did you mean [proxy]?"},
      {"[frontend]", "1:2: unknown table [frontend]"},
      {"[[place]]", "1:3: unknown table [[place]]"},
      {"sort_query = true",
       R"(1:1: unknown key "sort_query" before any table; it belongs to [[site]])"},
      {"cache.key_headers = \"a\"",
       R"(1:7: unknown key "key_headers" in [cache]; it belongs to [[site]])"},
      {"sit = 4", R"(1:1: unknown key "sit" before any table; did you mean [[site]]?)"},
      {"[[site]]\nhost = \"a\"\nsort_qery = true",
       R"(3:1: unknown key "sort_qery" in [[site]]; did you mean "sort_query"?)"},
      {"[[site]]\nhost = \"a\"\nlower_case_path = true",
       R"(3:1: unknown key "lower_case_path" in [[site]])"},
      {"workers = 4", R"(1:1: unknown key "workers" before any table; it belongs to [proxy])"},
      {"colour = 4", R"(1:1: unknown key "colour" before any table)"},
      {"prox = 4", R"(1:1: unknown key "prox" before any table; did you mean [proxy]?)"},
      {"proxy = 4", "1:1: proxy must be a table; write its keys below one [proxy] line"},
      {"[[proxy]]\nworkers = 1",
       "1:3: proxy must be a table; write its keys below one [proxy] line"},
  });
}

TEST(SettingsFaults, WrongTypes) {
  expect_faults({
      {"proxy.workers = \"4\"",
       "1:17: [proxy] workers must be a whole number, such as 0, not a string"},
      {"proxy.workers = 1.5",
       "1:17: [proxy] workers must be a whole number, such as 0, not a decimal number"},
      {"cache.disk = 1.5",
       R"(1:14: [cache] disk must be a size, such as "64MiB", not a decimal number)"},
      {"cache.disk = true",
       R"(1:14: [cache] disk must be a size, such as "64MiB", not true or false)"},
      {"cache.directory = 1",
       "1:19: [cache] directory must be a path in quotes, not a whole number"},
      {"proxy.idle_timeout = 60",
       R"(1:22: [proxy] idle_timeout must be a duration, such as "30s", not a whole number)"},
      {"proxy.listen = 8080",
       R"(1:16: [proxy] listen must be an address, such as "127.0.0.1:8080" or "[::1]:8080", or a list of them, not a whole number)"},
      {"proxy.listen = [8080]", "1:17: [proxy] listen must list strings only, not a whole number"},
      {"admin.listen = [\"127.0.0.1:1\"]",
       R"(1:16: [admin] listen must be one address, such as "127.0.0.1:9180", or "" for none, not a list)"},
      {"admission.policy = 1979-05-27",
       R"(1:20: [admission] policy must be "second-sighting", "always", "never", "probability", "size-probability", "nth-sighting", "classic-bloom", "scalable-bloom", "cuckoo" or "exact", not a date or time)"},
      {"admission.false_positive_rate = \"1%\"",
       "1:33: [admission] false_positive_rate must be a number, such as 0.01, not a string"},
      {"log.level = {}",
       R"(1:13: [log] level must be "debug", "info", "warning" or "error", not a table)"},
  });
}

TEST(SettingsFaults, WhoMayPurge) {
  expect_faults({
      {"purge.alow = []", R"(1:7: unknown key "alow" in [purge]; did you mean "allow"?)"},
      {"purge.allow = true",
       R"(1:15: [purge] allow must be an address or a range, such as "127.0.0.1" or "10.0.0.0/8", or a list of them, not true or false)"},
      {"purge.allow = [\"::1\", 1]",
       "1:23: [purge] allow must list strings only, not a whole number"},
      {"purge.allow = \"localhost\"",
       R"(1:15: [purge] allow "localhost" is not an address; write an address or a range, such as "127.0.0.1" or "10.0.0.0/8")"},
      {"purge.allow = \"10.0.0.1/8\"",
       R"(1:15: [purge] allow "10.0.0.1/8" has bits behind its prefix; that range is 10.0.0.0/8; write an address or a range, such as "127.0.0.1" or "10.0.0.0/8")"},
      {"purge.allow = [\"10.0.0.0/8\", \"::ffff:10.0.0.0/104\"]",
       "1:30: [purge] allow names 10.0.0.0/8 twice; leave one of them out"},
  });
  EXPECT_EQ(
      faults_of("origin.url = \"http://a\"\n[purge]\nallow = [\n\"x\",\n\"::1\",\n\"y\"]\n").size(),
      2U);
}

TEST(SettingsFaults, OutOfRange) {
  expect_faults({
      {"proxy.workers = -1", "1:17: [proxy] workers must be between 0 and 256, not -1"},
      {"proxy.workers = 257", "1:17: [proxy] workers must be between 0 and 256, not 257"},
      {"proxy.max_connections = 0",
       "1:25: [proxy] max_connections must be between 1 and 1000000, not 0"},
      {"admission.expected_keys = 0",
       "1:27: [admission] expected_keys must be between 1 and 100000000000, not 0"},
      {"cache.disk_threads = 9223372036854775807",
       "1:22: [cache] disk_threads must be between 1 and 256, not 9223372036854775807"},
      {"admission.false_positive_rate = 0",
       "1:33: [admission] false_positive_rate must be above 0 and at most 0.25, not 0"},
      {"admission.false_positive_rate = 0.26",
       "1:33: [admission] false_positive_rate must be above 0 and at most 0.25, not 0.26"},
      {"admission.false_positive_rate = -0.1",
       "1:33: [admission] false_positive_rate must be above 0 and at most 0.25, not -0.1"},
      {"admission.false_positive_rate = nan",
       "1:33: [admission] false_positive_rate must be above 0 and at most 0.25, not nan"},
      {"admission.false_positive_rate = inf",
       "1:33: [admission] false_positive_rate must be above 0 and at most 0.25, not inf"},
      {"cache.disk = \"1023KiB\"",
       R"(1:14: [cache] disk must be 0 (memory only) or between 1 MiB and 1 PiB, not "1023KiB")"},
      {"cache.disk = \"2000TiB\"",
       R"(1:14: [cache] disk must be 0 (memory only) or between 1 MiB and 1 PiB, not "2000TiB")"},
      {"cache.disk = -1",
       "1:14: [cache] disk must be 0 (memory only) or between 1 MiB and 1 PiB, not -1"},
      {"cache.memory = 1048575",
       "1:16: [cache] memory must be 0 (no memory tier) or between 1 MiB and 1 PiB, not 1048575"},
      {"cache.scrub = \"63KiB\"",
       R"(1:15: [cache] scrub must be 0 (not at all) or between 64 KiB and 1 PiB, not "63KiB")"},
      {"cache.max_object = 0", "1:20: [cache] max_object must be between 1 B and 1 PiB, not 0"},
      {"proxy.header_timeout = \"0\"",
       R"(1:24: [proxy] header_timeout must be between 1ms and 24h, not "0")"},
      {"proxy.idle_timeout = \"25h\"",
       R"(1:22: [proxy] idle_timeout must be between 1ms and 24h, not "25h")"},
      {"cache.directory = \"\"", "1:19: [cache] directory must not be empty"},
  });
}

TEST(SettingsFaults, UnreadableValues) {
  expect_faults({
      {"cache.disk = \"10 gigs\"",
       R"(1:14: [cache] disk is "10 gigs", which is not a size; write a number and a unit, such as "512KiB", "64MiB" or "10GiB")"},
      {"proxy.idle_timeout = \"60\"",
       R"(1:22: [proxy] idle_timeout is "60", which is not a duration; write a whole number and a unit, such as "250ms", "30s", "5m", "24h" or "7d")"},
      {"admission.policy = \"2nd-sighting\"",
       R"(1:20: [admission] policy must be "second-sighting", "always", "never", "probability", "size-probability", "nth-sighting", "classic-bloom", "scalable-bloom", "cuckoo" or "exact", not "2nd-sighting"; did you mean "nth-sighting"?)"},
      {"admission.policy = \"cukoo\"",
       R"(1:20: [admission] policy must be "second-sighting", "always", "never", "probability", "size-probability", "nth-sighting", "classic-bloom", "scalable-bloom", "cuckoo" or "exact", not "cukoo"; did you mean "cuckoo"?)"},
      {"admission.policy = \"allways\"",
       R"(1:20: [admission] policy must be "second-sighting", "always", "never", "probability", "size-probability", "nth-sighting", "classic-bloom", "scalable-bloom", "cuckoo" or "exact", not "allways"; did you mean "always"?)"},
      {"log.level = \"verbose\"",
       R"(1:13: [log] level must be "debug", "info", "warning" or "error", not "verbose")"},
      {"cache.directory = \"a\\u0000b\"",
       R"(1:19: [cache] directory must not hold control characters, as in "a\x00b")"},
      {"proxy.listen = \"localhost:8080\"",
       R"(1:16: [proxy] listen cannot listen on "localhost:8080"; write a numeric address and a port, such as "127.0.0.1:8080" or "[::1]:8080")"},
      {"admin.listen = \":9180\"",
       R"(1:16: [admin] listen cannot listen on ":9180"; write a numeric address and a port, such as "127.0.0.1:9180", or "" for none)"},
  });
}

TEST(SettingsFaults, AddressesGivenTwice) {
  expect_faults({
      {"proxy.listen = []", "1:16: [proxy] listen must name at least one"},
      {"proxy.listen = [\"127.0.0.1:80\", \"127.0.0.1:80\"]",
       "1:33: [proxy] listen names 127.0.0.1:80 twice; leave one of them out"},
      {"proxy.listen = [\"[::1]:80\", \"[0::1]:80\"]",
       "1:29: [proxy] listen names [::1]:80 twice; leave one of them out"},
      {"proxy.listen = \"127.0.0.1:9180\"",
       "1:16: [admin] listen is 127.0.0.1:9180, as is [proxy] listen; give one of them another "
       "port"},
      {"admin.listen = \"127.0.0.1:8080\"",
       "1:16: [admin] listen is 127.0.0.1:8080, as is [proxy] listen; give one of them another "
       "port"},
  });
}

TEST(SettingsFaults, ShapesOfSites) {
  constexpr std::string_view kNoList =
      "site must be a list of tables; write the keys of each below a [[site]] line";
  constexpr std::string_view kNoHost =
      "[[site]] host is missing: set it to the name that requests give, such as \"example.com\", "
      "or "
      "to \"*\" for all others";
  expect_faults({
      {"site = 4", "1:1: " + std::string{kNoList}},
      {"site = []", "1:1: " + std::string{kNoList}},
      {"[site]\nhost = \"a\"", "1:2: " + std::string{kNoList}},
      {"site = [{host = \"a\"}, 4]", "1:1: " + std::string{kNoList}},
      {"[[site]]", "1:1: " + std::string{kNoHost}},
      {"[[site]]\nhost = \"a\"\n[[site]]\nsort_query = true", "3:1: " + std::string{kNoHost}},
      {"[[site]]\nhost = \"a\"\nkeep_params = \"b\"\ndrop_params = \"c\"",
       "4:15: [[site]] keep_params and drop_params exclude each other: the one names all that is "
       "in "
       "the key, the other all that is not; leave one of them out"},
  });
}

TEST(SettingsFaults, HostsOfSites) {
  constexpr std::string_view kStar =
      R"( may have its * only in front, as in "*.example.com", or stand for all others as "*")";
  constexpr std::string_view kNoName = R"( is not a host; write a name, such as "example.com")";
  constexpr std::string_view kPort = " must have no port: rules hold for every port of a host";
  constexpr std::string_view kNoBrackets =
      R"( is not a host; write an IPv6 address in brackets, as in "[::1]")";
  const std::vector<std::pair<std::string, std::string_view>> rows{
      {"Example.com", R"( must be in lower case: "example.com")"},
      {"", kNoName},
      {"a..b", kNoName},
      {".a", kNoName},
      {"a.", kNoName},
      {"a b", kNoName},
      {"a%2eb", kNoName},
      {"[::1", kNoBrackets},
      {"::1", kNoBrackets},
      {"[]", kNoName},
      {std::string(254, 'a'), kNoName},
      {"http://a", " is a URL or a path; write the host alone"},
      {"a/b", " is a URL or a path; write the host alone"},
      {"a:80", kPort},
      {"*.a:80", kPort},
      {"[::1]:80", kPort},
      {"*.", kNoName},
      {"*a", kStar},
      {"a.*", kStar},
      {"*.*.a", kStar},
  };
  for (const auto& [host, reason] : rows) {
    const std::string fault = "2:8: [[site]] host \"" + host + "\"" + std::string{reason};
    expect_faults({{"[[site]]\nhost = \"" + host + "\"", fault}});
  }
  expect_faults({
      {"[[site]]\nhost = 1",
       R"(2:8: [[site]] host must be a host, such as "example.com", or a list of them, not a whole number)"},
      {"[[site]]\nhost = []", "2:8: [[site]] host must name at least one"},
      {"[[site]]\nhost = [\"a\", \"a\"]",
       R"(2:14: [[site]] host names "a" twice; leave one of them out)"},
      {"[[site]]\nhost = \"a\"\n[[site]]\nhost = [\"b\", \"a\"]",
       R"(4:14: [[site]] host "a" belongs to the site on line 1 already; leave it out in one of them)"},
      {"[[site]]\nhost = \"*\"\n[[site]]\nhost = \"*\"",
       R"(4:8: [[site]] host "*" belongs to the site on line 1 already; leave it out in one of them)"},
  });
}

TEST(SettingsFaults, RulesOfSites) {
  constexpr std::string_view kHop =
      "belongs to one connection (RFC 9110 7.6.1) and never reaches the origin, which cannot "
      "answer "
      "by it";
  constexpr std::string_view kCache =
      "is answered by the cache itself, from one stored response for all its values";
  constexpr std::string_view kTravel = "tells how one message travels, not what is asked for";
  std::vector<std::pair<std::string, std::string>> rows{
      {"sort_query = 1", "3:14: [[site]] sort_query must be true or false, not a whole number"},
      {"remove_dot_segments = \"yes\"",
       "3:23: [[site]] remove_dot_segments must be true or false, not a string"},
      {"keep_params = true",
       R"(3:15: [[site]] keep_params must be a parameter, such as "page" or "utm_*", or a list of them, not true or false)"},
      {"keep_params = \"\"", R"(3:15: [[site]] keep_params "" must not be empty)"},
      {"keep_params = []", "3:15: [[site]] keep_params must name at least one"},
      {"drop_params = \"a*b\"",
       R"(3:15: [[site]] drop_params "a*b" may have a * only at its end, as in "utm_*")"},
      {"drop_params = [\"a\", \"b=1\"]",
       R"(3:21: [[site]] drop_params "b=1" must be a name alone, without any of & = ? #)"},
      {"drop_params = \"a b\"",
       R"(3:15: [[site]] drop_params "a b" must be spelled as in a URL, such as %20 for a blank)"},
      {"drop_params = \"100%\"",
       R"(3:15: [[site]] drop_params "100%" has a % without two hexadecimal digits; write %25 for the sign itself)"},
      {"key_headers = \"X Tenant\"",
       R"(3:15: [[site]] key_headers "X Tenant" is not a field name, such as "X-Tenant")"},
      {"key_headers = [\"X-A\", \"x-a\"]",
       R"(3:23: [[site]] key_headers names "x-a" twice; leave one of them out)"},
      {"key_headers = \"Host\"", R"(3:15: [[site]] key_headers "Host" is in every key already)"},
      {"key_headers = \"Cookie\"",
       R"(3:15: [[site]] key_headers "Cookie" holds all cookies of a client, so that no two clients would share; name those that matter in key_cookies)"},
      {"key_headers = \"Authorization\"",
       R"(3:15: [[site]] key_headers "Authorization" names one user, while what is stored answers all (RFC 9111 3.5); let the origin say what may be shared)"},
      {"key_cookies = \"a=b\"",
       R"(3:15: [[site]] key_cookies "a=b" is not a cookie's name, such as "lang")"},
      {"stale_if_error = 60",
       R"(3:18: [[site]] stale_if_error must be a duration, such as "30s", not a whole number)"},
      {"stale_if_error = \"9000d\"",
       R"(3:18: [[site]] stale_if_error must be between 0s and 8784h, not "9000d")"},
  };
  const auto add_unfit = [&rows](std::string_view name, std::string_view reason) {
    const std::string quoted_name = "\"" + std::string{name} + "\"";
    rows.emplace_back("key_headers = " + quoted_name,
                      "3:15: [[site]] key_headers " + quoted_name + " " + std::string{reason});
  };
  for (const auto name : {"Connection", "Keep-Alive", "Proxy-Connection",
                          "Proxy-Authentication-Info", "Proxy-Authenticate", "Proxy-Authorization",
                          "TE", "Trailer", "Transfer-Encoding", "Upgrade"})
    add_unfit(name, kHop);
  for (const auto name : {"Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since",
                          "If-Unmodified-Since", "Cache-Control", "Pragma"})
    add_unfit(name, kCache);
  for (const auto name : {"Content-Length", "Expect", "Via", "Max-Forwards"})
    add_unfit(name, kTravel);
  for (const auto& [line, fault] : rows)
    expect_faults({{"[[site]]\nhost = \"a\"\n" + line, fault}});
}

TEST(SettingsFaults, TheOrigin) {
  constexpr std::string_view kMissing =
      "[origin] url is missing: set it to the origin's address, such as \"http://127.0.0.1:9000\"";
  EXPECT_EQ(faults_of(""), std::vector{"s.toml: " + std::string{kMissing}});
  EXPECT_EQ(faults_of("\n\n[origin]\n"), std::vector{"s.toml:3:1: " + std::string{kMissing}});
  EXPECT_EQ(faults_of("origin.url = 1"),
            std::vector<std::string>{"s.toml:1:14: [origin] url must be a URL, such as "
                                     "\"http://127.0.0.1:9000\", or a list of them, not a whole "
                                     "number"});
  EXPECT_EQ(faults_of("origin.url = [\"http://a\", \"http://me@b\"]"),
            std::vector<std::string>{"s.toml:1:27: [origin] url \"http://me@b\" has a user name; "
                                     "write http://HOST[:PORT] or https://HOST[:PORT], such as "
                                     "\"http://127.0.0.1:9000\""});
}

TEST(SettingsFaults, AreAllListedInTheOrderOfTheirLines) {
  EXPECT_EQ(
      faults_of(R"([proxy]
workers = -1
lisen   = "127.0.0.1:8080"
[admission]
window  = "24"
policy  = "sometimes"
[cache]
memory  = 1
memroy  = 2
)"),
      (std::vector<std::string>{
          R"(s.toml: [origin] url is missing: set it to the origin's address, such as "http://127.0.0.1:9000")",
          "s.toml:2:11: [proxy] workers must be between 0 and 256, not -1",
          R"(s.toml:3:1: unknown key "lisen" in [proxy]; did you mean "listen"?)",
          R"(s.toml:5:11: [admission] window is "24", which is not a duration; write a whole number and a unit, such as "250ms", "30s", "5m", "24h" or "7d")",
          R"(s.toml:6:11: [admission] policy must be "second-sighting", "always", "never", "probability", "size-probability", "nth-sighting", "classic-bloom", "scalable-bloom", "cuckoo" or "exact", not "sometimes")",
          R"(s.toml:8:11: [cache] memory must be 0 (no memory tier) or between 1 MiB and 1 PiB, not 1)",
          R"(s.toml:9:1: unknown key "memroy" in [cache]; did you mean "memory"?)",
      }));
}

TEST(SettingsFaults, WhatIsNotTomlIsOneFaultWithItsLine) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
      {"[origin]\nurl = \n", "s.toml:2:7: "},
      {"[origin\n", "s.toml:1:8: "},
      {"[proxy]\nworkers = 1\nworkers = 2\n", "s.toml:3:"},
      {"[proxy]\n[proxy]\n", "s.toml:2:"},
      {"a = \"\x01\"", "s.toml:1:"},
      {"a = \"\xff\"", "s.toml:1:"},
  };
  for (const auto& [toml, start] : cases) {
    const auto faults = faults_of(toml);
    ASSERT_EQ(faults.size(), 1U) << toml;
    EXPECT_EQ(faults.front().substr(0, start.size()), start) << faults.front();
    EXPECT_GT(faults.front().size(), start.size() + 10) << faults.front();
  }
}

TEST(SettingsFaults, ATextTooLargeIsRefusedUnread) {
  EXPECT_EQ(faults_of(std::string(1_MiB + 1, '=')),
            std::vector<std::string>{"s.toml: is larger than 1 MiB"});
}

}  // namespace
}  // namespace secondsight
