#include "proxy/purge_request.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace secondsight::proxy {
namespace {

using cache::Purge;
using cache::PurgeKind;
using cache::PurgeScope;

const admission::FingerprintSeed kSeed{admission::FingerprintSeed::Bytes{}};

Settings settings_with_a_site() {
  Settings settings;
  SiteSettings site;
  site.hosts = {"site.test"};
  site.sort_query = true;
  site.drop_params = {"utm_*"};
  site.key_headers = {"x-tenant"};
  settings.sites = {site};
  return settings;
}

const cache::Sites& sites() {
  static const Settings kSettings = settings_with_a_site();
  static const cache::Sites kSites(kSettings, kSeed);
  return kSites;
}

/// "url hard http://a/; tag soft x", or the faults, one a line.
std::string read(std::string_view json) {
  const auto outcome = read_purge_request(json, sites());
  std::string text;
  if (const auto* faults = std::get_if<PurgeFaults>(&outcome)) {
    for (const std::string& fault : *faults) text += fault + "\n";
    return text;
  }
  for (const Purge& purge : std::get<PurgeRequest>(outcome).purges) {
    text.append(text.empty() ? "" : "; ").append(to_string(purge.scope)).append(" ");
    text.append(to_string(purge.kind)).append(" ").append(purge.text);
  }
  return text;
}

struct Row {
  std::string json;
  std::string expected;
};

TEST(PurgeRequest, NamesWhatKeysAreCalled) {
  for (const Row& row : {
           Row{R"({"url": "http://a.test/b?c=d"})", "url hard http://a.test/b?c=d"},
           Row{R"({"url": "HTTP://A.Test:80"})", "url hard http://a.test/"},
           Row{R"({"url": "https://a.test:443/%61%2f"})", "url hard http://a.test/a%2F"},
           Row{R"({"url": "http://a.test:8080?x"})", "url hard http://a.test:8080/?x"},
           Row{R"({"url": "http://[::1]/"})", "url hard http://[::1]/"},
           Row{R"({"url": "http://site.test/b?z=1&utm_x=2&a=3"})",
               "url hard http://site.test/b?a=3&z=1"},
           Row{R"({"urls": ["http://a/1", "http://a/2"]})",
               "url hard http://a/1; url hard http://a/2"},
           Row{R"({"prefix": "http://a.test"})", "prefix hard http://a.test/"},
           Row{R"({"prefix": "http://a.test/img"})", "prefix hard http://a.test/img"},
           Row{R"({"prefix": "http://a.test/b?c="})", "prefix hard http://a.test/b?c="},
           Row{R"({"prefixes": ["http://a/1"]})", "prefix hard http://a/1"},
           Row{R"({"tag": "x"})", "tag hard x"},
           Row{R"({"tags": ["a b", "ä", "a,b"]})", "tag hard a b; tag hard ä; tag hard a,b"},
           Row{R"({"everything": true})", "everything hard "},
           Row{R"({"soft": false, "everything": true})", "everything hard "},
           Row{R"({"everything": true, "soft": true})", "everything soft "},
           Row{R"({"tag": "x", "url": "http://a/", "soft": true})",
               "tag soft x; url soft http://a/"},
       })
    EXPECT_EQ(read(row.json), row.expected) << row.json;
}

TEST(PurgeRequest, EveryFaultIsNamed) {
  const std::string known =
      R"(; known are "url", "urls", "prefix", "prefixes", "tag", "tags", "everything" and "soft")"
      "\n";
  for (const Row& row : {
           Row{"[]", "must be an object, such as {\"tag\": \"x\"}, not a list\n"},
           Row{"{}", "names nothing to purge: \"url\", \"prefix\", \"tag\" or \"everything\"\n"},
           Row{R"({"soft": true})",
               "names nothing to purge: \"url\", \"prefix\", \"tag\" or \"everything\"\n"},
           Row{R"({"ulr": "http://a/"})", "unknown member \"ulr\"" + known},
           Row{R"({"url": 1})", "\"url\" must be a text, not a number\n"},
           Row{R"({"url": ["http://a/"]})", "\"url\" must be a text, not a list\n"},
           Row{R"({"urls": "http://a/"})", "\"urls\" must be a list of texts, not a text\n"},
           Row{R"({"tags": []})", "\"tags\" must not be empty\n"},
           Row{R"({"tags": ["a", null, {}]})",
               "\"tags\" must list texts only, not null\n"
               "\"tags\" must list texts only, not an object\n"},
           Row{R"({"tag": ""})", "\"tag\" must not be empty\n"},
           Row{R"({"tag": " a"})", "\"tag\" has blanks around \" a\", as no tag has\n"},
           Row{R"({"tag": "a\nb"})", "\"tag\" has control characters in \"a\\nb\"\n"},
           Row{R"({"everything": false})",
               "\"everything\" can only be true; leave it out otherwise\n"},
           Row{R"({"everything": 1})", "\"everything\" can only be true; leave it out otherwise\n"},
           Row{R"({"everything": true, "soft": "yes"})",
               "\"soft\" must be true or false, not a text\n"},
           Row{R"({"url": "ftp://a/"})",
               "\"url\": \"ftp://a/\" is not an http URL, such as \"http://example.com/path\"\n"},
           Row{R"({"url": "/path"})",
               "\"url\": \"/path\" is not an http URL, such as \"http://example.com/path\"\n"},
           Row{R"({"url": "http:///path"})", "\"url\": \"http:///path\" has no usable host\n"},
           Row{R"({"url": "http://u@a/"})", "\"url\": \"http://u@a/\" has no usable host\n"},
           Row{R"({"url": "http://a/#b"})",
               "\"url\": \"http://a/#b\" has a fragment, which no request has\n"},
           Row{R"({"prefix": "http://a/ b"})",
               "\"prefix\": \"http://a/ b\" holds bytes that no URL has; spell blanks as %20, and "
               "others likewise\n"},
           Row{R"({"url": "http://a/ä"})",
               "\"url\": \"http://a/\\xc3\\xa4\" holds bytes that no URL has; spell blanks as %20, and "
               "others likewise\n"},
           Row{R"({"url": "http://a/1", "url": "http://a/2"})",
               "\"url\" stands there more than once; \"urls\", \"prefixes\" and \"tags\" list "
               "several\n"},
           Row{R"({"soft": true, "everything": true, "soft": false})",
               "\"soft\" stands there more than once; \"urls\", \"prefixes\" and \"tags\" list "
               "several\n"},
           Row{R"({"url": "x", "tags": [""], "a": 1})",
               "\"url\": \"x\" is not an http URL, such as \"http://example.com/path\"\n"
               "\"tags\" must not be empty\nunknown member \"a\"" +
                   known},
       })
    EXPECT_EQ(read(row.json), row.expected) << row.json;
  EXPECT_TRUE(read("{").starts_with("not JSON: "));
  EXPECT_TRUE(read(R"({"tag": "x"} y)").starts_with("not JSON: "));
  const std::string long_tag(1'025, 'x');
  EXPECT_EQ(read("{\"tag\": \"" + long_tag + "\"}"),
            "\"tag\" has more than 1024 bytes: \"" + std::string(40, 'x') + "\"...\n");
}

TEST(PurgeRequest, AUrlIsMeantInAllThatFieldsMakeOfIt) {
  const auto purge = purge_of_url("site.test", "/b?z=1&a=3", PurgeKind::Hard, sites());
  ASSERT_TRUE(purge);
  EXPECT_EQ(purge->text, "http://site.test/b?a=3&z=1");
  cache::policy::FieldBlock fields;
  fields.add("X-Tenant", "1");
  const std::string key = sites().primary_key("site.test", "/b?a=3&z=1", fields).text();
  EXPECT_TRUE(key.starts_with(purge->text + "\n")) << key;
}

/// What a key's first line may have, and no more, whatever makes it longer than the URL.
TEST(PurgeRequest, AUrlThatIsTooLongIsSaid) {
  constexpr std::size_t kMost = cache::kPurgeTextBytesMax;
  const std::string most = "/" + std::string(kMost - std::string("http://a/").size(), 'x');
  EXPECT_TRUE(purge_of_url("a", most, PurgeKind::Hard, sites()));
  EXPECT_FALSE(purge_of_url("a", most + "x", PurgeKind::Hard, sites()));
  EXPECT_FALSE(purge_of_url(std::string(kMost / 2, '!'), "/", PurgeKind::Hard, sites()));
  for (const char* member : {"url", "prefix"}) {
    const std::string json = std::string("{\"") + member + "\": \"http://a" + most;
    EXPECT_EQ(read(json + "\"}"), std::string(member) + " hard http://a" + most);
    EXPECT_TRUE(read(json + "x\"}")
                    .ends_with("has more than 32768 bytes: \"http://a/" + std::string(31, 'x') +
                               "\"...\n"));
  }
}

}  // namespace
}  // namespace secondsight::proxy
