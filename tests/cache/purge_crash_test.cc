// Random histories of a cache with purges: against a model without faults, and with the power
// failing at every operation of its disk.
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cache/cache.h"
#include "cache/policy/read_facts.h"
#include "config/log.h"
#include "tests/cache/cache_fixture.h"

namespace secondsight::cache {
namespace {

constexpr WallTime kNow{std::chrono::hours{500'000}};
constexpr int kKeys = 8;

/// SECONDSIGHT_TEST_SEED repeats a run that failed.
std::uint64_t run_seed() {
  const char* given = std::getenv("SECONDSIGHT_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

std::string target_of(int key) {
  return "/p" + std::to_string(key % 2) + "/" + std::to_string(key);
}
std::string tags_of(int key) {
  return "t" + std::to_string(key % 3) + " all";
}

bool matches(const Purge& purge, int key) {
  const std::string text = "http://test" + target_of(key);
  switch (purge.scope) {
    case PurgeScope::Everything:
      return true;
    case PurgeScope::Tag:
      return purge.text == "all" || purge.text == "t" + std::to_string(key % 3);
    case PurgeScope::Prefix:
      return text.starts_with(purge.text);
    case PurgeScope::Url:
      return text == purge.text;
  }
  return false;
}

/// One version of an object, as it was handed to the cache.
struct Version {
  int number = 0;
  std::uint64_t step_of_fetch = 0;
  bool is_purged = false, is_stale = false;  // what must hold
};

struct Found {
  int version = 0;
  bool is_stale = false;
};

struct Options {
  std::uint64_t disk_bytes = 16_MiB;
  std::uint64_t memory_bytes = 0;
  std::size_t body_bytes = 100;
};

class History {
 public:
  History(FileSystem& files, std::uint64_t seed, const Options& options)
      : files_(files), options_(options), random_(seed), chunk_(chunk_of(options.body_bytes)) {
    AdmissionSettings admission;
    admission.policy = PolicyName::Always;
    policy_ = admission::make_policy(admission, SteadyTime{std::chrono::hours{1}});
    settings_.disk_bytes = options.disk_bytes;
    settings_.memory_bytes = options.memory_bytes;
    open();
  }

  void open() {
    cache_.reset();
    auto opened = Cache::open(settings_, &files_, *policy_, kSeed, metrics_);
    ASSERT_TRUE(opened);
    cache_ = std::move(*opened);
    late_.reset();
  }
  void end() { cache_.reset(); }

  void step() {
    const auto dice = random_() % 100;
    if (dice < 50) {
      put(static_cast<int>(random_() % kKeys), std::nullopt);
    } else if (dice < 60) {
      // A fetch that begins now and ends in some later step.
      if (!late_) late_ = {static_cast<int>(random_() % kKeys), cache_->purges(), step_};
    } else if (dice < 70) {
      if (late_) put(late_->key, late_);
      late_.reset();
    } else if (dice < 80) {
      cache_->note_disk_hit(key_of(target_of(static_cast<int>(random_() % kKeys))));
    } else {
      purge();
    }
    ++step_;
  }

  /// Whatever is found is of a version that may be found.
  void check_nothing_comes_back() {
    for (int key = 0; key < kKeys; ++key) {
      const auto found = find(key);
      if (!found) continue;
      const auto& versions = versions_[key];
      const auto version = std::find_if(versions.begin(), versions.end(), [&](const Version& v) {
        return v.number == found->version;
      });
      ASSERT_NE(version, versions.end()) << "key " << key << " version " << found->version;
      EXPECT_FALSE(version->is_purged) << "key " << key << " came back";
      EXPECT_TRUE(found->is_stale || !version->is_stale) << "key " << key << " is fresh again";
    }
  }
  /// And what was stored last, and not purged, is there.
  void check_all() {
    check_nothing_comes_back();
    for (int key = 0; key < kKeys; ++key) {
      const auto& versions = versions_[key];
      const auto last = std::find_if(versions.rbegin(), versions.rend(),
                                     [](const Version& v) { return !v.is_purged && !v.is_stale; });
      if (last == versions.rend() || last->number != newest_[key]) continue;
      const auto found = find(key);
      ASSERT_TRUE(found) << "key " << key << " is lost";
      EXPECT_EQ(found->version, last->number);
      EXPECT_FALSE(found->is_stale);
    }
  }
  /// Appending and purging still work.
  void check_it_goes_on() {
    for (int key = 0; key < kKeys; ++key) put(key, std::nullopt);
    check_all();
    purge_for({PurgeScope::Tag, PurgeKind::Hard, "t1"});
    check_all();
    open();
    check_all();
  }

 private:
  struct Late {
    int key = 0;
    std::uint64_t seen = 0;
    std::uint64_t step = 0;
  };

  void put(int key, const std::optional<Late>& late) {
    Version version;
    version.number = ++last_version_;
    version.step_of_fetch = late ? late->step : step_;
    for (const auto& [step, purge] : purges_) {
      if (step < version.step_of_fetch || !matches(purge, key)) continue;
      (purge.kind == PurgeKind::Hard ? version.is_purged : version.is_stale) = true;
    }
    auto head = std::make_shared<ObjectHead>();
    head->status = 200;
    head->reason = "OK";
    head->fields.add("Surrogate-Key", tags_of(key));
    head->fields.add("X-Value", std::to_string(version.number));
    head->times = {kNow, kNow};
    head->facts = policy::read_facts(200, head->fields, kNow);
    const auto object = make_object(key_of(target_of(key)), head, {chunk_});
    object->purges_seen = late ? late->seen : cache_->purges();
    versions_[key].push_back(version);
    // As a flight does: what came later stays.
    if (late && find(key)) return;
    if (!version.is_purged && !version.is_stale) newest_[key] = version.number;
    cache_->store(*cache_->sight(object->key, options_.body_bytes).admitted, object);
    cache_->keep(object, Newcomer::SeenBefore);
    cache_->drain();
  }

  void purge() {
    const auto key = static_cast<int>(random_() % kKeys);
    const auto kind = random_() % 3 == 0 ? PurgeKind::Soft : PurgeKind::Hard;
    const auto dice = random_() % 16;
    if (dice == 0) return purge_for({PurgeScope::Everything, kind, {}});
    if (dice < 6) return purge_for({PurgeScope::Tag, kind, "t" + std::to_string(key % 3)});
    if (dice < 9)
      return purge_for({PurgeScope::Prefix, kind, "http://test/p" + std::to_string(key % 2)});
    purge_for({PurgeScope::Url, kind, "http://test" + target_of(key)});
  }

  void purge_for(const Purge& purge) {
    std::optional<boost::system::error_code> told;
    cache_->purge({purge}, kNow + std::chrono::seconds{1},
                  [&](const auto& error) { told = error; });
    cache_->drain();
    ASSERT_TRUE(told);
    if (*told) return;  // no promise: it may hold after a crash, or not
    purges_.emplace_back(step_, purge);
    for (auto& [key, versions] : versions_) {
      if (!matches(purge, key)) continue;
      for (Version& version : versions)
        (purge.kind == PurgeKind::Hard ? version.is_purged : version.is_stale) = true;
    }
  }

  std::optional<Found> find(int key) {
    const CacheKey cache_key = key_of(target_of(key));
    std::shared_ptr<const ObjectHead> head;
    if (const auto object = cache_->find_in_memory(cache_key)) {
      head = object->head;
    } else if (const auto entry = cache_->find_on_disk(cache_key)) {
      const auto opened = cache_->open_object(cache_key, *entry, ReadMode::Blocking);
      if (opened) head = opened->head;
    }
    if (!head) return std::nullopt;
    return Found{std::atoi(std::string(*head->fields.find("X-Value")).c_str()),
                 head->facts.stale_since.has_value()};
  }

  FileSystem& files_;
  const Options options_;
  std::mt19937_64 random_;
  const ChunkPtr chunk_;
  Metrics metrics_;
  CacheSettings settings_;
  std::unique_ptr<admission::AdmissionPolicy> policy_;
  std::unique_ptr<Cache> cache_;
  std::uint64_t step_ = 0;
  int last_version_ = 0;
  std::optional<Late> late_;
  std::map<int, std::vector<Version>> versions_;
  std::map<int, int> newest_;  // that was stored in time
  std::vector<std::pair<std::uint64_t, Purge>> purges_;
};

TEST(PurgeModel, WhatIsFoundIsWhatWasStoredAndNotPurged) {
  const std::uint64_t seed = run_seed();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (std::uint64_t run = 0; run < 12; ++run) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " run " + std::to_string(run));
    test::SimFileSystem disk(1);
    History history(disk, seed + run, {.memory_bytes = run % 2 == 0 ? 0 : 4_MiB});
    for (int i = 0; i < 300; ++i) {
      history.step();
      if (i % 10 == 0) history.check_all();
      if (i % 60 == 59) history.open();
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
    history.check_all();
  }
}

class PurgeCrash : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, PurgeCrash, ::testing::Range<std::uint64_t>(1, 7));

/// A small disk whose ring goes round.
constexpr Options kSmall{.disk_bytes = 1'300'000, .memory_bytes = 0, .body_bytes = 30'000};
constexpr int kSteps = 60;

TEST_P(PurgeCrash, APurgeThatWasAnsweredHoldsAfterACrashAtAnyOperation) {
  for (std::uint64_t operation = 0;; ++operation) {
    SCOPED_TRACE("crash at " + std::to_string(operation));
    test::SimFileSystem disk(GetParam());
    disk.crash_at(operation);
    History history(disk, GetParam(), kSmall);
    for (int i = 0; i < kSteps && !disk.has_crashed(); ++i) history.step();
    history.end();
    const bool has_crashed = disk.has_crashed();
    disk.power_cycle();
    history.open();
    history.check_nothing_comes_back();
    history.check_it_goes_on();
    if (HasFatalFailure() || HasNonfatalFailure()) return;
    if (!has_crashed) break;
  }
}

TEST_P(PurgeCrash, AnyOperationOfTheDiskMayFail) {
  for (std::uint64_t operation = 0;; ++operation) {
    SCOPED_TRACE("failure at " + std::to_string(operation));
    test::SimFileSystem disk(GetParam());
    disk.fail_operation(operation, boost::system::errc::io_error);
    History history(disk, GetParam() + 100, kSmall);
    for (int i = 0; i < kSteps; ++i) history.step();
    const bool is_over = disk.operations() < operation;
    history.check_nothing_comes_back();
    history.end();
    disk.power_cycle();
    history.open();
    history.check_nothing_comes_back();
    if (HasFatalFailure() || HasNonfatalFailure()) return;
    if (is_over) break;
  }
}

}  // namespace
}  // namespace secondsight::cache
