#include "admission/filter_report.h"

#include <gmock/gmock.h>

#include <gtest/gtest.h>

namespace secondsight::admission {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

AdmissionSettings settings(std::uint64_t keys, double rate = 0.01,
                           std::chrono::milliseconds window = 24h) {
  AdmissionSettings admission;
  admission.expected_keys = keys;
  admission.false_positive_rate = rate;
  admission.window = window;
  return admission;
}

TEST(FilterReport, SaysMemoryRatesAndWhatOverloadDoes) {
  EXPECT_EQ(
      describe_filter(settings(50'000'000), "> "),
      "> 132 MiB for 50000000 keys in each of two generations: 2.77 bytes per key, 11.07 bits per "
      "key and generation\n"
      "  new keys taken for known ones: 0.91 % on average over the window, 1.54 % at the worst "
      "instant, just before a rotation\n"
      "  a generation ends after 24h or 50000000 keys, whichever comes first; a sighting is "
      "remembered for one to two generations\n"
      "  at 2 times the planned keys a generation lasts 12h, and the rate stays within 0.97 % "
      "(1.66 %); rotation by age alone would reach 15.2 %\n"
      "  at 10 times the planned keys a generation lasts 2h24m, and the rate stays within 0.97 % "
      "(1.66 %); rotation by age alone would reach 99.8 %\n");
}

TEST(FilterReport, TellsWhatASmallFilterHasToSpare) {
  EXPECT_THAT(describe_filter(settings(1), ""),
              AllOf(HasSubstr("2 MiB for 1 key in each"), HasSubstr("after 24h or 1 key, which"),
                    HasSubstr(": less than 0.000001 % on average"),
                    HasSubstr("to spare: these 2 MiB (whole huge pages of 2 MiB) hold 766237 keys "
                              "at a rate of 1.00 %; ")));
  EXPECT_THAT(describe_filter(settings(766'237), ""), Not(HasSubstr("to spare")));
}

TEST(FilterReport, TellsOfTheMultiplesAskedFor) {
  const std::string text = describe_filter(settings(1'000'000, 0.01, 7s), "", {{3.0}});
  EXPECT_THAT(text, AllOf(HasSubstr("at 3 times the planned keys a generation lasts 2s333ms"),
                          Not(HasSubstr("at 10 times"))));
}

TEST(FilterReport, SummaryIsOneLine) {
  EXPECT_EQ(summarise_filter(settings(1'000'000, 0.0001)),
            "8 MiB for 1000000 keys in each of two generations; new keys taken for known ones: "
            "0.0032 % on average over the window, 0.0055 % at the worst instant");
}

TEST(FilterReport, WindowsThatCannotBeKeptAreExplained) {
  EXPECT_THAT(explain_bad_window(1279ms).value_or(""),
              HasSubstr("window = 1s279ms is shorter than the 1s280ms"));
  EXPECT_FALSE(explain_bad_window(1280ms).has_value());
  EXPECT_FALSE(explain_bad_window(24h * 365 * 10).has_value());
  EXPECT_THAT(explain_bad_window(24h * 365 * 10 + 1ms).value_or(""), HasSubstr("ten years"));
  EXPECT_TRUE(explain_bad_window(0ms).has_value());
}

constexpr FilterSurroundings kRoomy{
    .machine_bytes = 16_GiB, .memory_bytes = 256_MiB, .disk_bytes = 1024_GiB};

TEST(FilterReport, SensibleSettingsDrawNoWarning) {
  EXPECT_THAT(warn_of_filter({}, kRoomy), IsEmpty());
  EXPECT_THAT(warn_of_filter(settings(50'000'000), kRoomy), IsEmpty());
  // The least that a filter can take is no waste, whatever it is asked for.
  EXPECT_THAT(warn_of_filter(settings(10'000, 0.0001),
                             {.machine_bytes = 1_GiB, .memory_bytes = 1_MiB, .disk_bytes = 0}),
              IsEmpty());
}

TEST(FilterReport, WarnsOfWhatIsHardlyMeant) {
  EXPECT_THAT(
      warn_of_filter(settings(50'000'000),
                     {.machine_bytes = 1_GiB, .memory_bytes = 900_MiB, .disk_bytes = 100_GiB}),
      ElementsAre(HasSubstr("the filter (132 MiB) and cache.memory (900 MiB) together are more "
                            "than the 1 GiB")));
  EXPECT_THAT(
      warn_of_filter(settings(50'000'000),
                     {.machine_bytes = 16_GiB, .memory_bytes = 256_MiB, .disk_bytes = 10_GiB}),
      ElementsAre(HasSubstr("the cache has room for 220 B of each key")));
  EXPECT_THAT(warn_of_filter(settings(50'000'000, 0.0001), kRoomy),
              ElementsAre(HasSubstr("false_positive_rate = 0.0001 costs 326 MiB, where 0.01 needs "
                                    "132 MiB")));
  EXPECT_THAT(warn_of_filter(settings(1'000'000, 0.01, 10s), kRoomy),
              ElementsAre(HasSubstr("window = 10s: what is asked for again")));
}

}  // namespace
}  // namespace secondsight::admission
