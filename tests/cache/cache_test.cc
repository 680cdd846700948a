#include "cache/cache.h"

#include <gtest/gtest.h>

#include "cache/partial.h"
#include "cache/policy/read_facts.h"
#include "cache/variants.h"
#include "tests/cache/cache_fixture.h"

namespace secondsight::cache {
namespace {

constexpr std::uint64_t kDrawSeed = 20261130;

struct Options {
  PolicyName policy = PolicyName::SecondSighting;
  std::uint64_t memory_bytes = 64_MiB;
  std::uint64_t disk_bytes = 16_MiB;
  std::uint64_t max_object = 1_GiB;
  double probability = 0.5;
};

class CacheUnderTest {
 public:
  explicit CacheUnderTest(const Options& options = {}) {
    AdmissionSettings admission;
    admission.policy = options.policy;
    admission.expected_keys = 1'000;
    admission.probability = options.probability;
    policy_ = admission::make_policy(admission, SteadyTime{std::chrono::hours{1}}, kDrawSeed);
    settings_.memory_bytes = options.memory_bytes;
    settings_.disk_bytes = options.disk_bytes;
    settings_.max_object = options.max_object;
    auto opened = Cache::open(settings_, options.disk_bytes > 0 ? disk.files.get() : nullptr,
                              *policy_, kSeed, metrics);
    cache_ = std::move(*opened);
  }
  ~CacheUnderTest() { disk.gate->open(); }
  Cache* operator->() const { return cache_.get(); }

  TestDisk disk;
  Metrics metrics;

 private:
  CacheSettings settings_;
  std::unique_ptr<admission::AdmissionPolicy> policy_;
  std::unique_ptr<Cache> cache_;
};

/// A marker is older than its variants: when its segment has gone they may still be there, even
/// such as were invalidated. None of them may be found by what is learnt anew.
TEST(Cache, VariantsOfAMarkerThatWasReclaimedStayLost) {
  for (const bool turns : {false, true}) {
    SCOPED_TRACE(turns);
    const CacheUnderTest cache({.policy = PolicyName::Always});
    const CacheKey primary = key_of("/varies");
    policy::FieldBlock request;
    request.add("Accept", "text/html");
    auto head = std::make_shared<ObjectHead>(*head_of());
    head->fields.add("Vary", "Accept");
    head->times.response_received = WallTime{std::chrono::hours{500'000}};
    head->facts = policy::read_facts(200, head->fields, head->times.response_received);
    for (int i = 0; turns && i < 20; ++i) {
      const auto filler = object_of("/filler" + std::to_string(i), 1_MiB);
      const auto sighting = cache->sight(filler->key, filler->body_bytes);
      ASSERT_TRUE(sighting.admitted);
      EXPECT_EQ(cache->store(*sighting.admitted, filler), Detail::None);
      cache->drain();
    }
    const CacheKey before = primary.variant({"accept"}, WallTime{}, request, kSeed);
    EXPECT_EQ(cache->place(primary, nullptr, request, *head).key.text() == before.text(), !turns);
  }
}

/// Without its marker no variant is found, however often it is hit.
TEST(Cache, AMarkerLivesOnWithItsVariants) {
  for (const bool is_used : {false, true}) {
    SCOPED_TRACE(is_used);
    const CacheUnderTest cache({.policy = PolicyName::Always, .memory_bytes = 0});
    auto head = std::make_shared<ObjectHead>(*head_of());
    head->fields.add("Vary", "Accept");
    head->facts = policy::read_facts(200, head->fields, WallTime{});
    const CacheKey primary = key_of("/varies");
    const ObjectPtr marker = cache->place(primary, nullptr, {}, *head).marker;
    cache->persist_marker(marker);
    cache->drain();
    for (int i = 0; i < 200; ++i) {
      if (is_used) cache->note_use_of_marker(*marker);
      const auto filler = object_of("/filler" + std::to_string(i), 200'000);
      const auto sighting = cache->sight(filler->key, filler->body_bytes);
      ASSERT_TRUE(sighting.admitted);
      EXPECT_EQ(cache->store(*sighting.admitted, filler), Detail::None);
      cache->drain();
    }
    EXPECT_EQ(cache->find_on_disk(primary).has_value(), is_used);
  }
}

TEST(Cache, SightingsAreDecidedByPolicySizeAndDisk) {
  struct Row {
    PolicyName policy;
    std::uint64_t disk_bytes;
    std::uint64_t body_bytes;
    Detail first, second;
  };
  using enum Detail;
  for (const Row& row :
       {Row{PolicyName::SecondSighting, 16_MiB, 10, FirstSighting, Repeat},
        Row{PolicyName::Always, 16_MiB, 10, Always, Always},
        Row{PolicyName::Never, 16_MiB, 10, Never, Never},
        Row{PolicyName::SecondSighting, 0, 10, FirstSighting, NoDisk},
        Row{PolicyName::SecondSighting, 16_MiB, 8_MiB, FirstSighting, Repeat},
        Row{PolicyName::SecondSighting, 16_MiB, 8_MiB + 1, FirstSighting, TooLarge},
        Row{PolicyName::Always, 64_MiB, 20_MiB + 1, TooLarge, TooLarge}}) {
    const CacheUnderTest cache(
        {.policy = row.policy, .disk_bytes = row.disk_bytes, .max_object = 20_MiB});
    for (const Detail expected : {row.first, row.second}) {
      const Sighting sighting = cache->sight(key_of("/a"), row.body_bytes);
      EXPECT_EQ(to_string(sighting.detail), to_string(expected));
      EXPECT_EQ(sighting.admitted.has_value(), is_admitted(expected));
    }
  }
}

TEST(Cache, AFingerprintIsNoProofOfAKey) {
  const CacheUnderTest cache({.policy = PolicyName::Always});
  const auto object = object_of("/a");
  const auto sighting = cache->sight(object->key, object->body_bytes);
  EXPECT_EQ(cache->store(*sighting.admitted, object), Detail::None);
  cache->drain();
  const CacheKey other = CacheKey::from_stored("http://test/b", object->key.fingerprint());
  const auto entry = cache->find_on_disk(other);
  ASSERT_TRUE(entry);
  EXPECT_EQ(cache->open_object(other, *entry, ReadMode::Blocking).error(),
            boost::system::errc::no_such_file_or_directory);
  EXPECT_TRUE(cache->open_object(object->key, *entry, ReadMode::Blocking));
}

TEST(Cache, AHitInMemoryIsWrittenOnce) {
  const CacheUnderTest cache;
  const auto object = object_of("/a");
  EXPECT_FALSE(cache->sight(object->key, 100).admitted);
  cache->keep(object, Newcomer::First);
  ASSERT_EQ(cache->find_in_memory(object->key), object);
  EXPECT_TRUE(cache->promote(object));
  EXPECT_FALSE(cache->promote(object)) << "it is on its way";
  cache->drain();
  EXPECT_FALSE(cache->promote(object));
  EXPECT_EQ(cache->objects_on_disk(), 1U);
  EXPECT_EQ(cache->log_counters().records, 1U);
}

TEST(Cache, AHitInMemoryIsOneSightingOfThoseThatThePolicyAsksFor) {
  const CacheUnderTest cache({.policy = PolicyName::NthSighting});
  const auto object = object_of("/a");
  EXPECT_EQ(cache->sight(object->key, 100).detail, Detail::FirstSighting);
  cache->keep(object, Newcomer::First);
  EXPECT_FALSE(cache->would_promote(*object));
  EXPECT_FALSE(cache->promote(object)) << "the second";
  EXPECT_FALSE(object->on_disk) << "a later one may";
  EXPECT_TRUE(cache->would_promote(*object));
  EXPECT_TRUE(cache->promote(object)) << "the third";
  cache->drain();
  EXPECT_EQ(cache->objects_on_disk(), 1U);
}

/// With two sightings enough, what is in memory is proof of the first; with three it is not.
TEST(Cache, WhatThePolicyForgotWhileItWasInMemory) {
  for (const PolicyName policy : {PolicyName::SecondSighting, PolicyName::NthSighting}) {
    const CacheUnderTest cache({.policy = policy});
    const auto object = object_of("/a");
    cache->keep(object, Newcomer::First);
    const bool is_enough = policy == PolicyName::SecondSighting;
    EXPECT_EQ(cache->would_promote(*object), is_enough);
    EXPECT_EQ(cache->promote(object), is_enough);
    cache->drain();
  }
}

TEST(Cache, EachHitInMemoryIsADraw) {
  const CacheUnderTest cache({.policy = PolicyName::Probability});
  constexpr int kObjects = 400;
  int at_once = 0;
  for (int i = 0; i < kObjects; ++i) {
    const auto object = object_of("/" + std::to_string(i));
    EXPECT_TRUE(cache->would_promote(*object)) << "if the draw is for it";
    int hits = 1;
    while (!cache->promote(object) && hits < 100) {
      EXPECT_FALSE(object->on_disk);
      ++hits;
    }
    EXPECT_LT(hits, 100);
    at_once += hits == 1 ? 1 : 0;
    if (i % 50 == 0) cache->drain();
  }
  EXPECT_NEAR(at_once, kObjects / 2, 50) << "5 sigma, draw seed " << kDrawSeed;
}

/// Says what it is told to say, and remembers what it is to forget.
class ScriptedPolicy final : public admission::AdmissionPolicy {
 public:
  admission::Verdict sight(const admission::Fingerprint&,
                           std::optional<std::uint64_t>) noexcept override {
    return verdict;
  }
  admission::Verdict peek(const admission::Fingerprint&,
                          std::optional<std::uint64_t>) const noexcept override {
    return verdict;
  }
  void forget(const admission::Fingerprint& key) noexcept override { forgotten.push_back(key); }

  admission::Verdict verdict = admission::Verdict::Always;
  std::vector<admission::Fingerprint> forgotten;
};

TEST(Cache, WhatIsOnDiskIsReplacedWhateverThePolicySaysButNever) {
  CacheSettings settings;
  settings.disk_bytes = 16_MiB;
  ScriptedPolicy policy;
  Metrics metrics;
  TestDisk disk;
  const auto cache = std::move(*Cache::open(settings, disk.files.get(), policy, kSeed, metrics));
  const auto object = object_of("/a");
  EXPECT_EQ(cache->store(*cache->sight(object->key, 100).admitted, object), Detail::None);
  cache->drain();
  struct Row {
    admission::Verdict verdict;
    Detail of_new, of_stored;
  };
  using enum admission::Verdict;
  for (const Row& row :
       {Row{Always, Detail::Always, Detail::Always}, Row{Repeat, Detail::Repeat, Detail::Repeat},
        Row{Chance, Detail::Chance, Detail::Repeat},
        Row{FirstSighting, Detail::FirstSighting, Detail::Repeat},
        Row{FewSightings, Detail::FewSightings, Detail::Repeat},
        Row{NotChosen, Detail::NotChosen, Detail::Repeat},
        Row{Undecided, Detail::Chance, Detail::Repeat}, Row{Never, Detail::Never, Detail::Never}}) {
    policy.verdict = row.verdict;
    SCOPED_TRACE(to_string(row.verdict));
    EXPECT_EQ(to_string(cache->foresee(key_of("/b"), 100)), to_string(row.of_new));
    EXPECT_EQ(to_string(cache->foresee(object->key, 100)), to_string(row.of_stored));
    EXPECT_EQ(to_string(cache->sight(object->key, 100).detail), to_string(row.of_stored));
  }
}

TEST(Cache, ThePolicyForgetsWhatIsPurgedByItsKey) {
  CacheSettings settings;
  settings.memory_bytes = 64_MiB;
  settings.disk_bytes = 0;
  ScriptedPolicy policy;
  Metrics metrics;
  const auto cache = std::move(*Cache::open(settings, nullptr, policy, kSeed, metrics));
  const CacheKey a = key_of("/a");
  const auto purge = [&](PurgeScope scope, PurgeKind kind, std::string text) {
    policy.forgotten.clear();
    cache->purge({Purge{scope, kind, std::move(text)}}, WallTime{}, {});
    return policy.forgotten;
  };
  using Keys = std::vector<admission::Fingerprint>;
  EXPECT_EQ(purge(PurgeScope::Url, PurgeKind::Hard, a.text()), Keys{a.fingerprint()});
  EXPECT_EQ(purge(PurgeScope::Url, PurgeKind::Soft, a.text()), Keys{});
  EXPECT_EQ(purge(PurgeScope::Prefix, PurgeKind::Hard, a.text()), Keys{});
  EXPECT_EQ(purge(PurgeScope::Tag, PurgeKind::Hard, "a"), Keys{});
  EXPECT_EQ(purge(PurgeScope::Everything, PurgeKind::Hard, ""), Keys{});

  policy::FieldBlock german;
  german.add("Accept-Language", "de");
  ObjectHead head;
  head.status = 200;
  head.fields.add("Vary", "Accept-Language");
  head.facts = policy::read_facts(200, head.fields, WallTime{});
  const Placement placement = cache->place(a, nullptr, german, head);
  EXPECT_EQ(purge(PurgeScope::Url, PurgeKind::Hard, a.text()),
            (Keys{a.fingerprint(), placement.key.fingerprint()}))
      << "its variants too";

  policy.forgotten.clear();
  cache->invalidate(a, nullptr, WallTime{});
  EXPECT_EQ(policy.forgotten, Keys{a.fingerprint()});
}

TEST(Cache, NothingIsPromotedWhereNothingIsWritten) {
  for (const Options& options : {Options{.policy = PolicyName::Never}, Options{.disk_bytes = 0}}) {
    const CacheUnderTest cache(options);
    const auto object = object_of("/a");
    cache->keep(object, Newcomer::First);
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(cache->promote(object));
    cache->drain();
    EXPECT_EQ(cache->objects_on_disk(), 0U);
  }
}

TEST(Cache, APromotionThatTheQueueRefusesIsTriedAgain) {
  const CacheUnderTest cache;
  cache.disk.gate->close();
  for (int i = 0; i < 12; ++i) cache->promote(object_of("/" + std::to_string(i), 1'900'000));
  const auto object = object_of("/a", 1'900'000);
  EXPECT_FALSE(cache->promote(object));
  cache.disk.gate->open();
  cache->drain();
  EXPECT_TRUE(cache->promote(object));
  cache->drain();
  EXPECT_EQ(cache->writer_queue_bytes(), 0U);
}

TEST(Cache, ForeseeingCountsNothingAndIsRight) {
  for (const PolicyName policy : kPolicyNames) {
    if (policy == PolicyName::SizeProbability) continue;  // it draws
    for (const std::uint64_t disk_bytes : {std::uint64_t{0}, 16_MiB}) {
      const CacheUnderTest cache({.policy = policy, .disk_bytes = disk_bytes, .probability = 1});
      const CacheKey key = key_of("/a");
      for (const std::uint64_t body_bytes : {10U, 10U, 9U << 20}) {
        const Detail foreseen = cache->foresee(key, body_bytes);
        EXPECT_EQ(cache->foresee(key, body_bytes), foreseen);
        EXPECT_EQ(cache->sight(key, body_bytes).detail, foreseen);
      }
      const auto object = object_of("/b");
      const bool promotes = cache->would_promote(*object);
      EXPECT_EQ(cache->promote(object), promotes);
      if (promotes) {
        EXPECT_FALSE(cache->would_promote(*object));
      }
      cache->drain();
    }
  }
}

TEST(Cache, LookingSaysWhereAKeyIs) {
  const CacheUnderTest cache;
  const auto object = object_of("/a");
  const CacheKey& key = object->key;
  EXPECT_EQ(cache->look(key).object(), nullptr);
  cache->keep(object, Newcomer::First);
  EXPECT_EQ(cache->look(key).in_memory, object);
  EXPECT_FALSE(cache->look(key).is_on_its_way || cache->look(key).on_disk);
  cache.disk.gate->close();
  cache->promote(object);
  cache.disk.gate->wait_for_writer();
  EXPECT_EQ(cache->look(key).in_queue, object);
  EXPECT_TRUE(cache->look(key).is_on_its_way);
  cache.disk.gate->open();
  cache->drain();
  EXPECT_EQ(cache->look(key).in_queue, nullptr);
  EXPECT_FALSE(cache->look(key).is_on_its_way);
  EXPECT_TRUE(cache->look(key).on_disk);
}

TEST(Cache, LookingForAPartIsNoUseOfIt) {
  const auto survives = [](bool is_used) {
    const CacheUnderTest cache({.memory_bytes = 2_MiB});
    const CacheKey key = key_of("/a");
    EXPECT_EQ(cache->look_for_part(key), nullptr);
    const auto body = object_of("/a", 10_KiB);
    const auto part = make_object(partial_key(key, kSeed), body->head, body->body);
    cache->keep_part(key, part);
    EXPECT_EQ(is_used ? cache->find_part(key) : cache->look_for_part(key), part);
    for (int i = 0; i < 400; ++i)
      cache->keep(object_of("/" + std::to_string(i), 10_KiB), Newcomer::First);
    return cache->look_for_part(key) != nullptr;
  };
  EXPECT_TRUE(survives(true));
  EXPECT_FALSE(survives(false));
}

TEST(Cache, WhatIsRefreshedWhileItWaitsIsWrittenWithItsNewHead) {
  for (const std::uint64_t memory_bytes : {std::uint64_t{0}, 64_MiB}) {
    const CacheUnderTest cache({.policy = PolicyName::Always, .memory_bytes = memory_bytes});
    cache.disk.gate->close();
    const auto holding = object_of("/holds-the-writer");
    cache->store(*cache->sight(holding->key, 100).admitted, holding);
    cache.disk.gate->wait_for_writer();
    const auto object = object_of("/a");
    cache->keep(object, Newcomer::SeenBefore);
    cache->store(*cache->sight(object->key, 100).admitted, object);
    const auto head = head_of("2");
    cache->refresh(object, head, cache->purges());
    EXPECT_EQ(cache->find_in_memory(object->key)->head, head);
    cache.disk.gate->open();
    cache->drain();
    EXPECT_EQ(cache->log_counters().records, 2U);
    const auto stored =
        cache->open_object(object->key, *cache->find_on_disk(object->key), ReadMode::Blocking);
    ASSERT_TRUE(stored);
    EXPECT_EQ(stored->head->fields.text(), head->fields.text());
    EXPECT_EQ(stored->body_bytes, 100U);
  }
}

TEST(Cache, AnInvalidatedObjectIsGoneFromMemoryQueueAndDisk) {
  for (const std::uint64_t memory_bytes : {std::uint64_t{0}, 64_MiB}) {
    const CacheUnderTest cache({.policy = PolicyName::Always, .memory_bytes = memory_bytes});
    for (const bool in_queue : {true, false}) {
      const auto object = object_of("/a");
      cache.disk.gate->close();
      cache->keep(object, Newcomer::First);
      EXPECT_EQ(cache->store(*cache->sight(object->key, 100).admitted, object), Detail::None);
      cache.disk.gate->wait_for_writer();
      if (!in_queue) {
        cache.disk.gate->open();
        cache->drain();
      }
      cache->invalidate(object->key, nullptr, WallTime{});
      EXPECT_EQ(cache->find_in_memory(object->key), nullptr);
      EXPECT_FALSE(cache->find_on_disk(object->key));
      cache.disk.gate->open();
      cache->drain();
      EXPECT_EQ(cache->find_in_memory(object->key), nullptr);
      EXPECT_FALSE(cache->find_on_disk(object->key));
    }
  }
}

ObjectHead head_with(const std::vector<std::pair<std::string, std::string>>& lines) {
  ObjectHead head;
  head.status = 200;
  for (const auto& [name, value] : lines) head.fields.add(name, value);
  head.facts = policy::read_facts(200, head.fields, WallTime{});
  return head;
}

policy::FieldBlock request_with(std::string_view name, std::string_view value) {
  policy::FieldBlock request;
  request.add(name, value);
  return request;
}

TEST(Cache, WhatIsKnownOfVaryGrowsAndAnInvalidationStartsAnEpoch) {
  const CacheUnderTest cache;
  const CacheKey key = key_of("/v");
  const auto request = request_with("Accept", "text/html");
  const ObjectHead plain = head_with({});
  const ObjectHead by_accept = head_with({{"Vary", "Accept"}});
  const Placement alone = cache->place(key, nullptr, request, plain);
  EXPECT_EQ(alone.marker, nullptr);
  EXPECT_EQ(alone.key.text(), key.text());
  const auto [one_key, one] = cache->place(key, nullptr, request, by_accept);
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(one->is_vary_marker);
  EXPECT_EQ(one_key.text(), cache->variant_key(key, *one, request).text());
  EXPECT_EQ(cache->place(key, one, request, plain).marker, one)
      << "a response without Vary takes nothing away";
  EXPECT_EQ(cache->place(key, one, request, by_accept).marker, one);
  const ObjectPtr two =
      cache->place(key, one, request, head_with({{"Vary", "Accept-Language"}})).marker;
  EXPECT_EQ(two->head->facts.vary, (std::vector<std::string>{"accept", "accept-language"}));
  EXPECT_EQ(cache->place(key, nullptr, request, by_accept).marker, two)
      << "what others found out counts too";

  const CacheKey before = cache->variant_key(key, *two, request);
  cache->invalidate(key, two, WallTime{std::chrono::milliseconds{5}});
  const ObjectPtr after = cache->find_in_memory(key);
  ASSERT_NE(after, nullptr);
  EXPECT_TRUE(after->is_vary_marker);
  EXPECT_TRUE(variants_of(*after).empty());
  EXPECT_NE(cache->variant_key(key, *after, request).text(), before.text());
  const Placement late = cache->place(key, two, request, by_accept);
  EXPECT_EQ(late.key.text(), cache->variant_key(key, *after, request).text())
      << "an old flight cannot bring it back";
}

TEST(Cache, VariantsAreFoundByTagAndByLanguage) {  // RFC 9111 4.3.1, RFC 9111 4.1
  const CacheUnderTest cache;
  const CacheKey key = key_of("/v");
  const auto german =
      head_with({{"Vary", "Accept-Language"}, {"ETag", "\"de\""}, {"Content-Language", "de"}});
  const auto french =
      head_with({{"Vary", "Accept-Language"}, {"ETag", "\"fr\""}, {"Content-Language", "FR"}});
  const auto first = request_with("Accept-Language", "en, de");
  const auto second = request_with("Accept-Language", "it, fr");
  const CacheKey german_key = cache->place(key, nullptr, first, german).key;
  const auto [french_key, marker] = cache->place(key, nullptr, second, french);

  const auto tagged = cache->tagged_variants(key, *marker, first);
  ASSERT_EQ(tagged.size(), 2U);
  EXPECT_EQ(tagged[0].etag, "\"fr\"") << "the latest first";
  EXPECT_EQ(tagged[0].key.text(), french_key.text());
  EXPECT_EQ(tagged[1].key.text(), german_key.text());
  EXPECT_EQ(tagged[1].key.fingerprint(), german_key.fingerprint());

  const auto in_language = [&, &m = marker](std::string_view wanted) {
    const auto found = cache->variant_by_language(key, *m, request_with("Accept-Language", wanted));
    return found ? found->text() : "none";
  };
  EXPECT_EQ(in_language("fr;q=0.5, de"), german_key.text());
  EXPECT_EQ(in_language("de;q=0.5, Fr;q=0.9"), french_key.text());
  EXPECT_EQ(in_language("fr, de"), "none") << "no preference";
  EXPECT_EQ(in_language("en, de;q=0.9"), "none") << "it prefers what we do not know";
  EXPECT_EQ(in_language("de-CH"), "none") << "another tag";
  EXPECT_EQ(in_language("*"), "none");
}

TEST(Cache, OnlyVariantsThatOthersMayGetAreNamedToTheOrigin) {  // RFC 9111 4.3.1
  const CacheUnderTest cache;
  const CacheKey key = key_of("/v");
  const auto tags = [&](const Object& marker, const policy::FieldBlock& request) {
    std::string all;
    for (const auto& variant : cache->tagged_variants(key, marker, request))
      all.append(all.empty() ? "" : " ").append(variant.etag);
    return all;
  };
  const auto request_of = [](std::string_view coding, std::string_view language) {
    policy::FieldBlock request;
    if (!coding.empty()) request.add("Accept-Encoding", coding);
    request.add("Accept-Language", language);
    return request;
  };
  const auto head = [](std::string_view etag) {
    return head_with({{"Vary", "Accept-Encoding, Accept-Language"}, {"ETag", std::string(etag)}});
  };
  ObjectPtr marker;
  marker = cache->place(key, marker, request_of("gzip", "en"), head("\"gzip-en\"")).marker;
  marker = cache->place(key, marker, request_of("", "de"), head("\"plain-de\"")).marker;
  marker = cache->place(key, marker, request_of("GZIP", "de"), head("\"gzip-de\"")).marker;
  marker = cache->place(key, marker, request_of("gzip", "fr"), head("W/\"gzip-fr\"")).marker;
  EXPECT_EQ(tags(*marker, request_of("gzip", "it")), "\"gzip-de\" \"gzip-en\"")
      << "neither weak ones, nor of other codings";
  EXPECT_EQ(tags(*marker, request_of("", "it")), "\"plain-de\"");
  EXPECT_EQ(tags(*marker, request_of("br", "it")), "");
}

TEST(Cache, OfManyVariantsTheOldestAreForgotten) {  // RFC 9111 4.1
  const CacheUnderTest cache;
  const CacheKey key = key_of("/v");
  const auto head = head_with({{"Vary", "X-User"}});
  ObjectPtr marker;
  std::vector<CacheKey> keys;
  for (std::size_t i = 0; i < kVariantsMax + 3; ++i) {
    auto placement = cache->place(key, marker, request_with("X-User", std::to_string(i)), head);
    keys.push_back(placement.key);
    marker = placement.marker;
    EXPECT_EQ(may_have(*marker, keys.front().fingerprint()), i < kVariantsMax) << i;
  }
  EXPECT_EQ(variants_of(*marker).size(), kVariantsMax);
  for (std::size_t i = 0; i < keys.size(); ++i)
    EXPECT_EQ(may_have(*marker, keys[i].fingerprint()), i >= 3) << i;
  cache->place(key, marker, request_with("X-User", "5"), head);
  const auto again = cache->place(key, marker, request_with("X-User", "0"), head);
  EXPECT_TRUE(may_have(*again.marker, keys[0].fingerprint()));
  EXPECT_FALSE(may_have(*again.marker, keys[3].fingerprint()));
}

TEST(Cache, WhatIsTooLongForAMarkerIsLeftOut) {
  const CacheUnderTest cache;
  const CacheKey key = key_of("/v");
  const std::string long_etag = "\"" + std::string(100, 'x') + "\"";
  const auto placement = cache->place(key, nullptr, request_with("Cookie", std::string(4000, 'c')),
                                      head_with({{"Vary", "Cookie"}, {"ETag", long_etag}}));
  const auto variants = variants_of(*placement.marker);
  ASSERT_EQ(variants.size(), 1U);
  EXPECT_EQ(variants[0].fingerprint, placement.key.fingerprint());
  EXPECT_EQ(variants[0].etag, "");
  EXPECT_EQ(variants[0].vary_text, "");
  EXPECT_TRUE(cache->tagged_variants(key, *placement.marker, {}).empty());
  EXPECT_LT(placement.marker->memory_bytes(), 1000U);
}

TEST(Cache, ABodyAsLargeAsMayBeGatheredIsKeptInMemory) {
  for (const std::uint64_t memory_bytes : {64_KiB, 4_MiB, 64_MiB, 1_GiB}) {
    const CacheUnderTest cache({.memory_bytes = memory_bytes});
    const std::uint64_t bytes = cache->whole_body_bytes_max();
    EXPECT_GT(bytes, 0U) << memory_bytes;
    std::vector<ChunkPtr> body;
    constexpr std::uint64_t kChunkBytes = 33'000;  // two do not become one
    for (std::uint64_t at = 0; at < bytes; at += kChunkBytes)
      body.push_back(chunk_of(std::min(kChunkBytes, bytes - at), at));
    const auto object = make_object(key_of("/a"), head_of(), std::move(body));
    cache->keep(object, Newcomer::First);
    EXPECT_EQ(cache->find_in_memory(object->key), object) << memory_bytes;
  }
}

}  // namespace
}  // namespace secondsight::cache
