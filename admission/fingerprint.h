#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "config/result.h"

namespace secondsight::admission {

/// XXH3-128 of a canonical cache key under one installation's secret. Stable across builds and
/// machines for the same secret (it is written to disk). Equal fingerprints do not prove equal
/// keys: whoever serves bytes compares the full key.
struct Fingerprint {
  std::uint64_t high = 0;  // all that the filter sees (its line and bits); the index's shard
  std::uint64_t low = 0;   // the index's place within the shard
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

/// Both halves are already uniform: taking one is a perfect hash.
struct FingerprintHash {
  using is_avalanching = void;
  std::size_t operator()(const Fingerprint& f) const noexcept { return f.low; }
};

/// The installation's secret: without it nobody can aim at filter lines. Immutable after
/// construction, so thread-safe.
class FingerprintSeed {
 public:
  static constexpr std::size_t kSeedBytes = 32;
  using Bytes = std::array<std::byte, kSeedBytes>;

  explicit FingerprintSeed(const Bytes& bytes) noexcept;
  /// From the kernel's random source. Errors: what getrandom reports.
  static Result<FingerprintSeed> random();
  /// Reads `directory`/seed, or creates it with mode 0600 (written aside, synced and renamed, so a
  /// crash leaves a whole one or none). Of two processes that create it at once, both get the same.
  /// Errors: I/O; bad_message when the file is damaged, which is then left as it is. Blocks.
  static Result<FingerprintSeed> load_or_create(const std::filesystem::path& directory);
  /// Reads `directory`/seed and changes nothing. Errors: no_such_file_or_directory and other I/O;
  /// bad_message. Blocks.
  static Result<FingerprintSeed> load(const std::filesystem::path& directory);
  /// Creates `directory`/seed with this seed, unless there is one, which then stays. Errors: I/O.
  /// Blocks.
  Result<> store_in(const std::filesystem::path& directory) const;

  Fingerprint fingerprint_of(std::string_view canonical_key) const noexcept;

  /// Names the secret without giving it away: stored beside data that depends on it.
  std::uint64_t id() const noexcept { return id_; }

 private:
  static constexpr std::size_t kSecretBytes = 192;
  Bytes bytes_;
  alignas(64) std::array<unsigned char, kSecretBytes> secret_{};
  std::uint64_t id_ = 0;
};

}  // namespace secondsight::admission
