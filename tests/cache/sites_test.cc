#include "cache/sites.h"

#include <gtest/gtest.h>

#include "tests/cache/policy/heads.h"

namespace secondsight::cache {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

const admission::FingerprintSeed kSeed{admission::FingerprintSeed::Bytes{}};

/// Each with its own parameter to drop, so that a key shows whose rules made it.
Settings settings_of(const std::vector<std::vector<std::string>>& hosts) {
  Settings settings;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    SiteSettings site;
    site.hosts = hosts[i];
    site.drop_params = {std::to_string(i)};
    site.stale_if_error = minutes{i};
    settings.sites.push_back(site);
  }
  return settings;
}

/// Which of the sites above is `host`'s; -1: none.
int site_of(const Sites& sites, std::string_view host, int count) {
  int site = -1;
  for (int i = 0; i < count; ++i) {
    const std::string target = "/?" + std::to_string(i);
    if (sites.primary_key(host, target, {}).text().ends_with("?" + std::to_string(i))) continue;
    EXPECT_EQ(site, -1) << "rules of two sites";
    site = i;
  }
  const auto stale = sites.stale_if_error(host);
  EXPECT_EQ(stale, site < 0 ? milliseconds{Settings{}.cache.stale_if_error} : minutes{site});
  return site;
}

TEST(Sites, AreFoundByHost) {
  const Settings settings = settings_of(
      {{"a.test", "b.test"}, {"*.a.test"}, {"x.a.test", "*.y.a.test"}, {"[::1]", "10.0.0.1"}});
  const Sites sites(settings, kSeed);
  struct Row {
    const char* host;
    int site;
  };
  const Row rows[] = {
      {"a.test", 0},     {"b.test", 0},     {"a.test:8080", 0},  {"a.test:80", 0},
      {"c.a.test", 1},   {"d.c.a.test", 1}, {"d.c.a.test:1", 1}, {"x.a.test", 2},
      {"z.x.a.test", 1}, {"y.a.test", 1},   {"z.y.a.test", 2},   {"z.z.y.a.test:8", 2},
      {"[::1]", 3},      {"[::1]:8080", 3}, {"10.0.0.1:81", 3},  {"aa.test", -1},
      {"test", -1},      {"c.b.test", -1},  {"a.test.", -1},     {"[::2]", -1},
      {"", -1},          {".a.test", 1},    {"[::1", -1},        {"*.a.test", 1},
  };
  for (const Row& row : rows) EXPECT_EQ(site_of(sites, row.host, 4), row.site) << row.host;
}

TEST(Sites, AStarIsForAllOthers) {
  const Settings settings = settings_of({{"a.test"}, {"*"}, {"*.a.test"}});
  const Sites sites(settings, kSeed);
  EXPECT_EQ(site_of(sites, "a.test", 3), 0);
  EXPECT_EQ(site_of(sites, "b.a.test", 3), 2);
  EXPECT_EQ(site_of(sites, "b.test", 3), 1);
  EXPECT_EQ(site_of(sites, "[::1]:80", 3), 1);
}

TEST(Sites, WithoutAnyTheKeyIsThePrimaryKey) {
  const Sites sites(Settings{}, kSeed);
  const auto fields = policy::head({{"Cookie", "a=1"}});
  for (const char* target : {"/", "/a/../b?", "/%7e?b&a", "*"}) {
    const CacheKey plain = CacheKey::primary("http", "a.test:81", target, kSeed);
    const CacheKey key = sites.primary_key("a.test:81", target, fields);
    EXPECT_EQ(key.text(), plain.text());
    EXPECT_EQ(key.fingerprint(), plain.fingerprint());
    EXPECT_EQ(sites.forwarded_target("a.test:81", target), target);
  }
}

TEST(Sites, ASiteMayChangeNothingAboutKeys) {
  Settings settings;
  settings.cache.stale_if_error = minutes{5};
  settings.sites.resize(2);
  settings.sites[0].hosts = {"a.test"};
  settings.sites[0].stale_if_error = milliseconds{0};
  settings.sites[1].hosts = {"b.test"};
  const Sites sites(settings, kSeed);
  EXPECT_EQ(sites.primary_key("a.test", "/?b&a", {}).text(), "http://a.test/?b&a");
  EXPECT_EQ(sites.stale_if_error("a.test"), milliseconds{0});
  EXPECT_EQ(sites.stale_if_error("b.test"), minutes{5});
  EXPECT_EQ(sites.stale_if_error("c.test"), minutes{5});
}

TEST(Sites, TheOriginIsAskedForWhatTheKeyNames) {
  Settings settings;
  settings.sites.resize(2);
  settings.sites[0].hosts = {"a.test"};
  settings.sites[0].remove_dot_segments = true;
  settings.sites[0].sort_query = true;
  settings.sites[1].hosts = {"b.test"};
  settings.sites[1].sort_query = true;
  const Sites sites(settings, kSeed);
  EXPECT_EQ(sites.primary_key("a.test", "/x/../%7ey?b&a", {}).text(), "http://a.test/~y?a&b");
  EXPECT_EQ(sites.forwarded_target("a.test", "/x/../%7ey?b&a"), "/~y?b&a")
      << "the path of the key, the client's query";
  EXPECT_EQ(sites.primary_key("a.test", "/~y?b&a", {}).text(), "http://a.test/~y?a&b");
  EXPECT_EQ(sites.primary_key("b.test", "/x/../y?b&a", {}).text(), "http://b.test/x/../y?a&b");
  EXPECT_EQ(sites.forwarded_target("b.test", "/x/../y?b&a"), "/x/../y?b&a");
}

}  // namespace
}  // namespace secondsight::cache
