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
#include "proxy/handler.h"
#include "proxy/lent_body.h"
#include "proxy/request.h"
#include "proxy/response.h"
#include "proxy/response_sink.h"
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
  enum class Served : std::uint8_t { Yes, No };

  net::awaitable<void> answer();
  net::awaitable<Found> look_up(const cache::CacheKey& primary);
  net::awaitable<void> read_from_disk(Found& found, const cache::Index::Entry& entry);
  net::awaitable<Result<>> read_slice(Found& found, std::uint64_t offset, std::span<std::byte> out);

  net::awaitable<Served> serve(Found& found, CacheStatus status, Outcome outcome,
                               std::shared_ptr<const cache::ObjectHead> head);
  net::awaitable<Served> send_disk_body(Found& found, const ResponseSink::Head& head,
                                        cache::policy::ByteRange range);
  net::awaitable<void> send_memory_body(const cache::Object& object,
                                        cache::policy::ByteRange range);

  enum class Sharing : std::uint8_t { Shared, Alone };
  FlightPlan plan_flight(const cache::CacheKey& primary, const Found& found, Sharing sharing);
  void plan_validation(FlightPlan& plan, const Found& found) const;
  /// True: the reader leads; false: it joined another's flight.
  bool take_off(FlightReader& reader, FlightPlan plan, const Found& found);
  bool is_overtaken(const Found& found) const;
  void revalidate_behind(const cache::CacheKey& primary, const Found& found);

  /// A promised body goes on from the origin; false: it cannot, the response is to be cut.
  net::awaitable<bool> send_rest(const cache::ObjectHead& head, std::uint64_t first,
                                 std::optional<std::uint64_t> end);
  net::awaitable<Served> relay(FlightReader& reader, CacheStatus status, Outcome outcome);
  net::awaitable<Served> fall_back(Found& found, CacheStatus status);
  net::awaitable<void> refuse(int status, std::string_view detail, CacheStatus cache_status);
  /// True: the request asked for an upgrade and has been answered, in whatever way.
  net::awaitable<bool> pass_upgrade();
  net::awaitable<void> relay_declined(Tunnel& tunnel, const OriginHead& head, CacheStatus status);
  /// True: the request goes no further than here, and has been answered.
  net::awaitable<bool> answer_here();
  net::awaitable<void> pass_through(const cache::CacheKey& primary);
  net::awaitable<void> invalidate(const cache::CacheKey& primary);

  Forward reason_to_forward(const Found& found) const;
  bool is_sharable() const;
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

  // What the access log tells of it.
  int status_ = 0;
  std::uint64_t body_bytes_ = 0;
  std::string_view detail_;  // of a table or a literal
};

/// The worker's handler: an Exchange for every request. Owns what only its worker uses.
class ExchangeHandler final : public Handler {
 public:
  struct Shared {
    const Settings& settings;
    const Clock& clock;
    cache::Cache& cache;
    FlightTable& flights;
    DiskPool& disk;
    ProxyCounters& counters;
    AccessLog* access_log;  // null: none is written
    Metrics& metrics;
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
