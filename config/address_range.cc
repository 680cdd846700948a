#include "config/address_range.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <boost/url/ipv4_address.hpp>
#include <boost/url/ipv6_address.hpp>

namespace secondsight {
namespace {

namespace urls = boost::urls;

constexpr unsigned kBits = 128;
constexpr unsigned kMappedBits = 96;  // before an IPv4 address

/// The bits of byte `i` that belong to a prefix of that length.
std::uint8_t mask_of(std::size_t i, unsigned prefix_bits) noexcept {
  const unsigned before = static_cast<unsigned>(i) * 8;
  const unsigned bits = std::clamp(prefix_bits, before, before + 8) - before;
  return static_cast<std::uint8_t>(0xFF00U >> bits);
}

bool is_v4(const AddressRange& range) noexcept {
  constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return range.prefix_bits >= kMappedBits &&
         std::equal(kMapped.begin(), kMapped.end(), range.first.bytes.begin());
}

IpAddress masked(IpAddress address, unsigned prefix_bits) noexcept {
  for (std::size_t i = 0; i < address.bytes.size(); ++i)
    address.bytes[i] = static_cast<std::uint8_t>(address.bytes[i] & mask_of(i, prefix_bits));
  return address;
}

std::optional<unsigned> parse_bits(std::string_view text, unsigned max) {
  unsigned bits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits);
  if (error != std::errc{} || end != text.data() + text.size() || bits > max) return std::nullopt;
  return bits;
}

}  // namespace

IpAddress IpAddress::of_v4(const std::array<std::uint8_t, 4>& bytes) noexcept {
  IpAddress address;
  address.bytes[10] = address.bytes[11] = 0xFF;
  std::copy(bytes.begin(), bytes.end(), address.bytes.begin() + 12);
  return address;
}

bool AddressRange::contains(const IpAddress& address) const noexcept {
  return masked(address, prefix_bits) == first;
}

std::variant<AddressRange, BadAddressRange> parse_address_range(std::string_view text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::string_view address = text.substr(0, slash);
  AddressRange range;
  unsigned bits_max = kBits;
  if (const auto v4 = urls::parse_ipv4_address({address.data(), address.size()})) {
    range.first = IpAddress::of_v4(v4->to_bytes());
    bits_max = kBits - kMappedBits;
  } else if (const auto v6 = urls::parse_ipv6_address({address.data(), address.size()})) {
    range.first.bytes = v6->to_bytes();
  } else {
    return BadAddressRange{"is not an address"};
  }
  range.prefix_bits = kBits;
  if (slash < text.size()) {
    const auto bits = parse_bits(text.substr(slash + 1), bits_max);
    if (!bits)
      return BadAddressRange{"must have 0 to " + std::to_string(bits_max) + " behind its /"};
    range.prefix_bits = kBits - bits_max + *bits;
  }
  const AddressRange whole{masked(range.first, range.prefix_bits), range.prefix_bits};
  if (whole != range)
    return BadAddressRange{"has bits behind its prefix; that range is " + to_string(whole)};
  return range;
}

std::string to_string(const AddressRange& range) {
  const auto& bytes = range.first.bytes;
  const bool v4 = is_v4(range);
  std::string text =
      v4 ? urls::ipv4_address({bytes[12], bytes[13], bytes[14], bytes[15]}).to_string()
         : urls::ipv6_address(bytes).to_string();
  if (range.prefix_bits < kBits)
    text.append("/").append(std::to_string(range.prefix_bits - (v4 ? kMappedBits : 0)));
  return text;
}

}  // namespace secondsight
