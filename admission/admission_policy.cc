#include "admission/admission_policy.h"

#include <limits>
#include <stdexcept>

#include "admission/bloom_math.h"
#include "admission/two_generation_filter.h"
#include "config/check.h"

namespace secondsight::admission {
namespace {

// Far below the 292 years that a steady time in nanoseconds can hold.
constexpr std::chrono::hours kLongestWindow{10 * 365 * 24};

/// Admits what was sighted before within the window.
class SecondSighting final : public AdmissionPolicy {
 public:
  SecondSighting(const FilterSize& size, SteadyTime::duration window, SteadyTime now)
      : filter_(size, window, now) {}

  void prefetch(const Fingerprint& key) const noexcept override { filter_.prefetch(key); }
  Verdict sight(const Fingerprint& key) noexcept override { return verdict_of(filter_.sight(key)); }
  Verdict peek(const Fingerprint& key) const noexcept override {
    return verdict_of(filter_.peek(key));
  }
  void maintain(SteadyTime now) noexcept override { filter_.maintain(now); }
  FilterStatus status(SteadyTime now) const noexcept override { return filter_.status(now); }
  TwoGenerationFilter* filter() noexcept override { return &filter_; }

 private:
  static Verdict verdict_of(Sighting sighting) noexcept {
    return sighting == Sighting::Repeat ? Verdict::Repeat : Verdict::FirstSighting;
  }
  TwoGenerationFilter filter_;
};

/// The baseline every experiment is compared with: admits everything.
class AdmitAlways final : public AdmissionPolicy {
 public:
  Verdict sight(const Fingerprint&) noexcept override { return Verdict::Always; }
  Verdict peek(const Fingerprint&) const noexcept override { return Verdict::Always; }
};

/// Writes nothing: a memory-only cache, or the other end of the scale.
class AdmitNever final : public AdmissionPolicy {
 public:
  Verdict sight(const Fingerprint&) noexcept override { return Verdict::Never; }
  Verdict peek(const Fingerprint&) const noexcept override { return Verdict::Never; }
};

std::unique_ptr<AdmissionPolicy> make_second_sighting(const AdmissionSettings& settings,
                                                      SteadyTime now) {
  // What the machine has is the allocation's business; here only the sense of the numbers.
  constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
  if (const auto fault =
          explain_bad_size(settings.expected_keys, settings.false_positive_rate, kNoLimit)) {
    throw std::invalid_argument(*fault);
  }
  if (settings.window <= settings.window.zero()) {
    throw std::invalid_argument("window = 0 would forget every sighting at once");
  }
  if (settings.window > kLongestWindow) {
    throw std::invalid_argument("window is longer than ten years: a rotation would never be seen");
  }
  return std::make_unique<SecondSighting>(
      size_filter(settings.expected_keys, settings.false_positive_rate), settings.window, now);
}

}  // namespace

std::unique_ptr<AdmissionPolicy> make_policy(const AdmissionSettings& settings, SteadyTime now) {
  switch (settings.policy) {
    case PolicyName::SecondSighting:
      return make_second_sighting(settings, now);
    case PolicyName::Always:
      return std::make_unique<AdmitAlways>();
    case PolicyName::Never:
      return std::make_unique<AdmitNever>();
  }
  CHECK(!"every policy name has its policy");
  return nullptr;
}

}  // namespace secondsight::admission
