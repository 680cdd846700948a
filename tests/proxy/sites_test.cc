#include <string>

#include <gtest/gtest.h>

#include "tests/proxy/flight_fixture.h"

namespace secondsight::proxy::test {
namespace {

/// One site for every host, but for what `change` says of it.
RunningProxy::Change with_site(void (*change)(SiteSettings&)) {
  return [change](Settings& settings) {
    SiteSettings site;
    site.hosts = {"*"};
    change(site);
    settings.sites = {site};
  };
}

TEST(SitesInAProxy, UrlsThatDifferInWhatIsDroppedOrSortedShareAnObject) {
  RoutedOrigin origin;
  origin.on("/a?b=2&utm_source=x&a=1", ok(kFresh, "first"));
  origin.on("/a?c", ok(kFresh, "other"));
  RunningProxy proxy(origin.url(), with_site([](SiteSettings& site) {
                       site.sort_query = true;
                       site.drop_params = {"utm_*"};
                     }));
  EXPECT_EQ(proxy.get("/a?b=2&utm_source=x&a=1").body, "first")
      << "the origin is asked as the client asked";
  for (const char* same : {"/a?a=1&b=2", "/a?utm_medium=y&%61=1&b=2", "/a?b=2&a=1&utm_"}) {
    const RawResponse response = proxy.get(same);
    EXPECT_TRUE(says(response, "hit")) << same << response.field("Cache-Status");
    EXPECT_EQ(response.body, "first") << same;
    EXPECT_EQ(origin.count(same), 0U);
  }
  EXPECT_EQ(proxy.get("/a?c").body, "other");
  EXPECT_EQ(proxy.get("/a?a=1&b=3").status, 404) << "what is kept still counts";
}

TEST(SitesInAProxy, RulesHoldForTheirHostOnly) {
  RoutedOrigin origin;
  for (const char* target : {"/a?b&a", "/a?a&b"}) origin.on(target, ok(kFresh, target));
  RunningProxy proxy(origin.url(), [](Settings& settings) {
    settings.sites.resize(1);
    settings.sites[0].hosts = {"other.test"};
    settings.sites[0].sort_query = true;
  });
  EXPECT_EQ(proxy.get("/a?b&a").body, "/a?b&a");
  EXPECT_EQ(proxy.get("/a?a&b").body, "/a?a&b");
}

TEST(SitesInAProxy, AFieldInTheKeyKeepsAnswersApart) {
  RoutedOrigin origin;
  origin.on("/a", [](const std::string& request) {
    const bool one = request.find("enant: one") != std::string::npos;
    const bool two = request.find("enant: two") != std::string::npos;
    return ok(kFresh, one ? "one" : two ? "two" : "none");
  });
  const auto change = with_site([](SiteSettings& site) { site.key_headers = {"x-tenant"}; });
  RunningProxy proxy(origin.url(), change);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(proxy.get("/a", "X-Tenant: one\r\n").body, "one");
    EXPECT_EQ(proxy.get("/a", "x-tenant: two\r\n").body, "two");
    EXPECT_EQ(proxy.get("/a").body, "none");
  }
  EXPECT_EQ(origin.count("/a"), 3U);
  proxy.restart();
  const RawResponse from_disk = proxy.get("/a", "X-Tenant: one\r\n");
  EXPECT_TRUE(says(from_disk, "hit")) << from_disk.field("Cache-Status");
  EXPECT_EQ(from_disk.body, "one");
}

TEST(SitesInAProxy, NobodyStoresAnAnswerUnderAValueThatTheOriginDidNotSee) {
  RoutedOrigin origin;
  origin.on("/a", [](const std::string& request) {
    return ok(kFresh, request.find("X-Tenant: two") == std::string::npos ? "for all" : "for two");
  });
  RunningProxy proxy(origin.url(),
                     with_site([](SiteSettings& site) { site.key_headers = {"x-tenant"}; }));
  EXPECT_EQ(proxy.get("/a", "X-Tenant: two\r\nConnection: X-Tenant\r\n").body, "for all");
  EXPECT_EQ(proxy.get("/a", "X-Tenant: two\r\n").body, "for two");
  EXPECT_EQ(proxy.get("/a").body, "for all");
  EXPECT_EQ(origin.count("/a"), 2U);
}

TEST(SitesInAProxy, ACookieInTheKeyKeepsAnswersApart) {
  RoutedOrigin origin;
  origin.on("/a", [](const std::string& request) {
    return ok(kFresh, request.find("lang=de") == std::string::npos ? "hello" : "hallo");
  });
  RunningProxy proxy(origin.url(),
                     with_site([](SiteSettings& site) { site.key_cookies = {"lang"}; }));
  for (int turn = 0; turn < 2; ++turn) {
    const std::string session = std::to_string(turn);
    EXPECT_EQ(proxy.get("/a", "Cookie: sid=" + session + "; lang=de\r\n").body, "hallo");
    EXPECT_EQ(proxy.get("/a", "Cookie: lang=en; sid=" + session + "\r\n").body, "hello");
    EXPECT_EQ(proxy.get("/a", "Cookie: sid=" + session + "\r\n").body, "hello");
  }
  EXPECT_EQ(origin.count("/a"), 3U) << "other cookies do not count";
}

TEST(SitesInAProxy, TheOriginIsAskedWithoutDotSegments) {
  RoutedOrigin origin;
  origin.on("/b?c=/../d", ok(kFresh, "b"));
  origin.on("/x", ok(kFresh, "x"));
  RunningProxy proxy(origin.url(),
                     with_site([](SiteSettings& site) { site.remove_dot_segments = true; }));
  EXPECT_EQ(proxy.get("/a/../../b?c=/../d").body, "b");
  EXPECT_TRUE(says(proxy.get("/b?c=/../d"), "hit"));
  EXPECT_TRUE(says(proxy.get("/a/%2E./b?c=/../d"), "hit"));
  EXPECT_EQ(proxy.send("POST", "/./x", {}, "body").body, "x") << "whatever the method";
  EXPECT_EQ(proxy.get("/a/../x", "Connection: Upgrade\r\nUpgrade: odd\r\n").body, "x");
  ASSERT_EQ(origin.requests().size(), 3U);
  EXPECT_TRUE(origin.requests()[0].starts_with("GET /b?c=/../d HTTP/1.1\r\n"));
  EXPECT_TRUE(origin.requests()[1].starts_with("POST /x HTTP/1.1\r\n"));
  EXPECT_TRUE(origin.requests()[2].starts_with("GET /x HTTP/1.1\r\n"));
  EXPECT_NE(origin.requests()[2].find("\r\nUpgrade: odd\r\n"), std::string::npos);
}

TEST(SitesInAProxy, AnUnsafeRequestInvalidatesTheKeyThatItSelects) {
  RoutedOrigin origin;
  origin.on("/a?a&b", ok(kFresh, "a"));
  origin.on("/a?b&a", ok("", "done"));
  RunningProxy proxy(origin.url(), with_site([](SiteSettings& site) {
                       site.sort_query = true;
                       site.key_headers = {"x-tenant"};
                     }));
  for (const char* tenant : {"X-Tenant: 1\r\n", "X-Tenant: 2\r\n"}) proxy.get("/a?a&b", tenant);
  EXPECT_EQ(proxy.send("POST", "/a?b&a", "X-Tenant: 1\r\n", "body").body, "done");
  EXPECT_TRUE(says(proxy.get("/a?a&b", "X-Tenant: 2\r\n"), "hit"));
  EXPECT_FALSE(says(proxy.get("/a?a&b", "X-Tenant: 1\r\n"), "hit"));
  EXPECT_EQ(origin.count("/a?a&b"), 3U);
}

}  // namespace
}  // namespace secondsight::proxy::test
