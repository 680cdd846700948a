#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "config/settings.h"

namespace secondsight {
namespace {

constexpr std::string_view kGood = R"([proxy]
listen = ["127.0.0.1:8080", "[::1]:8080"]
workers = 2
idle_timeout = "60s"
[origin]
url = "http://127.0.0.1:9000"
max_header = "64KiB"
[cache]
disk = "10GiB"
memory = 1_048_576
[admission]
policy = "second-sighting"
false_positive_rate = 0.01
[admin]
listen = ""
[log]
level = "info"
[[site]]
host = ["a.test", "*.a.test"]
drop_params = ["utm_*", "fbclid"]
key_headers = "X-Tenant"
key_cookies = "lang"
stale_if_error = "2h"
scrub = "1MiB"
[[site]]
host = "*"
keep_params = "page"
sort_query = true
)";

/// SECONDSIGHT_SEED, so that a failure can be repeated, or a new one.
std::uint32_t seed() {
  const char* given = std::getenv("SECONDSIGHT_SEED");
  return given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                          : std::random_device{}();
}

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  std::string mutate(std::string text) {
    for (std::size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) edit(text);
    return text;
  }

 private:
  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>{0, end - 1}(random_);
  }

  void edit(std::string& text) {
    constexpr std::string_view kTelling = "[]{}=\".,'#\n\r\\_-+:0019eEnxu\x80\xff \0";
    const std::size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.insert(at, 1 + below(3), kTelling[below(kTelling.size())]);
        break;
      case 2:
        text.erase(at, 1 + below(12));
        break;
      case 3:
        text.insert(below(text.size()), text.substr(at, 1 + below(40)));
        break;
      default:
        text.resize(at);
        break;
    }
  }

  std::mt19937 random_;
};

TEST(SettingsMutation, AnyTextGivesSettingsOrFaultsWithLines) {
  const std::uint32_t used_seed = seed();
  SCOPED_TRACE("SECONDSIGHT_SEED=" + std::to_string(used_seed));
  RecordProperty("seed", std::to_string(used_seed));
  Mutator mutator{used_seed};
  std::size_t good = 0;
  std::size_t bad = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = mutator.mutate(std::string{kGood});
    const auto parsed = parse_settings(text, "m.toml");
    const auto* faults = std::get_if<std::vector<Fault>>(&parsed);
    if (faults == nullptr) {
      ASSERT_FALSE(std::get<Settings>(parsed).origin.urls.empty()) << text;
      ++good;
      continue;
    }
    ++bad;
    ASSERT_FALSE(faults->empty()) << text;
    unsigned line = 0;
    for (const Fault& fault : *faults) {
      ASSERT_GE(fault.line, line) << text;
      ASSERT_FALSE(fault.message.empty()) << text;
      for (const char c : fault.message) ASSERT_TRUE(c >= 0x20 && c < 0x7f) << text;
      line = fault.line;
    }
  }
  // Both ways are taken, or the mutations are too weak or too strong to say anything.
  EXPECT_GT(good, 100U);
  EXPECT_GT(bad, 1'000U);
}

TEST(SettingsMutation, NoNestingExhaustsTheStack) {
  const auto is_refused = [](const std::string& text) {
    return std::holds_alternative<std::vector<Fault>>(parse_settings(text, "deep.toml"));
  };
  for (const int dots : {100, 20'000, 20'001, 500'000}) {
    std::string dotted;
    for (int i = 0; i < dots; ++i) dotted += "a.";
    EXPECT_TRUE(is_refused(dotted + "a = 1")) << dots;
    EXPECT_TRUE(is_refused("[" + dotted + "a]")) << dots;
  }
  EXPECT_TRUE(is_refused("a = " + std::string(1'000'000, '[')));
}

}  // namespace
}  // namespace secondsight
