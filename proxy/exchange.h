#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cache/cache.h"
#include "cache/policy/range.h"
#include "proxy/body.h"
#include "proxy/counters.h"
#include "proxy/flight.h"
#include "proxy/flight_table.h"
#include "proxy/handler.h"
#include "proxy/lent_body.h"
#include "proxy/request.h"
#include "proxy/response.h"
#include "proxy/response_sink.h"
#include "proxy/selection.h"
#include "proxy/services.h"
#include "proxy/tunnel.h"

namespace secondsight::proxy {

/// One request from key to response. Lives on its worker's thread; holds no lock across a co_await;
/// every step below is one private function in exchange.cc.
class Exchange {
 public:
  Exchange(WorkerServices& services, const Request& request, BodySource& body, ResponseSink& sink);
  net::awaitable<void> run();

 private:
  /// A stored response: in memory, or on disk with its head read.
  struct Found {
    cache::CacheKey key;
    cache::ObjectPtr marker;  // how the primary key varies; null: it does not
    cache::ObjectPtr object;
    std::optional<cache::DiskObject> disk;
    bool from_disk = false;                      // `object` was just read from there
    std::optional<cache::log::Location> seen{};  // where the index said it is, readable or not

    explicit operator bool() const noexcept { return object != nullptr || disk.has_value(); }
    const std::shared_ptr<const cache::ObjectHead>& head() const noexcept {
      return object ? object->head : disk->head;
    }
    std::uint64_t body_bytes() const noexcept {
      return object ? object->body_bytes : disk->body_bytes;
    }
  };
  enum class Served : std::uint8_t {
    Yes,
    No,      // what was to be sent is gone here: look again
    Not,     // not from the cache: ask the origin
    Broken,  // the origin's answer broke before its first byte
  };
  using HeadPtr = std::shared_ptr<const cache::ObjectHead>;
  using Refresh = std::function<void(const HeadPtr&)>;

  enum class Sharing : std::uint8_t { Shared, Alone };

  net::awaitable<void> answer();
  void note_changes() noexcept;
  net::awaitable<Served> answer_from_cache(const cache::CacheKey& primary, Found& found,
                                           CacheStatus& status);
  net::awaitable<Served> answer_from_origin(const cache::CacheKey& primary, Found& found,
                                            CacheStatus& status);
  net::awaitable<Served> answer_failure(Found& found, OriginError error, CacheStatus status);

  net::awaitable<Found> look_up(const cache::CacheKey& primary);
  static Found make_found(const cache::CacheKey& key, cache::ObjectPtr marker) {
    return {.key = key, .marker = std::move(marker), .object = nullptr, .disk = std::nullopt};
  }
  Found find_in_memory(const cache::CacheKey& key, cache::ObjectPtr marker);
  net::awaitable<void> look_on_disk(Found& found);
  void plan_choice(FlightPlan& plan, const Found& found) const;
  bool plan_completion(FlightPlan& plan, const Found& missing) const;
  net::awaitable<Served> serve_part(const Found& missing, CacheStatus& status);
  net::awaitable<Served> serve_other_variant(const cache::CacheKey& primary, const Found& missing,
                                             const FlightReader& reader, CacheStatus status);
  void keep_as_variant(const cache::CacheKey& primary, const Found& missing, const Found& other,
                       const HeadPtr& fresh);
  net::awaitable<void> read_from_disk(Found& found, const cache::Index::Entry& entry);
  void note_disk_hit(const Found& found);
  net::awaitable<Result<>> read_slice(Found& found, std::uint64_t offset, std::span<std::byte> out);

  /// Names in `status` where the response was, unless it names something already.
  net::awaitable<Served> serve(Found& found, CacheStatus status, Outcome outcome,
                               std::shared_ptr<const cache::ObjectHead> head);
  net::awaitable<Served> send_disk_body(Found& found, const ResponseSink::Head& head,
                                        const Selection& selection);
  net::awaitable<bool> send_memory_body(const cache::Object& object, const Selection& selection);
  net::awaitable<bool> send_memory_range(const cache::Object& object,
                                         cache::policy::ByteRange range);
  net::awaitable<bool> send_text(std::string_view text);

  FlightPlan plan_flight(const cache::CacheKey& primary, const Found& found, Sharing sharing);
  void plan_validation(FlightPlan& plan, const Found& found) const;
  Refresh refresher(const Found& found) const;
  /// Puts something into the cache on behalf of what was found there, unless that is outdated.
  template <class Put>
  bool publish(const Put& put) {
    return services_.flights.publish(primary_, invalidations_, put);
  }
  void judge_stored(const Found& found, const FlightReader& reader);
  /// True: the reader leads; false: it joined another's flight.
  bool take_off(FlightReader& reader, FlightPlan plan, const Found& found);
  bool is_overtaken(const Found& found) const;
  void revalidate_behind(const cache::CacheKey& primary, const Found& found);

  /// A promised body goes on from the origin; false: it cannot, the response is to be cut.
  net::awaitable<bool> send_rest(const cache::ObjectHead& head, std::uint64_t first,
                                 std::optional<std::uint64_t> end);
  enum class Relayed : std::uint8_t { Sent, Nothing, Cut };
  net::awaitable<Served> relay(FlightReader& reader, CacheStatus status, Outcome outcome);
  net::awaitable<Relayed> relay_range(FlightReader& reader, const ResponseSink::Head& response,
                                      const Selection& selection, std::size_t i);
  std::string describe(const FlightReader& reader, CacheStatus status);
  /// Its views last as long as all three.
  ResponseSink::Head head_of(const Selection& selection, const cache::ObjectHead& head,
                             std::string_view patched) const;
  net::awaitable<void> send_not_modified(const cache::ObjectHead& head, std::string_view patched);
  Selection select_of_stream(const FlightReader& reader) const;
  net::awaitable<Served> pass_answer_on(const cache::CacheKey& primary, Found& found,
                                        FlightReader& reader, Sharing sharing, CacheStatus status);
  net::awaitable<Served> serve_freshened(Found& found, HeadPtr head, CacheStatus status);
  net::awaitable<Served> fall_back(Found& found, CacheStatus status, std::string_view failure);
  net::awaitable<Served> serve_stale(Found& found, CacheStatus status);
  net::awaitable<void> refuse_for(OriginError error, CacheStatus status);
  net::awaitable<void> refuse(int status, std::string_view detail, CacheStatus cache_status);
  /// True: the request asked for an upgrade and has been answered, in whatever way.
  net::awaitable<bool> pass_upgrade();
  net::awaitable<void> relay_declined(Tunnel& tunnel, const OriginHead& head, CacheStatus status);
  /// True: the request goes no further than here, and has been answered.
  net::awaitable<bool> answer_here();
  /// True: a PURGE that is for us, and has been answered.
  net::awaitable<bool> answer_purge();
  net::awaitable<void> pass_through(const cache::CacheKey& primary);
  net::awaitable<void> invalidate(const cache::CacheKey& primary);

  bool is_origin_spared(const Found& found) const;
  bool may_stand_in(const Found& found) const;
  bool fetches_whole(const Found& found) const;
  bool is_in_reach(const FlightReader& reader) const;
  bool wants_parts_of(const cache::ObjectHead& head) const;
  void begin(const ResponseSink::Head& head);
  void note_sent(std::uint64_t bytes);
  void finish(Outcome outcome);

  WorkerServices& services_;
  const Request& request_;
  LentBody body_;
  ResponseSink& sink_;
  const cache::policy::RequestFacts facts_;
  const WallTime now_;
  const SteadyTime started_;

  admission::Fingerprint primary_;   // of the primary key
  std::uint32_t invalidations_ = 0;  // of it, before the cache was asked
  std::uint64_t purges_seen_ = 0;    // of anything, likewise
  int turns_left_ = 0;
  bool judges_conditions_ = false;   // the request's own, not the origin
  bool waited_in_vain_ = false;      // for another's fetch
  bool asks_about_variants_ = true;  // on a vary-miss
  bool cuts_stream_ = false;         // the origin was asked for the whole of which this gets parts
  bool range_alone_ = false;  // the part asked for lies too far ahead in the stream of the whole

  // What the access log tells of it.
  int status_ = 0;
  std::uint64_t body_bytes_ = 0;
  std::string_view detail_;  // of a table or a literal
  std::vector<std::span<const std::byte>> clipped_;
};

/// The worker's handler: an Exchange for every request. Owns what only its worker uses.
class ExchangeHandler final : public Handler {
 public:
  struct Shared {
    const Settings& settings;
    const Clock& clock;
    cache::Cache& cache;
    const cache::Sites& sites;
    FlightTable& flights;
    DiskPool& disk;
    ProxyCounters& counters;
    AccessLog* access_log;  // null: none is written
    Metrics& metrics;
    Purger* purger = nullptr;  // null: nobody purges through this
  };
  ExchangeHandler(net::io_context& io, const Shared& shared);
  ~ExchangeHandler() override;

  net::awaitable<void> handle(const Request& request, BodySource& body,
                              ResponseSink& sink) override;
  /// On the worker's thread, ten times a second.
  void tick(SteadyTime now);
  /// On the worker's thread, before its loop is stopped: gives up every fetch, starts no more.
  /// Afterwards no flight of this worker touches it.
  void cancel_flights();

 private:
  std::unique_ptr<OriginClient> origin_;
  Tunnels tunnels_;
  WorkerServices services_;
};

}  // namespace secondsight::proxy
