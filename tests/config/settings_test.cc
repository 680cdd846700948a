#include "config/settings.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <toml++/toml.h>

#include "config/setting_keys.h"

namespace secondsight {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

Settings parse_good(std::string_view toml) {
  const auto parsed = parse_settings(toml, "test.toml");
  if (const auto* faults = std::get_if<std::vector<Fault>>(&parsed)) {
    for (const Fault& fault : *faults) ADD_FAILURE() << to_string(fault);
    return {};
  }
  return std::get<Settings>(parsed);
}

constexpr std::string_view kShortest = "origin.url = \"http://127.0.0.1:9000\"\n";

Settings defaults() {
  Settings settings;
  settings.origin.urls = {{false, "127.0.0.1", 9000, "http://127.0.0.1:9000"}};
  return settings;
}

TEST(Settings, OnlyTheOriginHasNoDefault) {
  EXPECT_EQ(parse_good(kShortest), defaults());
}

TEST(Settings, NobodyMayBeAllowedToPurge) {
  const std::string origin(kShortest);
  EXPECT_TRUE(parse_good(origin + "purge.allow = []\n").purge.allow.empty());
  EXPECT_EQ(parse_good(origin + "purge.allow = \"127.0.0.1\"\n").purge.allow.size(), 1U);
}

TEST(Settings, EveryKeyReachesItsField) {
  const Settings settings = parse_good(R"(
[proxy]
listen = ["0.0.0.0:80", "[::]:80"]
workers = 4
max_connections = 500
max_header = "8KiB"
max_header_fields = 64
max_request_body = 0
header_timeout = "5s"
idle_timeout = "2m"
body_timeout = "250ms"
drain_timeout = "0"
[origin]
url = ["http://a:1", "https://b"]
max_connections = 16
connect_timeout = "1s"
response_timeout = "10s"
idle_timeout = "11s"
keepalive = "1m"
max_header = 4096
flight_buffer = "1 MiB"
[cache]
directory = "cache"
disk = "1TiB"
memory = "0"
max_object = "4GiB"
write_queue = "32MiB"
disk_threads = 2
stale_if_error = "5m"
scrub = "20MiB"
[admission]
policy = "always"
expected_keys = 50_000_000
false_positive_rate = 0.001
window = "7d"
[admin]
listen = "[::1]:9999"
[purge]
allow = ["10.0.0.0/8", "::1"]
[log]
level = "debug"
access = "-"
[[site]]
host = ["a.test", "*.a.test"]
sort_query = true
keep_params = ["page", "q%20"]
drop_empty_query = true
key_headers = "X-Tenant"
key_cookies = ["lang", "Lang"]
remove_dot_segments = true
stale_if_error = "0"
[[site]]
host = "*"
drop_params = ["utm_*", "*"]
)");
  Settings expected;
  expected.proxy = {{{"0.0.0.0", 80}, {"::", 80}},
                    4,
                    500,
                    8_KiB,
                    64,
                    0,
                    seconds{5},
                    seconds{120},
                    milliseconds{250},
                    seconds{0}};
  expected.origin = {{{false, "a", 1, "http://a:1"}, {true, "b", 443, "https://b"}},
                     16,
                     seconds{1},
                     seconds{10},
                     seconds{11},
                     seconds{60},
                     4096,
                     1_MiB};
  expected.cache = {"cache", 1024_GiB, 0, 4_GiB, 32_MiB, 2, seconds{300}, 20_MiB};
  expected.admission = {PolicyName::Always, 50'000'000, 0.001, hours{168}};
  expected.admin = {true, {"::1", 9999}};
  expected.purge.allow = {{IpAddress::of_v4({10, 0, 0, 0}), 104}, {{}, 128}};
  expected.purge.allow.back().first.bytes[15] = 1;
  expected.log = {"debug", "-"};
  expected.sites = {{{"a.test", "*.a.test"},
                     true,
                     {"page", "q%20"},
                     {},
                     true,
                     {"x-tenant"},
                     {"lang", "Lang"},
                     true,
                     seconds{0}},
                    {}};
  expected.sites.back().hosts = {"*"};
  expected.sites.back().drop_params = {"utm_*", "*"};
  EXPECT_EQ(settings.sites, expected.sites);
  EXPECT_EQ(settings.proxy, expected.proxy);
  EXPECT_EQ(settings.origin, expected.origin);
  EXPECT_EQ(settings.cache, expected.cache);
  EXPECT_EQ(settings.admission, expected.admission);
  EXPECT_EQ(settings.admin, expected.admin);
  EXPECT_EQ(settings.purge, expected.purge);
  EXPECT_EQ(settings.log, expected.log);
}

TEST(Settings, EveryPolicyHasItsNameAndItsKey) {
  for (const PolicyName policy : kPolicyNames) {
    const std::string name(to_string(policy));
    EXPECT_EQ(
        parse_good(std::string{kShortest} + "admission.policy = \"" + name + "\"").admission.policy,
        policy)
        << name;
  }
  const auto with = [](std::string_view line) {
    return parse_good(std::string{kShortest} + "[admission]\n" + std::string{line}).admission;
  };
  EXPECT_EQ(with("policy = \"probability\"\nprobability = 0.25").probability, 0.25);
  EXPECT_EQ(with("probability = 1\npolicy = \"probability\"").probability, 1);
  EXPECT_EQ(with("policy = \"size-probability\"\nsize_scale = \"1MiB\"").size_scale_bytes, 1_MiB);
  EXPECT_EQ(with("policy = \"size-probability\"\nsize_scale = 1").size_scale_bytes, 1U);
  EXPECT_EQ(with("policy = \"nth-sighting\"\nsightings = 2").sightings, 2U);
  EXPECT_EQ(with("policy = \"nth-sighting\"\nsightings = 8").sightings, 8U);
}

TEST(Settings, TakesTheEdgesOfItsRanges) {
  const auto with = [](std::string_view line) {
    return parse_good(std::string{kShortest} + std::string{line});
  };
  EXPECT_EQ(with("cache.disk = \"1MiB\"").cache.disk_bytes, 1_MiB);
  EXPECT_EQ(with("cache.disk = 0").cache.disk_bytes, 0U);
  EXPECT_EQ(with("cache.memory = 1048576").cache.memory_bytes, 1_MiB);
  EXPECT_EQ(with("admission.false_positive_rate = 0.25").admission.false_positive_rate, 0.25);
  EXPECT_EQ(with("admission.policy = \"never\"").admission.policy, PolicyName::Never);
  EXPECT_EQ(with("proxy.workers = 0").proxy.workers, 0U);
  EXPECT_FALSE(with("admin.listen = \"\"").admin.enabled);
  EXPECT_EQ(with("proxy.listen = [\"127.0.0.1:0\", \"127.0.0.1:0\"]").proxy.listen.size(), 2U);
  EXPECT_EQ(with("log.access = \"/var/log/a b.log\"").log.access, "/var/log/a b.log");
}

TEST(Settings, AnAdminThatIsOffTakesNoPort) {
  const Settings settings = parse_good(std::string{kShortest} +
                                       "proxy.listen = \"127.0.0.1:9180\"\nadmin.listen = \"\"\n");
  EXPECT_FALSE(settings.admin.enabled);
}

TEST(Settings, WindowsLineEndsAndAByteOrderMarkAreFine) {
  EXPECT_EQ(parse_good("\xef\xbb\xbf[origin]\r\nurl = 'http://127.0.0.1:9000'\r\n"), defaults());
}

TEST(Settings, ASiteWithoutRulesHasNone) {
  const Settings settings = parse_good(std::string{kShortest} + R"(
[[site]]
host = "a.test"
sort_query = false
drop_empty_query = false
remove_dot_segments = false
)");
  SiteSettings site;
  site.hosts = {"a.test"};
  EXPECT_EQ(settings.sites, std::vector{site});
}

TEST(Settings, HostsOfSites) {
  for (const std::string_view host : {"a", "a.b", "*.a.b", "*", "1.2.3.4", "[::1]",
                                      "[fe80::1.2.3.4]", "xn--bcher-kva.test", "a_b.test", "a-b"}) {
    const Settings settings =
        parse_good(std::string{kShortest} + "[[site]]\nhost = \"" + std::string{host} + "\"\n");
    ASSERT_EQ(settings.sites.size(), 1U);
    EXPECT_EQ(settings.sites.front().hosts, std::vector<std::string>{std::string{host}});
  }
}

/// The ```toml blocks of the manual, in order.
std::vector<std::string> manual_examples() {
  std::ifstream file{SECONDSIGHT_MANUAL};
  std::stringstream text;
  text << file.rdbuf();
  const std::string manual = text.str();
  const std::string open = "```toml\n";
  std::vector<std::string> blocks;
  std::size_t end = 0;
  for (auto begin = manual.find(open); begin != std::string::npos; begin = manual.find(open, end)) {
    begin += open.size();
    end = manual.find("```", begin);
    if (end == std::string::npos) break;
    blocks.push_back(manual.substr(begin, end - begin));
  }
  return blocks;
}

TEST(Settings, TheManualShowsEveryKeyWithItsDefault) {
  const auto examples = manual_examples();
  ASSERT_FALSE(examples.empty()) << SECONDSIGHT_MANUAL;
  const std::string& example = examples.front();
  EXPECT_EQ(parse_good(example), defaults());

  const toml::table root = toml::parse(example);
  const auto is_of_one_policy = [](const SettingKey& key) {
    const auto keys = policy_keys();
    return key.table == "admission" &&
           std::any_of(keys.begin(), keys.end(),
                       [&](const PolicyKey& other) { return other.name == key.name; });
  };
  for (const SettingKey& key : setting_keys()) {
    if (key.table == kSiteTable) continue;  // no site is the default
    if (is_of_one_policy(key)) continue;    // a comment: a fault beside the default policy
    const auto* table = root.get_as<toml::table>(key.table);
    ASSERT_NE(table, nullptr) << key.table;
    EXPECT_TRUE(table->contains(key.name)) << key.table << '.' << key.name;
  }
}

TEST(Settings, TheManualShowsTheKeysOfOnePolicyWithTheirDefaults) {
  const std::string default_policy = "policy              = \"second-sighting\"";
  for (const PolicyKey& key : policy_keys()) {
    std::string example = manual_examples().front();
    const std::string commented = "\n# " + std::string(key.name) + " ";
    const auto comment = example.find(commented);
    ASSERT_NE(comment, std::string::npos) << key.name;
    example.erase(comment + 1, 2);
    const auto policy = example.find(default_policy);
    ASSERT_NE(policy, std::string::npos);
    example.replace(policy, default_policy.size(),
                    "policy = \"" + std::string(to_string(key.policy)) + "\"");
    Settings expected = defaults();
    expected.admission.policy = key.policy;
    EXPECT_EQ(parse_good(example), expected) << key.name;
  }
}

TEST(Settings, TheManualShowsEveryKeyOfASite) {
  const auto examples = manual_examples();
  ASSERT_EQ(examples.size(), 2U) << SECONDSIGHT_MANUAL;
  const Settings settings = parse_good(std::string{kShortest} + examples[1]);
  EXPECT_FALSE(settings.sites.empty());

  const toml::table root = toml::parse(examples[1]);
  const auto* sites = root.get_as<toml::array>(kSiteTable);
  ASSERT_NE(sites, nullptr);
  for (const SettingKey& key : setting_keys()) {
    if (key.table != kSiteTable) continue;
    const bool is_shown = std::any_of(sites->begin(), sites->end(), [&](const toml::node& site) {
      return site.is_table() && site.as_table()->contains(key.name);
    });
    EXPECT_TRUE(is_shown) << key.name;
  }
}

TEST(LoadSettings, ReadsAFile) {
  const std::string path = testing::TempDir() + "secondsight_settings_test.toml";
  std::ofstream{path} << kShortest;
  const auto loaded = load_settings(path);
  std::remove(path.c_str());
  ASSERT_TRUE(std::holds_alternative<Settings>(loaded));
  EXPECT_EQ(std::get<Settings>(loaded), defaults());
}

TEST(LoadSettings, SaysWhyAFileCannotBeRead) {
  const auto fault_of = [](const std::string& path) {
    const auto loaded = load_settings(path);
    const auto* faults = std::get_if<std::vector<Fault>>(&loaded);
    return faults != nullptr && faults->size() == 1 ? to_string(faults->front()) : std::string{};
  };
  EXPECT_EQ(fault_of("/nowhere/x.toml"),
            "/nowhere/x.toml: cannot be read: No such file or directory");
  EXPECT_EQ(fault_of("/"), "/: cannot be read: Is a directory");
  EXPECT_EQ(fault_of("/dev/zero"), "/dev/zero: is larger than 1 MiB");
}

}  // namespace
}  // namespace secondsight
