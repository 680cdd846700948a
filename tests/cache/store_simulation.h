#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cache/index.h"
#include "cache/log/object_log.h"
#include "cache/purge_list.h"
#include "cache/store_writer.h"
#include "config/metrics.h"
#include "tests/support/sim_file_system.h"

namespace secondsight::cache {

/// A whole store on a simulated disk, as small as it can be: log, index and writer. Each call
/// returns when the writer is done with it, so that a run is the same for the same seed.
class SimulatedStore {
 public:
  struct Shape {
    std::uint32_t segment_bytes = 0;
    std::uint32_t segments = 0;
    std::uint64_t seal_bytes = 0;
    std::uint64_t capacity_bytes() const { return std::uint64_t{segment_bytes} * segments; }
  };
  /// What a key's last answer said, byte for byte as it was stored.
  struct Found {
    std::int64_t version = 0;
    std::uint32_t oldest_segment = 0;  // of those that its bytes are in
  };

  /// Replays what the disk has.
  SimulatedStore(test::SimFileSystem& disk, const Shape& shape);
  /// Seals the log. Whether nothing stood in its way is the disk's to say.
  ~SimulatedStore();

  bool put(std::uint64_t key, std::int64_t version, std::size_t body_bytes);
  /// The same through a fill of several parts. `Abandon` leaves it without its head.
  enum class FillEnd : std::uint8_t { Commit, Abandon };
  bool fill(std::uint64_t key, std::int64_t version, std::size_t body_bytes, FillEnd end);
  /// A new head over the body that is stored. False: none is.
  bool refresh(std::uint64_t key, std::int64_t version);
  /// A marker that must not be lost.
  void mark(std::uint64_t key, std::int64_t version);
  void remove(std::uint64_t key);
  /// Hard, of objects. Whether it is durable now.
  bool purge(PurgeScope scope, std::uint64_t key);
  /// Whether such a purge concerns the object of another key.
  static bool concerns(PurgeScope scope, std::uint64_t key, std::uint64_t other);
  void hit(std::uint64_t key);
  /// As Maintenance does, once a second.
  void try_disk_again();

  /// Empty: a miss. Fails the test on a wrong byte.
  std::optional<Found> find(std::uint64_t key) const;
  /// Where the index says that it is. No disk access.
  std::optional<log::Location> place(std::uint64_t key) const;
  std::uint64_t objects() const { return index_.objects(); }
  bool is_open() const { return log_ && log_->is_open(); }
  const log::ObjectLog& log() const { return *log_; }
  Index& index() { return index_; }
  std::uint32_t part_bytes_max() const { return log_->part_body_bytes_max(); }

  static const admission::FingerprintSeed& seed();

 private:
  bool store(const std::shared_ptr<Object>& object);

  Metrics metrics_;
  Index index_;
  PurgeList purges_{seed()};
  std::unique_ptr<log::ObjectLog> log_;
  std::unique_ptr<StoreWriter> writer_;
};

/// Random work on a store, and what it was told about it: what must be there after a power cut, and
/// what must not.
class StoreWorkload {
 public:
  static constexpr std::uint64_t kKeys = 12;    // of objects, from 0 on
  static constexpr std::uint64_t kMarkers = 3;  // keys of markers, behind them

  StoreWorkload(test::SimFileSystem& disk, std::uint64_t seed);

  /// Opens the store; false: the power failed.
  bool open();
  /// One random change, or a look at every key, or a restart.
  void step();
  /// Until the power fails, at most.
  void run(int steps) {
    for (int i = 0; i < steps && !disk_.has_crashed() && store_; ++i) step();
  }
  /// Ends the process: by a signal that it does not live to see, ...
  void kill();
  /// ... or in order. What was stored is durable then.
  void close();
  /// The power fails, if it has not yet, and comes back.
  void cut_power();

  /// Everything that must hold of a store that was opened again after whatever happened.
  void check_recovered();
  /// What each key says now is its latest version, where nothing has failed.
  void check_all();
  /// From here on the disk may have anything, but no wrong byte may be read.
  void expect_lies() { disk_lies_ = true; }

  SimulatedStore& store() { return *store_; }
  /// Numbers of the segment files that are there.
  std::set<std::uint32_t> segments() const;
  const SimulatedStore::Shape& shape() const { return shape_; }

 private:
  /// One attempt to change a key.
  struct Change {
    std::int64_t version = 0;  // 0: removed
    std::uint32_t oldest_segment = 0;
    bool is_written = false;
    bool is_durable = false;
    bool is_doubtful = false;  // a sync may have lost it, though it can be read: never durable
  };
  using Changes = std::vector<Change>;

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  void change(std::uint64_t key);
  bool purge(std::uint64_t key);
  /// After operations that failed as planned: removals and markers are owed to the disk, and hold
  /// once it has worked again. What else was not durable may be lost by a sync that failed.
  void settle();
  void note(std::uint64_t key, std::int64_t version);
  void note_places(std::uint64_t changed);
  void note_durable();
  void check_key(std::uint64_t key, const Changes& changes,
                 const std::set<std::uint32_t>& segments) const;
  std::map<std::uint64_t, log::Location> places() const;
  static std::string words(const Changes& changes);

  test::SimFileSystem& disk_;
  std::mt19937_64 random_;
  SimulatedStore::Shape shape_;
  std::unique_ptr<SimulatedStore> store_;
  std::map<std::uint64_t, Changes> history_;
  std::map<std::uint64_t, log::Location> places_;  // as the index had it after the last change
  std::set<std::uint64_t> hit_;                    // keys that may have been written once more
  std::uint32_t next_to_go_ = 0;                   // the oldest segment, after the last change
  std::set<std::uint32_t> doubtful_segments_;      // a sync of them may have failed
  std::int64_t last_version_ = 0;
  bool disk_lies_ = false;
};

}  // namespace secondsight::cache
