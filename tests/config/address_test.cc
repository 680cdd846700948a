#include "config/address.h"

#include <gtest/gtest.h>

namespace secondsight {
namespace {

TEST(ListenAddress, ReadsNumericAddressesInTheirShortestForm) {
  const std::vector<std::pair<std::string_view, ListenAddress>> cases{
      {"127.0.0.1:8080", {"127.0.0.1", 8080}},
      {"0.0.0.0:0", {"0.0.0.0", 0}},
      {"255.255.255.255:65535", {"255.255.255.255", 65535}},
      {"[::1]:80", {"::1", 80}},
      {"[::]:80", {"::", 80}},
      {"[0:0:0:0:0:0:0:1]:80", {"::1", 80}},
      {"[2001:DB8::1]:443", {"2001:db8::1", 443}},
  };
  for (const auto& [text, address] : cases) {
    const auto parsed = parse_listen_address(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(parsed->host, address.host) << text;
    EXPECT_EQ(parsed->port, address.port) << text;
    EXPECT_EQ(parse_listen_address(to_string(*parsed)), address) << text;
  }
}

TEST(ListenAddress, RefusesAnythingElse) {
  for (const std::string_view text : {"",
                                      ":",
                                      ":80",
                                      "80",
                                      "127.0.0.1",
                                      "127.0.0.1:",
                                      "127.0.0.1:65536",
                                      "127.0.0.1:-1",
                                      "127.0.0.1:+1",
                                      "127.0.0.1: 80",
                                      " 127.0.0.1:80",
                                      "127.0.0.1:80 ",
                                      "127.0.0.1:0x50",
                                      "127.0.0:80",
                                      "127.0.0.256:80",
                                      "127.0.0.1.1:80",
                                      "::1:80",
                                      "[::1]",
                                      "[::1:80",
                                      "::1]:80",
                                      "[]:80",
                                      "[:80",
                                      "[127.0.0.1]:80",
                                      "[fe80::1%eth0]:80",
                                      "localhost:80",
                                      "*:80",
                                      "http://127.0.0.1:80"}) {
    EXPECT_FALSE(parse_listen_address(text).has_value()) << '"' << text << '"';
  }
}

TEST(OriginUrl, ReadsSchemeHostAndPort) {
  const std::vector<std::pair<std::string_view, OriginUrl>> cases{
      {"http://127.0.0.1:9000", {false, "127.0.0.1", 9000, "http://127.0.0.1:9000"}},
      {"http://origin", {false, "origin", 80, "http://origin"}},
      {"https://origin.example/", {true, "origin.example", 443, "https://origin.example"}},
      {"HTTPS://Origin.Example:8443",
       {true, "origin.example", 8443, "HTTPS://Origin.Example:8443"}},
      {"http://[::1]:9000", {false, "::1", 9000, "http://[::1]:9000"}},
      {"http://my_host-1.local", {false, "my_host-1.local", 80, "http://my_host-1.local"}},
  };
  for (const auto& [text, url] : cases) {
    const auto parsed = parse_origin_url(text);
    ASSERT_TRUE(std::holds_alternative<OriginUrl>(parsed)) << text;
    EXPECT_EQ(std::get<OriginUrl>(parsed), url) << text;
  }
}

TEST(OriginUrl, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
      {"", "is not a URL"},
      {"127.0.0.1:9000", "is not a URL"},
      {"origin.example", "is not a URL"},
      {"http:// origin", "is not a URL"},
      {"http://[::1", "is not a URL"},
      {"ftp://origin", "has the scheme \"ftp\""},
      {"httpx://origin", "has the scheme \"httpx\""},
      {"origin:9000", "has the scheme \"origin\""},
      {"http://me@origin", "has a user name"},
      {"http://me:secret@origin", "has a user name"},
      {"http://origin/path", "has a path"},
      {"http://origin//", "has a path"},
      {"http://origin?q", "has a query"},
      {"http://origin/#top", "has a fragment"},
      {"http://", "has no usable host"},
      {"http:///", "has no usable host"},
      {"http:", "has no usable host"},
      {"http://:80", "has no usable host"},
      {"http://a%20b", "has no usable host"},
      {"http://a$b", "has no usable host"},
      {"http://[v1.x]", "has no usable host"},
      {"http://origin:0", "has a port outside 1 to 65535"},
      {"http://origin:65536", "has a port outside 1 to 65535"},
      {"http://origin:", "has a port outside 1 to 65535"},
  };
  for (const auto& [text, reason] : cases) {
    const auto parsed = parse_origin_url(text);
    ASSERT_TRUE(std::holds_alternative<BadOriginUrl>(parsed)) << text;
    EXPECT_EQ(std::get<BadOriginUrl>(parsed).reason, reason) << text;
  }
}

}  // namespace
}  // namespace secondsight
