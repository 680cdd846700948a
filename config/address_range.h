#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace secondsight {

/// An address of either family: an IPv4 one as the IPv6 address that maps it (::ffff:a.b.c.d), so
/// that both ways of naming it are one. RFC 4291 2.5.5.2.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};
  static IpAddress of_v4(const std::array<std::uint8_t, 4>& bytes) noexcept;
  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

/// All addresses that share their first bits. RFC 4632 3.1.
struct AddressRange {
  IpAddress first;
  unsigned prefix_bits = 128;  // IPv4: 96 and those of the range
  bool contains(const IpAddress& address) const noexcept;
  friend bool operator==(const AddressRange&, const AddressRange&) = default;
};

/// Why a text is no range, as the rest of a sentence: "is not an address".
struct BadAddressRange {
  std::string reason;
};

/// Reads "127.0.0.1", "10.0.0.0/8", "::1", "fd00::/8".
std::variant<AddressRange, BadAddressRange> parse_address_range(std::string_view text);

/// As it is read: "10.0.0.0/8", "::1".
std::string to_string(const AddressRange&);

}  // namespace secondsight
