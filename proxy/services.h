#pragma once
#include <unordered_set>

#include "cache/cache.h"
#include "cache/sites.h"
#include "config/clock.h"
#include "config/settings.h"
#include "proxy/asio.h"

namespace secondsight::proxy {

class AccessLog;
class DiskPool;
class Flight;
class FlightTable;
class OriginClient;
class Purger;
class Tunnels;
struct ProxyCounters;

/// A body that is read from disk for a client comes in slices of this size.
inline constexpr std::size_t kSliceBytes = 128U << 10;

/// Everything one worker lends to the exchanges and flights it runs. All of it outlives them.
struct WorkerServices {
  net::io_context& io;
  const Settings& settings;
  const Clock& clock;
  cache::Cache& cache;
  const cache::Sites& sites;  // whose rules make a request's key and the target to forward
  FlightTable& flights;
  OriginClient& origin;
  DiskPool& disk;
  ProxyCounters& counters;
  AccessLog* access_log;  // null: none is written
  Tunnels& tunnels;
  Purger* purger = nullptr;               // null: nobody purges through this
  std::unordered_set<Flight*> running{};  // flights whose fetch this worker drives
  bool stopping = false;                  // its loop is about to end: no flight starts any more
};

}  // namespace secondsight::proxy
