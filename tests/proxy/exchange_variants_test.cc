// Resources that vary: which variant answers, and when the origin says that another's will do.
#include <string>

#include <gtest/gtest.h>

#include "cache/variants.h"
#include "tests/proxy/running_proxy.h"

namespace secondsight::proxy::test {
namespace {

using namespace literals;
using std::chrono::seconds;

bool says(const RawResponse& response, std::string_view word) {
  return response.field("Cache-Status").find(word) != std::string::npos;
}

std::string value_of(const std::string& request, std::string_view name) {
  const auto at = request.find("\r\n" + std::string(name) + ": ");
  if (at == std::string::npos) return "";
  const auto first = at + name.size() + 4;
  return request.substr(first, request.find("\r\n", first) - first);
}

/// Serves "en" or "de" by the first two letters of Accept-Language, "en" to all others.
std::string in_two_languages(const std::string& request) {
  const std::string wanted = value_of(request, "Accept-Language").substr(0, 2);
  const std::string language = wanted == "de" ? "de" : "en";
  const std::string fields = "Cache-Control: max-age=60\r\nVary: Accept-Language\r\nETag: \"" +
                             language + "\"\r\nContent-Language: " + language + "\r\n";
  if (value_of(request, "If-None-Match").find("\"" + language + "\"") != std::string::npos)
    return "HTTP/1.1 304 Not Modified\r\n" + fields + "\r\n";
  return ok(fields, "in " + language);
}

TEST(ExchangeVariants, TheOriginChoosesAmongWhatIsStored) {
  for (const bool in_memory : {true, false}) {
    RoutedOrigin origin;
    origin.on("/a", in_two_languages);
    RunningProxy proxy(origin.url(), [&](Settings& s) {
      s.admission.policy = PolicyName::Always;
      if (!in_memory) s.cache.memory_bytes = 0;
    });
    const auto get = [&](const std::string& language) {
      const RawResponse response = proxy.get("/a", "Accept-Language: " + language + "\r\n");
      proxy.drain();
      return response;
    };
    EXPECT_EQ(get("en").body, "in en");
    EXPECT_TRUE(says(get("de"), "fwd=vary-miss; ttl=60; stored"));
    const RawResponse third = get("it");
    EXPECT_EQ(value_of(origin.requests().back(), "If-None-Match"), "\"de\", \"en\"");
    EXPECT_EQ(third.status, 200);
    EXPECT_EQ(third.body, "in en") << "the 304 said so";
    EXPECT_TRUE(says(third, "fwd=vary-miss; fwd-status=304")) << third.field("Cache-Status");
    EXPECT_TRUE(says(get("it"), "hit")) << "and is a variant of its own from now on";
    EXPECT_EQ(origin.count("/a"), 3U);
    EXPECT_EQ(get("en").body, "in en");
    EXPECT_EQ(get("de").body, "in de");
    EXPECT_EQ(origin.count("/a"), 3U);
  }
}

TEST(ExchangeVariants, WhoConditionsARequestGetsItsOwnAnswer) {
  RoutedOrigin origin;
  origin.on("/a", in_two_languages);
  RunningProxy proxy(origin.url());
  proxy.get("/a", "Accept-Language: en\r\n");
  const RawResponse response = proxy.get("/a", "Accept-Language: de\r\nIf-None-Match: \"de\"\r\n");
  EXPECT_EQ(response.status, 304);
  EXPECT_EQ(value_of(origin.requests().back(), "If-None-Match"), "\"de\"");
}

TEST(ExchangeVariants, ATagThatNobodyKnowsIsFetchedAgain) {
  RoutedOrigin origin;
  origin.on("/a", [](const std::string& request) -> std::string {
    if (request.find("If-None-Match") != std::string::npos)
      return "HTTP/1.1 304 Not Modified\r\nETag: \"unheard-of\"\r\n\r\n";
    return in_two_languages(request);
  });
  RunningProxy proxy(origin.url());
  proxy.get("/a", "Accept-Language: en\r\n");
  const RawResponse response = proxy.get("/a", "Accept-Language: de\r\n");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "in de");
  EXPECT_EQ(origin.count("/a"), 3U);
}

TEST(ExchangeVariants, TheVariantInThePreferredLanguageAnswers) {
  RoutedOrigin origin;
  origin.on("/a", in_two_languages);
  RunningProxy proxy(origin.url());
  proxy.get("/a", "Accept-Language: de, en;q=0.5\r\n");
  EXPECT_EQ(proxy.get("/a", "Accept-Language: fr;q=0.5, DE\r\n").body, "in de");
  EXPECT_EQ(origin.count("/a"), 1U);
  proxy.get("/a", "Accept-Language: fr, de;q=0.5\r\n");
  EXPECT_EQ(origin.count("/a"), 2U) << "it prefers what is not known";
}

TEST(ExchangeVariants, OneResourceCannotFillTheCacheWithVariants) {
  RoutedOrigin origin;
  origin.on("/a", [](const std::string& request) {
    return ok("Cache-Control: max-age=60\r\nVary: X-User\r\n", value_of(request, "X-User"));
  });
  RunningProxy proxy(origin.url());
  const auto get = [&](std::size_t user) {
    const RawResponse response = proxy.get("/a", "X-User: u" + std::to_string(user) + "\r\n");
    EXPECT_EQ(response.body, "u" + std::to_string(user));
    return response;
  };
  for (std::size_t user = 0; user <= cache::kVariantsMax; ++user) get(user);
  EXPECT_TRUE(says(get(1), "hit"));
  EXPECT_TRUE(says(get(cache::kVariantsMax), "hit"));
  EXPECT_TRUE(says(get(0), "vary-miss")) << "the oldest";
}

TEST(ExchangeVariants, KnownVariantsOutliveARestart) {
  RoutedOrigin origin;
  origin.on("/a", in_two_languages);
  RunningProxy proxy(origin.url(), [](Settings& s) { s.admission.policy = PolicyName::Always; });
  proxy.get("/a", "Accept-Language: en\r\n");
  proxy.get("/a", "Accept-Language: de\r\n");
  proxy.drain();
  proxy.restart();
  EXPECT_TRUE(says(proxy.get("/a", "Accept-Language: en\r\n"), "hit"));
  EXPECT_EQ(proxy.get("/a", "Accept-Language: it\r\n").body, "in en");
  EXPECT_EQ(value_of(origin.requests().back(), "If-None-Match"), "\"de\", \"en\"");
  proxy.send("DELETE", "/a");
  EXPECT_EQ(origin.count("/a"), 4U);
  proxy.get("/a", "Accept-Language: en\r\n");
  EXPECT_EQ(value_of(origin.requests().back(), "If-None-Match"), "") << "what was invalidated";
}

}  // namespace
}  // namespace secondsight::proxy::test
