#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cache/cache.h"
#include "cache/policy/freshness.h"
#include "proxy/flight_table.h"
#include "proxy/origin.h"
#include "proxy/services.h"
#include "proxy/signal.h"

namespace secondsight::proxy {

class Flight;
class ResponseSink;

/// What a flight is started with.
struct FlightPlan {
  cache::CacheKey primary;
  cache::CacheKey key;                // the variant, where the primary key is known to vary
  cache::policy::RequestFacts facts;  // of the leader's request
  cache::policy::FieldBlock fields;   // of the leader's request, for Vary
  OriginRequest request{};
  bool shared = false;     // in the table: others may join, and the response may be kept
  bool may_store = false;  // a private flight of a GET (conditional, or after a release) keeps too
  /// FlightTable::invalidations() as they were before the cache was asked; empty: as they are.
  std::optional<std::uint32_t> invalidations{};
  std::optional<std::uint64_t> purges_seen{};  // Cache::purges(), likewise
  bool is_behind = false;     // a stale response was served meanwhile: nobody waits
  bool has_stored = false;    // a stored response was found, validated or not
  bool hides_errors = false;  // it may stand in for an error, which is not to take its place
  bool counts_for_whole =
      false;  // a Range request: a storable 206 is a sighting of the whole object
  /// The stored beginning of a whole of which the request asks for the rest (cache/partial.h).
  cache::ObjectPtr prefix{};
  cache::ObjectPtr vary_marker{};  // what is known of how the primary key varies; null: nothing
  std::shared_ptr<const cache::ObjectHead> stale{};  // what is being validated
  bool asks_about_variants = false;  // the request names the entity tags of other variants
  /// Takes the freshened head of what is being validated.
  std::function<void(const std::shared_ptr<const cache::ObjectHead>&)> refresh{};
};

/// How a reader's wait for the head ended.
enum class Arrival : std::uint8_t {
  Head,          // stream the body
  NotModified,   // the stored response is good; head() is its freshened head
  OtherVariant,  // a stored response that other requests select is good for this one; head() is the
                 // 304's
  Released,      // not for this request: look up again, or fetch alone
  Failed,        // error() says why
};

/// One request's view of a flight: its own pace, its own place in the body. On one worker's thread.
class FlightReader {
 public:
  FlightReader(WorkerServices& services, const cache::policy::FieldBlock& request_fields,
               const cache::policy::RequestFacts& facts = {});
  ~FlightReader();
  FlightReader(const FlightReader&) = delete;
  FlightReader& operator=(const FlightReader&) = delete;

  /// Waits for the head. Interim heads that come before it go to `interim`, unless that is null:
  /// only those of a fetch for this very request, since nobody knows yet whether what comes is for
  /// others, too.
  net::awaitable<Arrival> arrive(ResponseSink* interim = nullptr);
  /// After Head or NotModified.
  const std::shared_ptr<const cache::ObjectHead>& head() const noexcept { return head_; }
  std::optional<std::uint64_t> content_length() const noexcept { return content_length_; }
  OriginError error() const noexcept { return error_; }
  /// What this request's own sighting decided; Storable responses only.
  cache::Detail detail() const noexcept { return detail_; }
  bool kept() const noexcept { return kept_; }  // in memory or on its way to disk
  cache::policy::Storability storability() const noexcept { return storability_; }

  /// Names that are announced to follow the body; empty: none.
  const std::string& trailer_names() const noexcept { return trailer_names_; }
  /// The fields that follow the body, after next() has said that it is over.
  std::string trailers() const;
  /// Some body bytes, valid until the next call; none at the end. An error means the body is cut.
  net::awaitable<Result<std::span<const std::span<const std::byte>>>> next();
  /// Whether next() would have to wait: then what is buffered should be flushed first.
  bool would_wait() const;
  /// Goes on at a later offset of the body, which may still be to come.
  void skip_to(std::uint64_t offset);
  /// Of what the last next() gave, only so much is taken: what follows is given again.
  void take_only(std::uint64_t bytes) noexcept { given_bytes_ = bytes; }
  /// Body bytes that have come so far.
  std::uint64_t received_bytes() const;

 private:
  friend class Flight;
  struct Step;
  net::awaitable<Result<std::span<const std::span<const std::byte>>>> read_behind(
      std::shared_ptr<cache::Fill> fill);

  WorkerServices& services_;
  const cache::policy::FieldBlock& fields_;
  const cache::policy::RequestFacts facts_;
  std::shared_ptr<Signal> signal_;
  std::shared_ptr<Flight> flight_;

  // Guarded by the flight's mutex until the head has arrived, then this worker's own.
  bool leader_ = false;
  bool arrived_ = false;
  std::size_t interim_seen_ = 0;  // of the flight's interim heads
  Arrival arrival_ = Arrival::Failed;
  std::shared_ptr<const cache::ObjectHead> head_;
  std::optional<std::uint64_t> content_length_;
  std::string trailer_names_;
  OriginError error_ = OriginError::None;
  cache::Detail detail_ = cache::Detail::None;
  cache::policy::Storability storability_ = cache::policy::Storability::Storable;
  bool kept_ = false;

  std::uint64_t position_ = 0;     // guarded by the flight's mutex: consumed so far
  std::uint64_t given_bytes_ = 0;  // by the last next()
  std::vector<cache::ChunkPtr> held_;
  std::vector<std::span<const std::byte>> pieces_;
  std::vector<std::byte> behind_;  // bytes read back from disk
};

/// One fetch of one key from the origin, streamed to all who wait for it and to the cache. It
/// belongs to no client. How its body is held:
///
///   Whole    gathered in memory (up to Cache::whole_body_bytes_max), for everyone, then kept and,
///   if
///            admitted, written. Readers never slow it down.
///   Filling  written to disk in parts as it comes; memory holds what is not on disk yet; slow
///   readers read
///            behind it from disk. The origin is paused only while the writer is behind by
///            more than its reserve.
///   Passing  kept nowhere; one reader (the leader), who sets the pace. Others are released: they
///   fetch for
///            themselves.
///
/// Threads: the origin's callbacks and begin() on the worker that started it; join() and the
/// readers from any worker, through one mutex that is never held across a wait, a system call or a
/// callback.
class Flight final : public std::enable_shared_from_this<Flight>, private OriginReceiver {
 public:
  Flight(WorkerServices& services, FlightPlan plan);
  ~Flight() override;

  /// Starts the fetch. `leader` may be null: a revalidation behind a stale response.
  void begin(FlightReader* leader);
  /// False when this flight cannot serve that request any more.
  bool join(FlightReader& reader);
  /// Before begin(): nobody will join it.
  void fly_alone() noexcept { plan_.shared = false; }
  /// On its worker, about ten times a second: a fill whose writer hangs goes on without the disk.
  void tick(SteadyTime now);
  /// Its worker ends: the fetch is given up, everyone who waits is released.
  void cancel();
  /// An unsafe request changed the resource since, or it was purged: whatever comes is not kept,
  /// and not for who asks from now on.
  bool is_outdated() const;

  const cache::CacheKey& table_key() const noexcept { return plan_.key; }

 private:
  friend class FlightReader;
  enum class Mode : std::uint8_t { Waiting, Whole, Filling, Passing, Ended };

  void on_interim(OriginHead&& head) override;
  void on_head(OriginHead&& head) override;
  void on_trailer(cache::policy::FieldLine field) override;
  Flow on_body(std::span<const std::byte> bytes) override;
  void on_done(OriginError error) override;

  /// `head`: of the response; null: not known yet.
  bool is_outdated(const cache::ObjectHead* head) const;

  // All with mutex_ held.
  void take_body(std::span<const std::byte> bytes);
  void settle_sightings();
  bool count_sighting(FlightReader& reader);
  bool may_share(const FlightReader& reader) const;
  void choose_mode();
  bool start_filling();
  void start_passing();
  void give_up_fill();
  void release_reservation();
  void deliver_head(FlightReader& reader);
  void release(FlightReader& reader);
  void gather(const cache::ChunkPtr& chunk);
  void hand_over_part();
  void trim();
  bool should_pause() const;
  void notify_readers();
  std::uint64_t slowest_position() const;
  bool is_abandoned() const;

  std::shared_ptr<const cache::ObjectHead> complete_prefix(OriginHead& head) const;
  bool may_keep_part(const cache::ObjectHead& head, const OriginHead& received) const;
  void keep_whole();
  void keep_part();
  void forget(const cache::CacheKey& key, const cache::ObjectPtr& marker);
  template <class Put>
  bool publish(const Put& put) {
    return flights_.publish(plan_.primary.fingerprint(), invalidations_, put);
  }
  void handle_not_modified(const OriginHead& head);
  void answer_all(Arrival arrival, std::shared_ptr<const cache::ObjectHead> head);
  void end(OriginError error);
  void leave(FlightReader& reader);
  void consumed(FlightReader& reader, std::uint64_t bytes);
  void consumed_to(FlightReader& reader, std::uint64_t position);
  void progress();    // any thread: the writer wrote a part, failed, or committed
  void look_after();  // owner's thread: after a reader or the writer moved
  void leave_table();

  WorkerServices& services_;            // the starting worker's; not touched once done
  FlightTable& flights_;                // outlives every worker
  FlightPlan plan_;                     // constant once begun
  std::unique_ptr<OriginFetch> fetch_;  // owner's thread
  std::shared_ptr<Flight> self_;        // while the fetch runs
  const std::uint32_t invalidations_;   // as they were when this was made
  const std::uint64_t purges_seen_;     // likewise
  WallTime request_sent_{};
  cache::ObjectPtr marker_;  // set in on_head before any reader can join the body; then constant

  mutable std::mutex mutex_;  // guards all below, and the readers' marked members
  Mode mode_ = Mode::Waiting;
  std::vector<FlightReader*> readers_;
  std::vector<std::shared_ptr<const std::string>> interim_;  // heads, as ready bytes
  std::string trailer_names_;                                // those announced, a list
  std::vector<std::string> connection_options_;              // of the head; the owner's thread
  cache::policy::FieldBlock trailers_;
  std::shared_ptr<const cache::ObjectHead> head_;
  std::optional<std::uint64_t> content_length_;
  std::optional<cache::CacheKey> stored_key_;  // under the response's own Vary
  cache::policy::Storability storability_ = cache::policy::Storability::Storable;
  std::optional<cache::Admitted> admitted_;
  bool is_part_ = false;  // a 206 that is kept; admitted_ is for the whole it may complete
  std::deque<cache::ChunkPtr> window_;
  std::uint64_t window_first_ = 0;    // body offset of the window's first byte
  std::uint64_t end_ = 0;             // body bytes received
  std::uint64_t reserved_bytes_ = 0;  // of the process's budget for whole bodies
  std::shared_ptr<cache::Fill> fill_;
  std::vector<cache::ChunkPtr> part_;  // gathered for the next part
  std::uint64_t part_bytes_ = 0;
  bool paused_ = false;
  SteadyTime stalled_since_{};          // while paused for the writer
  std::uint64_t stalled_at_bytes_ = 0;  // what it had written then
  bool done_ = false;
  bool committing_ = false;
  bool fill_given_up_ = false;
  OriginError error_ = OriginError::None;
};

}  // namespace secondsight::proxy
