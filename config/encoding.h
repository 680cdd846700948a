#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace secondsight {

/// Writes `value` at `to` in little-endian order, whatever the machine's own.
template <std::unsigned_integral T>
void store_little_endian(std::byte* to, T value) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    to[i] = static_cast<std::byte>((std::uint64_t{value} >> (8 * i)) & 0xFF);
}

template <std::unsigned_integral T>
T load_little_endian(const std::byte* from) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
  return static_cast<T>(value);
}

/// Appends fixed-size fields to `out`.
class Encoder {
 public:
  explicit Encoder(std::vector<std::byte>& out) noexcept : out_(out) {}

  template <std::unsigned_integral T>
  void put(T value) {
    const std::size_t at = out_.size();
    out_.resize(at + sizeof(T));
    store_little_endian(out_.data() + at, value);
  }
  void put_bytes(std::span<const std::byte> bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  void put_text(std::string_view text) { put_bytes(std::as_bytes(std::span(text))); }

 private:
  std::vector<std::byte>& out_;
};

/// Takes fixed-size fields off the front of `in`; the caller has checked that there are enough
/// bytes.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> in) noexcept : next_(in.data()) {}

  template <std::unsigned_integral T>
  T take() noexcept {
    const T value = load_little_endian<T>(next_);
    next_ += sizeof(T);
    return value;
  }
  std::string_view take_text(std::size_t bytes) noexcept {
    const auto* first = static_cast<const char*>(static_cast<const void*>(next_));
    next_ += bytes;
    return {first, bytes};
  }

 private:
  const std::byte* next_;
};

}  // namespace secondsight
