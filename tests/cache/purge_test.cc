// Purges against all the ways by which something could still get into the cache, or stay there.
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "cache/cache.h"
#include "cache/partial.h"
#include "cache/policy/read_facts.h"
#include "tests/cache/cache_fixture.h"

namespace secondsight::cache {
namespace {

using std::chrono::seconds;

constexpr WallTime kNow{seconds{1'700'000'000}};

std::shared_ptr<const ObjectHead> tagged_head(std::string_view tags, std::string_view value = "1") {
  auto head = std::make_shared<ObjectHead>();
  head->status = 200;
  head->reason = "OK";
  head->fields.add("Cache-Control", "max-age=600");
  head->fields.add("Surrogate-Key", tags);
  head->fields.add("X-Value", value);
  head->times = {kNow, kNow};
  head->facts = policy::read_facts(200, head->fields, kNow);
  return head;
}

/// A cache on a disk that can be held, broken and opened again; everything it is given is admitted.
class PurgeTest : public ::testing::Test {
 protected:
  PurgeTest() {
    AdmissionSettings admission;
    admission.policy = PolicyName::Always;
    policy_ = admission::make_policy(admission, SteadyTime{std::chrono::hours{1}});
    settings_.disk_bytes = 16_MiB;
    settings_.memory_bytes = 0;
  }
  ~PurgeTest() override { disk_.gate->open(); }

  void open(std::uint64_t memory_bytes = 0) {
    settings_.memory_bytes = memory_bytes;
    cache_ = std::move(*Cache::open(settings_, has_disk_ ? disk_.files.get() : nullptr, *policy_,
                                    kSeed, metrics_));
  }
  void reopen() {
    cache_.reset();
    open(settings_.memory_bytes);
  }

  /// As a fetch that began at `seen` would hand it over. Every object has the tag "t".
  std::shared_ptr<Object> fetched(std::string_view target, std::uint64_t seen,
                                  std::size_t bytes = 100) {
    auto object = make_object(key_of(target), tagged_head("t other"), {chunk_of(bytes)});
    object->purges_seen = seen;
    return object;
  }
  Detail store(const ObjectPtr& object) {
    return cache_->store(*cache_->sight(object->key, object->body_bytes).admitted, object);
  }
  void put(std::string_view target) {
    const auto object = fetched(target, cache_->purges());
    ASSERT_EQ(store(object), Detail::None);
    cache_->keep(object, Newcomer::SeenBefore);
    cache_->drain();
  }
  void hold_the_writer() {
    disk_.gate->close();
    ASSERT_EQ(store(fetched("/holds-the-writer", cache_->purges())), Detail::None);
    disk_.gate->wait_for_writer();
  }
  /// What it was answered with once the writer was done; empty: not yet.
  std::optional<boost::system::error_code> purge(std::vector<Purge> purges, bool wait = true) {
    auto told = std::make_shared<std::optional<boost::system::error_code>>();
    cache_->purge(std::move(purges), kNow + seconds{10},
                  [told](const auto& error) { *told = error; });
    if (!wait) return std::nullopt;
    cache_->drain();
    return *told;
  }
  /// The head of what is found, in memory, on its way, or on disk. Null: nothing.
  std::shared_ptr<const ObjectHead> find(std::string_view target) {
    const CacheKey key = key_of(target);
    if (const auto object = cache_->find_in_memory(key)) return object->head;
    return find_on_disk(target);
  }
  std::shared_ptr<const ObjectHead> find_on_disk(std::string_view target) {
    const CacheKey key = key_of(target);
    const auto entry = cache_->find_on_disk(key);
    if (!entry) return nullptr;
    auto opened = cache_->open_object(key, *entry, ReadMode::Blocking);
    return opened ? opened->head : nullptr;
  }

  bool has_disk_ = true;
  TestDisk disk_;
  Metrics metrics_;
  CacheSettings settings_;
  std::unique_ptr<admission::AdmissionPolicy> policy_;
  std::unique_ptr<Cache> cache_;
};

const std::vector<Purge> kScopes = {
    {PurgeScope::Everything, PurgeKind::Hard, {}},
    {PurgeScope::Tag, PurgeKind::Hard, "t"},
    {PurgeScope::Prefix, PurgeKind::Hard, "http://test/a"},
    {PurgeScope::Url, PurgeKind::Hard, "http://test/a"},
};

Purge soft(Purge purge) {
  purge.kind = PurgeKind::Soft;
  return purge;
}

TEST_F(PurgeTest, WhatIsPurgedIsNotFoundAnyMoreAlsoNotAfterARestart) {
  for (const std::uint64_t memory_bytes : {std::uint64_t{0}, 64_MiB}) {
    for (const Purge& what : kScopes) {
      SCOPED_TRACE(std::string(to_string(what.scope)) + " " + std::to_string(memory_bytes));
      open(memory_bytes);
      put("/a");
      ASSERT_TRUE(find("/a"));
      EXPECT_EQ(purge({what}), boost::system::error_code{});
      EXPECT_FALSE(find("/a"));
      EXPECT_FALSE(find_on_disk("/a"));
      reopen();
      EXPECT_FALSE(find("/a"));
      put("/a");  // what comes after it stays
      EXPECT_TRUE(find("/a"));
      reopen();
      EXPECT_TRUE(find("/a"));
    }
  }
}

TEST_F(PurgeTest, WhatIsPurgedSoftlyIsStaleFromThenOnAlsoAfterARestart) {
  for (const std::uint64_t memory_bytes : {std::uint64_t{0}, 64_MiB}) {
    for (const Purge& what : kScopes) {
      SCOPED_TRACE(std::string(to_string(what.scope)) + " " + std::to_string(memory_bytes));
      open(memory_bytes);
      put("/a");
      EXPECT_EQ(purge({soft(what)}), boost::system::error_code{});
      ASSERT_TRUE(find("/a"));
      EXPECT_EQ(find("/a")->facts.stale_since, kNow + seconds{10});
      if (memory_bytes > 0) {
        EXPECT_EQ(cache_->find_in_memory(key_of("/a")), cache_->find_in_memory(key_of("/a")))
            << "one object, not one for each who asks";
      }
      ASSERT_TRUE(find_on_disk("/a"));
      EXPECT_EQ(find_on_disk("/a")->facts.stale_since, kNow + seconds{10});
      reopen();
      ASSERT_TRUE(find("/a"));
      EXPECT_EQ(find("/a")->facts.stale_since, kNow + seconds{10});
      put("/a");
      EXPECT_FALSE(find("/a")->facts.stale_since);
    }
  }
}

TEST_F(PurgeTest, OthersAreLeftAlone) {
  open(64_MiB);
  put("/b");
  for (const Purge& what : {Purge{PurgeScope::Tag, PurgeKind::Hard, "x"},
                            Purge{PurgeScope::Prefix, PurgeKind::Hard, "http://test/a"},
                            Purge{PurgeScope::Url, PurgeKind::Hard, "http://test/"}})
    EXPECT_EQ(purge({what}), boost::system::error_code{});
  ASSERT_TRUE(cache_->find_in_memory(key_of("/b")));
  EXPECT_TRUE(find_on_disk("/b"));
  reopen();
  EXPECT_TRUE(find("/b"));
}

TEST_F(PurgeTest, WhatWasAskedForBeforeAndComesAfterIsNotKept) {
  for (const std::uint64_t memory_bytes : {std::uint64_t{0}, 64_MiB}) {
    for (const bool is_soft : {false, true}) {
      for (const Purge& hard : kScopes) {
        const Purge what = is_soft ? soft(hard) : hard;
        SCOPED_TRACE(std::string(to_string(what.scope)) + " " + std::string(to_string(what.kind)));
        open(memory_bytes);
        const auto object = fetched("/a", cache_->purges());
        purge({what});
        EXPECT_TRUE(cache_->is_purged(cache_->purges() - 1, object->key, object->head.get()));
        EXPECT_FALSE(cache_->is_purged(cache_->purges(), object->key, object->head.get()));
        store(object);
        cache_->keep(object, Newcomer::First);
        cache_->drain();
        EXPECT_FALSE(find_on_disk("/a")) << "its record would stand behind the purge's";
        EXPECT_FALSE(object->on_disk);
        if (const auto head = find("/a"); is_soft && memory_bytes > 0) {
          ASSERT_TRUE(head);
          EXPECT_TRUE(head->facts.stale_since);
          EXPECT_FALSE(cache_->promote(cache_->find_in_memory(object->key)));
        } else {
          EXPECT_FALSE(head);
        }
        cache_->drain();
        reopen();
        EXPECT_FALSE(find("/a"));
        purge({Purge{}});
      }
    }
  }
}

TEST_F(PurgeTest, WhatWaitsForTheDiskIsNotWritten) {
  for (const Purge& what : kScopes) {
    SCOPED_TRACE(to_string(what.scope));
    open();
    hold_the_writer();
    ASSERT_EQ(store(fetched("/a", cache_->purges())), Detail::None);
    ASSERT_TRUE(find("/a"));
    purge({what}, false);
    EXPECT_FALSE(find("/a"));
    const auto newer = fetched("/a", cache_->purges(), 200);
    ASSERT_EQ(store(newer), Detail::None);
    EXPECT_EQ(cache_->find_in_memory(newer->key), newer);
    disk_.gate->open();
    cache_->drain();
    ASSERT_TRUE(find("/a"));
    reopen();
    const auto entry = cache_->find_on_disk(newer->key);
    ASSERT_TRUE(entry);
    const auto opened = cache_->open_object(newer->key, *entry, ReadMode::Blocking);
    ASSERT_TRUE(opened);
    EXPECT_EQ(opened->body_bytes, 200U);
    purge({Purge{}});
  }
}

/// The writer has looked at the list, and is appending, when the purge comes.
TEST_F(PurgeTest, WhatIsBeingWrittenIsOlderThanThePurge) {
  for (const Purge& what : kScopes) {
    SCOPED_TRACE(to_string(what.scope));
    open();
    disk_.gate->close();
    ASSERT_EQ(store(fetched("/a", cache_->purges())), Detail::None);
    disk_.gate->wait_for_writer();
    purge({what}, false);
    disk_.gate->open();
    cache_->drain();
    EXPECT_FALSE(find("/a"));
    reopen();
    EXPECT_FALSE(find("/a"));
  }
}

TEST_F(PurgeTest, ABodyThatStreamsToDiskIsNotCommitted) {
  open();
  Detail refusal = Detail::None;
  const auto sighting = cache_->sight(key_of("/a"), 100);
  const auto fill = cache_->begin_fill(
      *sighting.admitted, key_of("/a"), cache_->purges(), [] {}, refusal);
  ASSERT_TRUE(fill);
  cache_->append(fill, {chunk_of(100)}, 100);
  EXPECT_EQ(purge({{PurgeScope::Tag, PurgeKind::Hard, "t"}}), boost::system::error_code{});
  cache_->commit(fill, tagged_head("t"));
  cache_->drain();
  EXPECT_TRUE(fill->failed());
  EXPECT_FALSE(find("/a"));
  EXPECT_EQ(cache_->writer_queue_bytes(), 0U);
}

TEST_F(PurgeTest, ARefreshThatBeganBeforeDoesNotBringItBack) {
  for (const std::uint64_t memory_bytes : {std::uint64_t{0}, 64_MiB}) {
    open(memory_bytes);
    put("/a");
    const auto entry = *cache_->find_on_disk(key_of("/a"));
    const auto old = cache_->find_in_memory(key_of("/a"));
    const std::uint64_t seen = cache_->purges();
    purge({{PurgeScope::Tag, PurgeKind::Hard, "t"}});
    const auto fresh = tagged_head("t", "2");
    if (old) cache_->refresh(old, fresh, seen);
    // Nobody has looked since: the index still has the purged one.
    cache_->refresh(key_of("/a"), entry, {{entry.location, 100}}, fresh, Seconds::max(), seen);
    cache_->drain();
    EXPECT_FALSE(find("/a"));
    reopen();
    EXPECT_FALSE(find("/a"));
  }
}

TEST_F(PurgeTest, ARefreshAfterASoftPurgeMakesItFreshAgain) {
  for (const std::uint64_t memory_bytes : {std::uint64_t{0}, 64_MiB}) {
    open(memory_bytes);
    put("/a");
    purge({{PurgeScope::Tag, PurgeKind::Soft, "t"}});
    const std::uint64_t seen = cache_->purges();
    const auto entry = *cache_->find_on_disk(key_of("/a"));
    ASSERT_TRUE(find("/a")->facts.stale_since);
    const auto fresh = tagged_head("t", "2");
    if (const auto old = cache_->find_in_memory(key_of("/a"))) cache_->refresh(old, fresh, seen);
    hold_the_writer();
    cache_->refresh(key_of("/a"), entry, {{entry.location, 100}}, fresh, Seconds::max(), seen);
    EXPECT_EQ(find("/a"), fresh) << "though its record is not written yet";
    disk_.gate->open();
    cache_->drain();
    ASSERT_TRUE(find_on_disk("/a"));
    EXPECT_FALSE(find_on_disk("/a")->facts.stale_since);
    reopen();
    ASSERT_TRUE(find("/a"));
    EXPECT_FALSE(find("/a")->facts.stale_since);
    purge({Purge{}});
  }
}

TEST_F(PurgeTest, VariantsAndPartsOfAUrlGoWithIt) {
  open(64_MiB);
  const CacheKey primary = key_of("/a");
  policy::FieldBlock german;
  german.add("Accept-Language", "de");
  auto head = std::make_shared<ObjectHead>(*tagged_head("t"));
  head->fields.add("Vary", "Accept-Language");
  head->fields.add("ETag", "\"1\"");
  head->facts = policy::read_facts(200, head->fields, kNow);
  const auto variant = cache_->place(primary, nullptr, german, *head).key;
  const auto object = make_object(variant, head, {chunk_of(10)});
  object->purges_seen = cache_->purges();
  cache_->keep(object, Newcomer::SeenBefore);
  auto part_head = std::make_shared<ObjectHead>(*head);
  part_head->status = 206;
  part_head->fields.add("Content-Range", "bytes 0-9/20");
  part_head->facts = policy::read_facts(206, part_head->fields, kNow);
  const auto part = make_object(partial_key(variant, kSeed), part_head, {chunk_of(10)});
  part->purges_seen = cache_->purges();
  cache_->keep_part(variant, part);
  ASSERT_TRUE(cache_->find_in_memory(variant));
  ASSERT_TRUE(cache_->find_part(variant));
  ASSERT_TRUE(cache_->find_in_memory(primary));

  purge({{PurgeScope::Url, PurgeKind::Hard, "http://test/a"}});
  EXPECT_FALSE(cache_->find_in_memory(variant));
  EXPECT_FALSE(cache_->find_part(variant));
  EXPECT_FALSE(cache_->find_in_memory(primary)) << "nothing is known of how it varies";
}

TEST_F(PurgeTest, AMarkerIsNoResponseToBeMadeStale) {
  open(64_MiB);
  auto head = std::make_shared<ObjectHead>(*tagged_head("t"));
  head->fields.add("Vary", "Accept-Language");
  head->facts = policy::read_facts(200, head->fields, kNow);
  const auto marker = cache_->place(key_of("/a"), nullptr, {}, *head).marker;
  ASSERT_TRUE(marker);
  cache_->persist_marker(marker);
  purge({{PurgeScope::Everything, PurgeKind::Soft, {}}});
  EXPECT_EQ(cache_->find_in_memory(key_of("/a")), marker);
  reopen();
  ASSERT_TRUE(find("/a"));
  EXPECT_FALSE(find("/a")->facts.stale_since);
}

TEST_F(PurgeTest, PartsThatMakeOneAreAsOldAsTheOlder) {
  open(64_MiB);
  const auto part_of = [&](std::uint64_t first, std::uint64_t seen) {
    auto head = std::make_shared<ObjectHead>(*tagged_head("t"));
    head->status = 206;
    head->fields.add("ETag", "\"1\"");
    head->fields.add("Content-Range",
                     "bytes " + std::to_string(first) + "-" + std::to_string(first + 9) + "/30");
    head->facts = policy::read_facts(206, head->fields, kNow);
    const auto part = make_object(partial_key(key_of("/a"), kSeed), head, {chunk_of(10)});
    part->purges_seen = seen;
    return part;
  };
  const std::uint64_t before = cache_->purges();
  cache_->keep_part(key_of("/a"), part_of(0, before));
  purge({{PurgeScope::Url, PurgeKind::Hard, "http://test/other"}});
  cache_->keep_part(key_of("/a"), part_of(10, cache_->purges()));
  ASSERT_TRUE(cache_->find_part(key_of("/a")));
  EXPECT_EQ(cache_->find_part(key_of("/a"))->body_bytes, 20U);
  purge({{PurgeScope::Tag, PurgeKind::Hard, "t"}});
  cache_->keep_part(key_of("/a"), part_of(20, cache_->purges()));
  EXPECT_EQ(cache_->find_part(key_of("/a"))->body_bytes, 10U) << "not joined with what was purged";
  cache_->keep_part(key_of("/a"), part_of(10, before));  // of a fetch that began before
  EXPECT_FALSE(cache_->find_part(key_of("/a")));
}

TEST_F(PurgeTest, WithoutADiskItHoldsAtOnce) {
  has_disk_ = false;
  open(64_MiB);
  for (const Purge& what : kScopes) {
    const auto object = fetched("/a", cache_->purges());
    cache_->keep(object, Newcomer::First);
    ASSERT_TRUE(cache_->find_in_memory(object->key));
    EXPECT_EQ(purge({what}), boost::system::error_code{});
    EXPECT_FALSE(cache_->find_in_memory(object->key));
  }
}

TEST_F(PurgeTest, ADiskThatDoesNotTakeItIsSaidAndTriedAgain) {
  enum class Trouble { Write, Sync };
  for (const Trouble trouble : {Trouble::Write, Trouble::Sync}) {
    for (const bool by_new_chance : {true, false}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(trouble)) + (by_new_chance ? " again" : " end"));
      open();
      put("/a");
      hold_the_writer();
      purge({{PurgeScope::Tag, PurgeKind::Hard, "x"}}, false);  // the sync's turn comes after this
      disk_.gate->open();
      cache_->drain();
      const std::uint64_t next = disk_.gate->changes();
      disk_.gate->fail_change(trouble == Trouble::Write ? next : next + 1,
                              boost::system::errc::io_error);
      const auto told = purge({{PurgeScope::Tag, PurgeKind::Hard, "t"}});
      ASSERT_TRUE(told);
      EXPECT_TRUE(*told) << "it is not durable";
      EXPECT_FALSE(find("/a")) << "but in effect";
      EXPECT_EQ(cache_->owed_purges(), 1U);
      if (by_new_chance) {
        cache_->try_disk_again();
        while (cache_->owed_purges() > 0) std::this_thread::yield();
      }
      reopen();
      EXPECT_FALSE(find("/a"));
      put("/a");
      EXPECT_TRUE(find("/a"));
      purge({Purge{}});
    }
  }
}

TEST_F(PurgeTest, PurgesInARowAreSyncedTogether) {
  open();
  hold_the_writer();
  std::atomic<int> told{0};
  for (int i = 0; i < 50; ++i) {
    cache_->purge({{PurgeScope::Tag, PurgeKind::Hard, std::to_string(i)}}, kNow,
                  [&](const auto& error) { told += error ? 100 : 1; });
  }
  const std::uint64_t before = disk_.gate->changes();
  disk_.gate->open();
  cache_->drain();
  EXPECT_EQ(told, 50);
  EXPECT_LE(disk_.gate->changes() - before, 55U) << "50 records, and one sync";
}

TEST_F(PurgeTest, AfterTheEndNobodyWaits) {
  open();
  cache_->stop();
  const auto told = purge({Purge{}});
  ASSERT_TRUE(told);
  EXPECT_EQ(*told, boost::system::errc::operation_canceled);
}

TEST_F(PurgeTest, ASweepMakesRoomAndForgets) {
  open(64_MiB);
  for (int i = 0; i < 3'000; ++i) {
    const auto object = fetched("/" + std::to_string(i), cache_->purges());
    cache_->keep(object, Newcomer::SeenBefore);
  }
  ASSERT_EQ(cache_->memory_objects(), 3'000U);
  purge({{PurgeScope::Prefix, PurgeKind::Hard, "http://test/1"}});
  purge({{PurgeScope::Prefix, PurgeKind::Soft, "http://test/2"}});
  SteadyTime now{std::chrono::hours{1}};
  for (int i = 0; i < 20; ++i) cache_->sweep_purged(now);
  EXPECT_EQ(cache_->memory_objects(), 3'000U - 1'111U);
  EXPECT_TRUE(cache_->find_in_memory(key_of("/2"))->head->facts.stale_since);
  EXPECT_EQ(cache_->purge_stamps(), 2U) << "the disk may still have what they concern";
  cache_.reset();

  has_disk_ = false;
  open(64_MiB);
  cache_->keep(fetched("/1", cache_->purges()), Newcomer::First);
  const std::uint64_t before = cache_->purges();
  purge({{PurgeScope::Prefix, PurgeKind::Hard, "http://test/1"}});
  EXPECT_EQ(cache_->purge_stamps(), 1U);
  for (int i = 0; i < 20; ++i) cache_->sweep_purged(now += PurgeSweep::kInterval);
  EXPECT_EQ(cache_->purge_stamps(), 0U);
  EXPECT_EQ(cache_->memory_objects(), 0U);
  const auto late = fetched("/1", before);
  cache_->keep(late, Newcomer::First);
  EXPECT_FALSE(cache_->find_in_memory(late->key)) << "from before what was forgotten";
}

TEST_F(PurgeTest, WhatIsAppendedAgainAtItsSegmentsTurnIsJudgedFirst) {
  for (const PurgeKind kind : {PurgeKind::Hard, PurgeKind::Soft}) {
    SCOPED_TRACE(to_string(kind));
    open();
    put("/a");
    put("/b");
    for (int i = 0; i < 15; ++i) {
      cache_->note_disk_hit(key_of("/a"));
      cache_->note_disk_hit(key_of("/b"));
    }
    auto only_b = make_object(key_of("/b"), tagged_head("u"), {chunk_of(100)});
    only_b->purges_seen = cache_->purges();
    ASSERT_EQ(store(only_b), Detail::None);
    cache_->drain();
    for (int i = 0; i < 15; ++i) cache_->note_disk_hit(key_of("/b"));
    EXPECT_EQ(purge({{PurgeScope::Tag, kind, "t"}}), boost::system::error_code{});
    const auto first = cache_->find_on_disk(key_of("/b"))->location;
    int i = 0;
    for (; i < 400; ++i) {
      ASSERT_EQ(store(fetched("/fill" + std::to_string(i), cache_->purges(), 60'000)),
                Detail::None);
      cache_->drain();
      const auto b = cache_->find_on_disk(key_of("/b"));
      if (!b || b->location != first) break;
    }
    ASSERT_LT(i, 400);
    EXPECT_TRUE(find_on_disk("/b")) << "what was not purged is appended again";
    for (; i < 800; ++i) {
      ASSERT_EQ(store(fetched("/more" + std::to_string(i), cache_->purges(), 60'000)),
                Detail::None);
      cache_->drain();
    }
    EXPECT_FALSE(find_on_disk("/a"));
    purge({Purge{}});
  }
}

}  // namespace
}  // namespace secondsight::cache
