#include "cache/key.h"

#include <map>
#include <random>
#include <tuple>

#include <gtest/gtest.h>

#include "cache/policy/vary.h"
#include "tests/cache/policy/heads.h"

namespace secondsight::cache {
namespace {

const admission::FingerprintSeed kSeed{admission::FingerprintSeed::Bytes{}};

CacheKey primary(std::string_view host, std::string_view target, std::string_view scheme = "http") {
  return CacheKey::primary(scheme, host, target, kSeed);
}

TEST(Key, CanonicalTexts) {
  struct Row {
    const char* clause;
    const char *scheme, *host, *target, *text;
  };
  const Row rows[] = {
      {"RFC 9111 2: scheme, host, target", "http", "a.b", "/c?d=e", "http://a.b/c?d=e"},
      {"RFC 3986 6.2.2.1: host in lower case", "http", "A.B", "/C", "http://a.b/C"},
      {"RFC 9110 4.2.3: default port of http", "http", "a:80", "/", "http://a/"},
      {"RFC 9110 4.2.3: default port of https", "https", "a:443", "/", "https://a/"},
      {"RFC 9110 4.2.3: empty port", "http", "a:", "/", "http://a/"},
      {"RFC 9110 4.2.3: another port", "http", "a:443", "/", "http://a:443/"},
      {"RFC 3986 3.2.2: IPv6 literal", "http", "[::80]", "/", "http://[::80]/"},
      {"RFC 3986 3.2.2: IPv6 literal with a port", "http", "[::1]:80", "/", "http://[::1]/"},
      {"RFC 9110 4.2.3: empty path", "http", "a", "", "http://a/"},
      {"RFC 9110 4.2.3: empty path with a query", "http", "a", "?x", "http://a/?x"},
      {"RFC 3986 6.2.2.1: hex digits in upper case", "http", "a", "/%c3%bC", "http://a/%C3%BC"},
      {"RFC 3986 6.2.2.2: unreserved bytes are decoded", "http", "a", "/%7euser/%41?%2D",
       "http://a/~user/A?-"},
      {"RFC 3986 6.2.2.2: reserved bytes stay encoded", "http", "a", "/%2f%3F%26%25",
       "http://a/%2F%3F%26%25"},
      {"RFC 3986 2.1: a broken escape, nothing is touched", "http", "a", "/%7e%zz",
       "http://a/%7e%zz"},
      {"RFC 3986 2.1: an escape cut short", "http", "a", "/%7", "http://a/%7"},
      {"RFC 3986 2.4: decoded once", "http", "a", "/%2541", "http://a/%2541"},
      {"dot segments are the origin's business", "http", "a", "/b/../c/./d//e",
       "http://a/b/../c/./d//e"},
      {"an empty query is not no query", "http", "a", "/b?", "http://a/b?"},
      {"other bytes as received", "http", "a", "/b;c|\"\xC3\xBC", "http://a/b;c|\"\xC3\xBC"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(primary(row.host, row.target, row.scheme).text(), row.text);
  }
}

TEST(Key, EqualTextsHaveEqualFingerprintsUnderOneSeed) {
  EXPECT_EQ(primary("A", "/%7e").fingerprint(), primary("a:80", "/~").fingerprint());
  EXPECT_EQ(primary("a", "/").fingerprint(), kSeed.fingerprint_of("http://a/"));
  EXPECT_NE(primary("a", "/").fingerprint(), primary("a", "/", "https").fingerprint());
  const admission::FingerprintSeed other{admission::FingerprintSeed::Bytes{std::byte{1}}};
  EXPECT_NE(CacheKey::primary("http", "a", "/", other).fingerprint(),
            primary("a", "/").fingerprint());
}

TEST(Key, ReadBackFromStorage) {
  const CacheKey key = primary("a", "/b");
  const CacheKey stored = CacheKey::from_stored(key.text(), key.fingerprint());
  EXPECT_EQ(stored.text(), key.text());
  EXPECT_EQ(stored.fingerprint(), key.fingerprint());
}

TEST(Key, Variants) {
  const CacheKey key = primary("a", "/b");
  const auto variant = [&](const policy::HeadLines& request) {
    return key.variant({"foo"}, WallTime{}, policy::head(request), kSeed);
  };
  EXPECT_EQ(variant({{"Foo", "1"}}).text(), "http://a/b\n3:foo=1:1");
  EXPECT_EQ(variant({}).text(), "http://a/b\n3:foo!");
  EXPECT_EQ(variant({{"Foo", "1"}}).fingerprint(),
            variant({{"foo", "1"}, {"x", "2"}}).fingerprint());
  EXPECT_NE(variant({{"Foo", "1"}}).fingerprint(), variant({{"Foo", "2"}}).fingerprint());
  EXPECT_NE(key.variant({}, WallTime{}, {}, kSeed).text(), key.text());
  EXPECT_NE(variant({{"Foo", "1"}}).text(), primary("a", "/b\n3:foo=1:1").text());
  const WallTime epoch{std::chrono::milliseconds{1500}};
  EXPECT_EQ(key.variant({"foo"}, epoch, {}, kSeed).text(), "http://a/b\n@1500\n3:foo!")
      << "what was stored before an invalidation has another key";
}

/// Bytes that mean something somewhere in a key, thrown together: no two different requests may
/// share a text, wherever a byte stands.
TEST(Key, NoTwoRequestsShareAText) {
  constexpr unsigned kRandomSeed = 20240602;
  SCOPED_TRACE(kRandomSeed);
  std::mt19937 random(kRandomSeed);
  constexpr std::string_view kBytes = "/?%#:\n025fz ";
  const auto piece = [&](std::size_t size_max) {
    std::string text;
    for (auto size = random() % (size_max + 1); size > 0; --size)
      text += kBytes[random() % kBytes.size()];
    return text;
  };
  using Request = std::tuple<std::string, std::string, std::string>;
  std::map<std::string, Request> seen;
  for (int round = 0; round < 50000; ++round) {
    // What is equal by rule is made equal here in a plainer way than the code's.
    const std::string host = "h" + piece(2);
    const std::string target = "/" + piece(5);
    std::string canonical_target = target;
    bool is_well_formed = true;
    for (std::size_t i = target.find('%'); i != std::string::npos; i = target.find('%', i + 3))
      is_well_formed = is_well_formed && i + 2 < target.size() &&
                       std::isxdigit(static_cast<unsigned char>(target[i + 1])) &&
                       std::isxdigit(static_cast<unsigned char>(target[i + 2]));
    if (is_well_formed) {
      canonical_target.clear();
      for (std::size_t i = 0; i < target.size(); ++i) {
        if (target[i] != '%') {
          canonical_target += target[i];
          continue;
        }
        const auto byte = static_cast<char>(std::stoi(target.substr(i + 1, 2), nullptr, 16));
        const bool is_unreserved = std::isalnum(static_cast<unsigned char>(byte)) || byte == '_';
        canonical_target += is_unreserved ? std::string(1, byte) : std::string("escaped ") + byte;
        i += 2;
      }
    }
    std::string canonical_host = host;
    if (const auto colon = host.rfind(':');
        colon != std::string::npos && (colon + 1 == host.size() || host.substr(colon) == ":80"))
      canonical_host.resize(colon);
    const std::string vary_value = piece(2);
    const bool is_variant = random() % 2 == 0;
    const CacheKey key = primary(host, target);
    const CacheKey chosen =
        is_variant ? key.variant({"a"}, WallTime{}, policy::head({{"a", vary_value}}), kSeed) : key;
    const Request request{
        canonical_host, canonical_target,
        is_variant ? policy::vary_text({"a"}, policy::head({{"a", vary_value}})) : "none"};
    const auto [place, is_new] = seen.try_emplace(chosen.text(), request);
    if (!is_new) {
      ASSERT_EQ(place->second, request) << chosen.text();
    }
  }
  EXPECT_GT(seen.size(), 10000u);
}

}  // namespace
}  // namespace secondsight::cache
