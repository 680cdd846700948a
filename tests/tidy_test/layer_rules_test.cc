#include "tests/tidy_test/layer_rules.h"

#include <gmock/gmock.h>

#include <gtest/gtest.h>

namespace secondsight::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(IncludeRule, FollowsTheGraph) {
  const Repository headers{{"config/c.h", ""},       {"admission/a.h", ""},    {"cache/k.h", ""},
                           {"cache/policy/p.h", ""}, {"cache/log/l.h", ""},    {"proxy/x.h", ""},
                           {"loadtest/t.h", ""},     {"tests/support/s.h", ""}};
  const std::vector<std::pair<std::string, std::vector<std::string>>> allowed{
      {"config", {"config/c.h"}},
      {"admission", {"config/c.h", "admission/a.h"}},
      {"cache/policy", {"config/c.h", "cache/policy/p.h"}},
      {"cache/log", {"config/c.h", "admission/a.h", "cache/policy/p.h", "cache/log/l.h"}},
      {"cache", {"config/c.h", "admission/a.h", "cache/policy/p.h", "cache/log/l.h", "cache/k.h"}},
      {"proxy",
       {"config/c.h", "admission/a.h", "cache/policy/p.h", "cache/log/l.h", "cache/k.h",
        "proxy/x.h"}},
      {"loadtest",
       {"config/c.h", "admission/a.h", "cache/policy/p.h", "cache/log/l.h", "cache/k.h",
        "loadtest/t.h"}},
      {"tests/cache",
       {"config/c.h", "admission/a.h", "cache/policy/p.h", "cache/log/l.h", "cache/k.h",
        "proxy/x.h", "loadtest/t.h", "tests/support/s.h"}},
  };
  for (const auto& [folder, sees] : allowed) {
    for (const auto& [header, text] : headers) {
      Repository repository = headers;
      repository[folder + "/new.cc"] = "#include <vector>\n\n#include \"" + header + "\"\n";
      const bool may = std::find(sees.begin(), sees.end(), header) != sees.end();
      EXPECT_EQ(includes_against_the_layers(repository).empty(), may) << folder << ' ' << header;
    }
  }
}

TEST(IncludeRule, NamesFilesByTheirPathFromTheRootInQuotes) {
  EXPECT_THAT(includes_against_the_layers({{"config/c.h", ""},
                                           {"config/a.cc", "#include \"c.h\"\n"},
                                           {"config/b.cc", "\n#include <config/c.h>\n"},
                                           {"extra/c.cc", "#include <map>\n"}}),
              ElementsAre("config/a.cc:1: no file c.h from the root",
                          "config/b.cc:2: include \"config/c.h\" in quotes",
                          "extra/c.cc:1: is in no layer"));
}

TEST(BeastRule, KnowsTheRim) {
  const std::string include = "#include <boost/beast/http/parser.hpp>\n";
  EXPECT_THAT(beast_outside_the_rim({{"proxy/session.cc", include},
                                     {"proxy/request_parser.cc", include},
                                     {"proxy/admin.cc", include},
                                     {"loadtest/driver.cc", include},
                                     {"tests/proxy/session_test.cc", include},
                                     {"cache/cache.cc", "#include <boost/url.hpp>\n"}}),
              IsEmpty());
  EXPECT_THAT(beast_outside_the_rim({{"cache/cache.cc", include}, {"proxy/flight.cc", include}}),
              ElementsAre("cache/cache.cc:1: Beast belongs to the rim",
                          "proxy/flight.cc:1: Beast belongs to the rim"));
}

TEST(FolderRule, RefusesStrangersAndDrawers) {
  EXPECT_THAT(unknown_folders({{"README.md", ""}, {"cache/log/a.cc", ""}, {"docs/x/y.md", ""}}),
              IsEmpty());
  EXPECT_THAT(unknown_folders({{"src/a.cc", ""}, {"proxy/util/b.cc", ""}, {"common/c.cc", ""}}),
              ElementsAre("common: is no folder of the layout", "common: name it after its idea",
                          "proxy/util: name it after its idea", "src: is no folder of the layout"));
}

TEST(CMakeRule, WantsEverySourceNamed) {
  EXPECT_THAT(sources_not_in_cmake({{"config/CMakeLists.txt",
                                     "secondsight_library(config\n  a.cc sub/b.cc"
                                     " a.h)  # c.cc\n"},
                                    {"config/a.cc", ""},
                                    {"config/a.h", ""},
                                    {"config/b.h", ""},
                                    {"config/c.cc", ""},
                                    {"config/sub/b.cc", ""},
                                    {"tests/CMakeLists.txt", ""},
                                    {"tests/support/clock.h", ""},
                                    {"tests/config/a_test.cc", ""}}),
              ElementsAre("config/b.h: is not named in config/CMakeLists.txt",
                          "config/c.cc: is not named in config/CMakeLists.txt",
                          "tests/config/a_test.cc: is not named in tests/CMakeLists.txt"));
}

}  // namespace
}  // namespace secondsight::test
