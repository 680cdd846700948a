#include "admission/admission_policy.h"

#include <limits>
#include <random>
#include <stdexcept>
#include <type_traits>

#include "admission/bloom_math.h"
#include "admission/chance.h"
#include "admission/classic_filter.h"
#include "admission/cuckoo_filter.h"
#include "admission/exact_set.h"
#include "admission/nth_sighting.h"
#include "admission/scalable_filter.h"
#include "admission/two_generation_filter.h"
#include "config/check.h"

namespace secondsight::admission {
namespace {

// Far below the 292 years that a steady time in nanoseconds can hold.
constexpr std::chrono::hours kLongestWindow{10 * 365 * 24};

/// Admits what was sighted before within the window, by whatever remembers it.
template <class Filter>
class BySighting final : public AdmissionPolicy {
 public:
  template <class... Arguments>
  explicit BySighting(Arguments... arguments) : filter_(arguments...) {}

  void prefetch(const Fingerprint& key) const noexcept override { filter_.prefetch(key); }
  Verdict sight(const Fingerprint& key,
                std::optional<std::uint64_t> /*body_bytes*/) noexcept override {
    return verdict_of(filter_.sight(key));
  }
  Verdict peek(const Fingerprint& key,
               std::optional<std::uint64_t> /*body_bytes*/) const noexcept override {
    return verdict_of(filter_.peek(key));
  }
  void forget(const Fingerprint& key) noexcept override {
    if constexpr (requires(Filter & filter) { filter.forget(key); }) filter_.forget(key);
  }
  void maintain(SteadyTime now) noexcept override { filter_.maintain(now); }
  FilterStatus status(SteadyTime now) const noexcept override { return filter_.status(now); }
  TwoGenerationFilter* filter() noexcept override {
    if constexpr (std::is_same_v<Filter, TwoGenerationFilter>) return &filter_;
    return nullptr;
  }

 private:
  static Verdict verdict_of(Sighting sighting) noexcept {
    return sighting == Sighting::Repeat ? Verdict::Repeat : Verdict::FirstSighting;
  }
  Filter filter_;
};

/// The baseline every experiment is compared with: admits everything.
class AdmitAlways final : public AdmissionPolicy {
 public:
  Verdict sight(const Fingerprint&, std::optional<std::uint64_t>) noexcept override {
    return Verdict::Always;
  }
  Verdict peek(const Fingerprint&, std::optional<std::uint64_t>) const noexcept override {
    return Verdict::Always;
  }
};

/// Writes nothing: a memory-only cache, or the other end of the scale.
class AdmitNever final : public AdmissionPolicy {
 public:
  Verdict sight(const Fingerprint&, std::optional<std::uint64_t>) noexcept override {
    return Verdict::Never;
  }
  Verdict peek(const Fingerprint&, std::optional<std::uint64_t>) const noexcept override {
    return Verdict::Never;
  }
};

/// Whether a memory of sightings makes sense as it is configured.
void check_memory(const AdmissionSettings& settings) {
  // What the machine has is the allocation's business; here only the sense of the numbers.
  constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
  if (const auto fault =
          explain_bad_size(settings.expected_keys, settings.false_positive_rate, kNoLimit)) {
    throw std::invalid_argument(*fault);
  }
  if (settings.policy == PolicyName::Cuckoo) {
    if (const auto fault = explain_bad_cuckoo_rate(settings.false_positive_rate))
      throw std::invalid_argument(*fault);
  }
  if (settings.window <= settings.window.zero()) {
    throw std::invalid_argument("window = 0 would forget every sighting at once");
  }
  if (settings.window > kLongestWindow) {
    throw std::invalid_argument("window is longer than ten years: a rotation would never be seen");
  }
}

/// As config/setting_keys.cc has it, for settings that come from elsewhere.
void check_others(const AdmissionSettings& settings) {
  if (!(settings.probability > 0 && settings.probability <= 1))
    throw std::invalid_argument("probability must be above 0 and at most 1");
  if (settings.size_scale_bytes == 0)
    throw std::invalid_argument("size_scale = 0 would admit empty bodies only");
  if (settings.sightings < 2 || settings.sightings > 8)
    throw std::invalid_argument("sightings must be between 2 and 8");
}

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32U | device();
}

template <class Filter>
std::unique_ptr<AdmissionPolicy> remember(const AdmissionSettings& settings, SteadyTime now) {
  return std::make_unique<BySighting<Filter>>(settings.expected_keys, settings.false_positive_rate,
                                              SteadyTime::duration(settings.window), now);
}

}  // namespace

std::unique_ptr<AdmissionPolicy> make_policy(const AdmissionSettings& settings, SteadyTime now,
                                             std::optional<std::uint64_t> seed) {
  check_others(settings);
  if (remembers_sightings(settings.policy)) check_memory(settings);
  const auto drawn = [&seed] { return seed ? *seed : random_seed(); };
  const auto size = [&settings] {
    return size_filter(settings.expected_keys, settings.false_positive_rate);
  };
  const SteadyTime::duration window = settings.window;
  switch (settings.policy) {
    case PolicyName::SecondSighting:
      return std::make_unique<BySighting<TwoGenerationFilter>>(size(), window, now);
    case PolicyName::Always:
      return std::make_unique<AdmitAlways>();
    case PolicyName::Never:
      return std::make_unique<AdmitNever>();
    case PolicyName::Probability:
      return std::make_unique<FixedChance>(settings.probability, drawn());
    case PolicyName::SizeProbability:
      return std::make_unique<SizedChance>(settings.size_scale_bytes, drawn());
    case PolicyName::NthSighting:
      return std::make_unique<NthSighting>(size(), window, now, settings.sightings);
    case PolicyName::ClassicBloom:
      return remember<ClassicFilter>(settings, now);
    case PolicyName::ScalableBloom:
      return remember<ScalableFilter>(settings, now);
    case PolicyName::Cuckoo:
      return remember<CuckooFilter>(settings, now);
    case PolicyName::Exact:
      return remember<ExactSet>(settings, now);
  }
  CHECK(false && "every policy name has its policy");
  return nullptr;
}

std::uint64_t memory_bytes_for(const AdmissionSettings& settings) noexcept {
  const std::uint64_t keys = settings.expected_keys;
  const double rate = settings.false_positive_rate;
  switch (settings.policy) {
    case PolicyName::SecondSighting:
      return size_filter(keys, rate).memory_bytes();
    case PolicyName::NthSighting:
      return (settings.sightings - 1) * size_filter(keys, rate).memory_bytes();
    case PolicyName::ClassicBloom:
      return ClassicFilter::predict(keys, rate).memory_bytes;
    case PolicyName::ScalableBloom:
      return ScalableFilter::predict(keys, rate).memory_bytes;
    case PolicyName::Cuckoo:
      return CuckooFilter::predict(keys, rate).memory_bytes;
    case PolicyName::Exact:
      return ExactSet::predict(keys, rate).memory_bytes;
    case PolicyName::Always:
    case PolicyName::Never:
    case PolicyName::Probability:
    case PolicyName::SizeProbability:
      break;
  }
  return 0;
}

}  // namespace secondsight::admission
