#include "config/address_range.h"

#include <optional>

#include <gtest/gtest.h>

namespace secondsight {
namespace {

std::optional<AddressRange> read(std::string_view text) {
  auto range = parse_address_range(text);
  if (auto* good = std::get_if<AddressRange>(&range)) return *good;
  return std::nullopt;
}

TEST(AddressRange, ContainsWhatSharesItsFirstBits) {
  struct Row {
    const char* range;
    const char* address;
    bool contains;
  };
  for (const Row& row : {
           Row{"127.0.0.1", "127.0.0.1", true},
           Row{"127.0.0.1", "127.0.0.2", false},
           Row{"127.0.0.1", "::ffff:127.0.0.1", true},
           Row{"::ffff:127.0.0.1", "127.0.0.1", true},
           Row{"127.0.0.1", "::127.0.0.1", false},
           Row{"10.0.0.0/8", "10.255.255.255", true},
           Row{"10.0.0.0/8", "11.0.0.0", false},
           Row{"10.0.0.0/8", "::ffff:10.1.2.3", true},
           Row{"10.0.0.0/8", "a00::", false},
           Row{"10.1.2.128/25", "10.1.2.128", true},
           Row{"10.1.2.128/25", "10.1.2.127", false},
           Row{"0.0.0.0/0", "255.1.2.3", true},
           Row{"0.0.0.0/0", "::1", false},
           Row{"::/0", "255.1.2.3", true},
           Row{"::/0", "fe80::1", true},
           Row{"::1", "::1", true},
           Row{"::1", "::2", false},
           Row{"fd00::/8", "fdff:1::9", true},
           Row{"fd00::/8", "fe00::", false},
           Row{"2001:db8:8000::/33", "2001:db8:ffff::", true},
           Row{"2001:db8:8000::/33", "2001:db8:7fff::", false},
       }) {
    const auto range = read(row.range);
    const auto address = read(row.address);
    ASSERT_TRUE(range && address) << row.range << " " << row.address;
    EXPECT_EQ(range->contains(address->first), row.contains) << row.range << " " << row.address;
  }
}

TEST(AddressRange, IsWrittenAsItIsRead) {
  for (const char* text : {"127.0.0.1", "10.0.0.0/8", "0.0.0.0/0", "::1", "fd00::/8", "::/0"}) {
    const auto range = read(text);
    ASSERT_TRUE(range) << text;
    EXPECT_EQ(to_string(*range), text);
  }
}

TEST(AddressRange, RefusesWhatIsNone) {
  struct Row {
    const char* text;
    const char* reason;
  };
  for (const Row& row : {
           Row{"", "is not an address"},
           Row{"localhost", "is not an address"},
           Row{"127.0.0", "is not an address"},
           Row{"127.0.0.1:80", "is not an address"},
           Row{"[::1]", "is not an address"},
           Row{"10.0.0.0/", "must have 0 to 32 behind its /"},
           Row{"10.0.0.0/33", "must have 0 to 32 behind its /"},
           Row{"10.0.0.0/-1", "must have 0 to 32 behind its /"},
           Row{"10.0.0.0/8/8", "must have 0 to 32 behind its /"},
           Row{"::/129", "must have 0 to 128 behind its /"},
           Row{"10.0.0.1/8", "has bits behind its prefix; that range is 10.0.0.0/8"},
           Row{"fd00::1/8", "has bits behind its prefix; that range is fd00::/8"},
       }) {
    const auto range = parse_address_range(row.text);
    ASSERT_TRUE(std::holds_alternative<BadAddressRange>(range)) << row.text;
    EXPECT_EQ(std::get<BadAddressRange>(range).reason, row.reason) << row.text;
  }
}

}  // namespace
}  // namespace secondsight
