#include "proxy/settings_report.h"

#include <gmock/gmock.h>

#include <gtest/gtest.h>

namespace secondsight::proxy {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(SettingsReport, SaysWhatTheFilterCosts) {
  Settings settings;
  settings.origin.urls = {{false, "127.0.0.1", 9000, "http://127.0.0.1:9000"}};
  settings.admission.expected_keys = 50'000'000;
  const std::string report = describe(settings);
  EXPECT_THAT(report, HasSubstr("132 MiB for 50000000 keys"));
  EXPECT_THAT(report, HasSubstr("\nfilter     132 MiB for"));
  EXPECT_THAT(report, HasSubstr("\n           new keys taken for known ones: 0.91 % on average"));
  EXPECT_THAT(report, HasSubstr("at 10 times the planned keys a generation lasts 2h24m"));
  EXPECT_THAT(report, HasSubstr("\nwarning    the cache has room for 220 B of each key"));
  EXPECT_THAT(report, HasSubstr("http://127.0.0.1:9000"));
  EXPECT_THAT(report, HasSubstr("10 GiB in /var/cache/secondsight, segments of 160 MiB"));
}

TEST(SettingsReport, SaysHowLongAScrubTakes) {
  Settings settings;
  EXPECT_THAT(describe(settings), HasSubstr("scrub      off\n"));
  EXPECT_THAT(describe(settings), Not(HasSubstr("warning")));
  settings.cache.scrub_bytes = 20U << 20;
  EXPECT_THAT(describe(settings),
              HasSubstr("scrub      20 MiB a second: a full disk takes 8m32s\n"));
  settings.cache.disk_bytes = 1U << 20;
  EXPECT_THAT(describe(settings), HasSubstr("a full disk takes 1s\n"));
  settings.cache.disk_bytes = 0;
  EXPECT_THAT(describe(settings), HasSubstr("scrub      off\n"));
}

TEST(SettingsReport, SaysTheRulesOfSitesInWords) {
  Settings settings;
  settings.cache.stale_if_error = std::chrono::minutes{90};
  settings.sites.resize(3);
  settings.sites[0].hosts = {"a.test", "*.a.test"};
  settings.sites[0].drop_params = {"utm_*", "fbclid"};
  settings.sites[0].sort_query = true;
  settings.sites[0].drop_empty_query = true;
  settings.sites[1].hosts = {"b.test"};
  settings.sites[1].keep_params = {"id", "page"};
  settings.sites[1].key_headers = {"x-tenant"};
  settings.sites[1].key_cookies = {"lang", "city"};
  settings.sites[1].remove_dot_segments = true;
  settings.sites[2].hosts = {"*"};
  settings.sites[2].stale_if_error = std::chrono::seconds{0};
  const std::string report = describe(settings);
  EXPECT_THAT(report,
              HasSubstr("stale      for a failing origin: at most 1h30m past its freshness\n"));
  EXPECT_THAT(report, HasSubstr("site       a.test, *.a.test\n"
                                "           of the query all but: utm_*, fbclid\n"
                                "           parameters in the order of their names\n"
                                "           an empty query is none\n"
                                "site       b.test\n"
                                "           of the query only: id, page\n"
                                "           one object for each value of the fields: x-tenant\n"
                                "           one object for each value of the cookies: lang, city\n"
                                "           dot segments are removed, also from what the origin is "
                                "asked\n"
                                "site       *\n"
                                "           the URL as it is\n"
                                "           stale for a failing origin: only as long as the "
                                "response or the request allows\n"));
}

TEST(SettingsReport, OnlyWhatRemembersHasAMemoryToJudge) {
  AdmissionSettings admission;
  admission.expected_keys = 1'000'000'000'000;
  for (const PolicyName policy : kPolicyNames) {
    admission.policy = policy;
    EXPECT_EQ(find_bad_filter_setting(admission).has_value(), remembers_sightings(policy))
        << to_string(policy);
  }
}

TEST(SettingsReport, APolicyIsShownWithItsOwnSettings) {
  Settings settings;
  const auto line = [&](PolicyName policy) {
    settings.admission.policy = policy;
    const std::string text = describe(settings);
    const auto begin = text.find("policy ");
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(line(PolicyName::Probability),
            "policy     probability: each sighting is admitted with chance 0.1");
  EXPECT_EQ(line(PolicyName::SizeProbability),
            "policy     size-probability: a body of 64 KiB is admitted with chance 0.37, one of "
            "half of that with 0.61, twice that 0.14");
  EXPECT_EQ(line(PolicyName::NthSighting),
            "policy     nth-sighting: at sighting 3, by as many filters less one");
  EXPECT_EQ(line(PolicyName::Exact), "policy     exact");
}

TEST(SettingsReport, NamesTheSettingThatCannotBe) {
  struct Row {
    std::uint64_t keys;
    double rate;
    std::chrono::milliseconds window;
    std::string_view key;
  };
  for (const Row& row :
       {Row{1'000'000'000'000, 0.01, std::chrono::hours{24}, "admission.expected_keys"},
        Row{1'000'000, 0.4, std::chrono::hours{24}, "admission.false_positive_rate"},
        Row{1'000'000, 1e-9, std::chrono::hours{24}, "admission.false_positive_rate"},
        Row{1'000'000, 0.01, std::chrono::hours{24 * 400 * 10}, "admission.window"},
        Row{1'000'000, 0.01, std::chrono::seconds{1}, "admission.window"}}) {
    AdmissionSettings admission;
    admission.expected_keys = row.keys;
    admission.false_positive_rate = row.rate;
    admission.window = row.window;
    const auto bad = find_bad_filter_setting(admission);
    ASSERT_TRUE(bad.has_value()) << row.key;
    EXPECT_EQ(bad->key, row.key);
    EXPECT_THAT(bad->reason, HasSubstr("[admission] "));
  }
}

}  // namespace
}  // namespace secondsight::proxy
