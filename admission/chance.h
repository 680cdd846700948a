#pragma once
#include <atomic>
#include <cstdint>
#include <optional>

#include "admission/admission_policy.h"

namespace secondsight::admission {

/// Independent draws: SplitMix64 (Steele, Lea, Flood 2014) over one counter, so that the n-th draw
/// is a function of the seed and n, whichever thread makes it. Thread-safe, lock-free.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) noexcept : counter_(seed) {}

  /// True with this chance, to 53 bits.
  bool draw(double chance) noexcept;

 private:
  std::atomic<std::uint64_t> counter_;  // relaxed: each value is taken once, nothing hangs on it
};

/// Admits each sighting with one chance, whatever was seen before. In (0, 1]; 1 admits everything.
class FixedChance final : public AdmissionPolicy {
 public:
  FixedChance(double chance, std::uint64_t seed) noexcept : chance_(chance), draws_(seed) {}

  Verdict sight(const Fingerprint&, std::optional<std::uint64_t> body_bytes) noexcept override;
  Verdict peek(const Fingerprint&, std::optional<std::uint64_t> body_bytes) const noexcept override;
  double chance(std::optional<std::uint64_t> /*body_bytes*/) const noexcept override {
    return chance_;
  }

 private:
  const double chance_;
  Draws draws_;
};

/// Admits each sighting with the chance exp(-body_bytes / scale_bytes): small objects soon, large
/// ones only when they are asked for again and again. A body of unknown length counts as one of
/// scale_bytes. The rule of AdaptSize, with a scale that stays as it is configured: Berger,
/// Sitaraman, Harchol-Balter: AdaptSize, NSDI 2017.
class SizedChance final : public AdmissionPolicy {
 public:
  /// scale_bytes above 0.
  SizedChance(std::uint64_t scale_bytes, std::uint64_t seed) noexcept
      : scale_bytes_(scale_bytes), draws_(seed) {}

  Verdict sight(const Fingerprint&, std::optional<std::uint64_t> body_bytes) noexcept override;
  Verdict peek(const Fingerprint&, std::optional<std::uint64_t> body_bytes) const noexcept override;
  double chance(std::optional<std::uint64_t> body_bytes) const noexcept override;

 private:
  const std::uint64_t scale_bytes_;
  Draws draws_;
};

}  // namespace secondsight::admission
