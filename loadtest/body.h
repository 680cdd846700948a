#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace secondsight::loadtest {

/// The bytes of one object: a pure function of its name and size, cheap at any offset. 16 bytes
/// that hold the hash of both, then a fixed pseudo-random pattern from a place that the hash picks,
/// over and over. The pattern's length is a prime, so that no block of a power of two looks like
/// another block of the same object. A block of another object's pattern is taken for the right one
/// with a chance of 1 in 262,139; its first 16 bytes never are. Immutable; thread-safe.
class Body {
 public:
  Body(std::string_view name, std::uint64_t size_bytes) noexcept;

  std::uint64_t size_bytes() const noexcept { return size_bytes_; }
  /// Names the bytes: differs wherever name or size do.
  std::uint64_t hash() const noexcept { return hash_; }

  /// The bytes from `offset` on, as many as lie in one piece (at least one before the end; none at
  /// it). They live as long as this Body and are never copied.
  std::span<const std::byte> run_at(std::uint64_t offset) const noexcept;
  /// Whether these are the bytes at `offset`. False when they reach past the end.
  bool matches(std::uint64_t offset, std::span<const std::byte> bytes) const noexcept;

 private:
  static constexpr std::size_t kStampBytes = 16;
  std::uint64_t size_bytes_;
  std::uint64_t hash_;
  std::array<std::byte, kStampBytes> stamp_;
};

/// Compares a body with what it should be as it comes in, piece by piece. One thread.
class BodyVerifier {
 public:
  explicit BodyVerifier(const Body& expected) noexcept : expected_(expected) {}
  /// False from the first wrong or surplus byte on.
  bool feed(std::span<const std::byte> bytes) noexcept;
  /// Whether all bytes came and all were right.
  bool complete() const noexcept { return right_ && offset_ == expected_.size_bytes(); }

 private:
  const Body expected_;
  std::uint64_t offset_ = 0;
  bool right_ = true;
};

}  // namespace secondsight::loadtest
