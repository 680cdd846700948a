#include "admission/chance.h"

#include <cmath>

namespace secondsight::admission {
namespace {

/// What is certain is foretold: a chance of 1, and one too small for a double.
Verdict foretell(double chance) noexcept {
  if (chance >= 1) return Verdict::Chance;
  return chance > 0 ? Verdict::Undecided : Verdict::NotChosen;
}

}  // namespace

bool Draws::draw(double chance) noexcept {
  constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15U;  // odd: 2^64 / golden ratio
  std::uint64_t x = counter_.fetch_add(kStep, std::memory_order_relaxed) + kStep;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  x ^= x >> 31U;
  return static_cast<double>(x >> 11U) * 0x1.0p-53 < chance;
}

Verdict FixedChance::sight(const Fingerprint& /*key*/,
                           std::optional<std::uint64_t> /*body_bytes*/) noexcept {
  return draws_.draw(chance_) ? Verdict::Chance : Verdict::NotChosen;
}

Verdict FixedChance::peek(const Fingerprint& /*key*/,
                          std::optional<std::uint64_t> /*body_bytes*/) const noexcept {
  return foretell(chance_);
}

double SizedChance::chance(std::optional<std::uint64_t> body_bytes) const noexcept {
  return std::exp(-static_cast<double>(body_bytes.value_or(scale_bytes_)) /
                  static_cast<double>(scale_bytes_));
}

Verdict SizedChance::sight(const Fingerprint& /*key*/,
                           std::optional<std::uint64_t> body_bytes) noexcept {
  return draws_.draw(chance(body_bytes)) ? Verdict::Chance : Verdict::NotChosen;
}

Verdict SizedChance::peek(const Fingerprint& /*key*/,
                          std::optional<std::uint64_t> body_bytes) const noexcept {
  return foretell(chance(body_bytes));
}

}  // namespace secondsight::admission
