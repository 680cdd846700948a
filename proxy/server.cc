#include "proxy/server.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "admission/two_generation_filter.h"
#include "config/address.h"
#include "config/log.h"
#include "config/units.h"
#include "proxy/cache_directory.h"
#include "proxy/descriptor_limit.h"
#include "proxy/filter_gauges.h"
#include "proxy/listener.h"
#include "proxy/sighting_options.h"

namespace secondsight::proxy {
namespace {

/// Blocking reads that may wait for a disk thread; more means that the disk is far behind.
constexpr std::size_t kDiskQueueMax = 1024;

std::string to_text(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  const std::string port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? "[" + address + "]:" + port : address + ":" + port;
}

}  // namespace

Server::Server(Settings settings, const Clock& clock, std::unique_ptr<FileSystem> files)
    : settings_(std::move(settings)), clock_(clock), files_(std::move(files)) {}

Server::~Server() {
  end_workers();
  admin_.reset();
}

/// SO_REUSEPORT lets the workers share a port, and would let another process take part, too. Asked
/// before anything is opened or made.
std::string Server::find_used_address() const {
  std::vector<std::pair<const char*, ListenAddress>> addresses;
  for (const ListenAddress& at : settings_.proxy.listen) addresses.emplace_back("proxy", at);
  if (settings_.admin.enabled) addresses.emplace_back("admin", settings_.admin.listen);
  for (const auto& [table, at] : addresses) {
    if (at.port == 0) continue;
    const auto endpoint = endpoint_of(at);
    const auto failure = endpoint ? check_unused(*endpoint).error() : endpoint.error();
    if (failure) {
      return "cannot listen on [" + std::string(table) + "] listen = \"" + to_string(at) +
             "\": " + failure.message();
    }
  }
  return {};
}

std::string Server::start() {
  if (std::string failure = find_used_address(); !failure.empty()) return failure;
  raise_descriptor_limit(settings_);
  if (std::string failure = open_cache(); !failure.empty()) return failure;
  register_gauges();
  if (!settings_.log.access.empty()) {
    auto opened = AccessLog::open(settings_.log.access, metrics_);
    if (!opened) {
      return "cannot open [log] access = \"" + settings_.log.access +
             "\": " + opened.error().message();
    }
    access_log_ = std::move(*opened);
  }
  disk_ = std::make_unique<DiskPool>(settings_.cache.disk_threads, kDiskQueueMax);
  if (std::string failure = listen(); !failure.empty()) return failure;
  maintenance_ = std::make_unique<Maintenance>(settings_.admission, clock_, *policy_, *cache_,
                                               access_log_.get());
  for (const auto& worker : workers_) worker->start();
  workers_started_ = true;
  if (settings_.admin.enabled) {
    explainer_ = std::make_unique<Explainer>(settings_, clock_, *cache_, *sites_, flights_);
    admin_ = std::make_unique<Admin>(
        metrics_, [this] { return draining_.load(std::memory_order_relaxed); },
        [this](std::string_view head) { return explainer_->explain(head); },
        [this](net::io_context& io, std::string_view json) {
          return purger_->purge_json(io, json, "admin");
        },
        keeper_ ? Admin::ImportSightings([this](SightingImporter::Done done) {
          keeper_->import_offered(std::move(done));
        })
                : Admin::ImportSightings());
    const auto bound = admin_->start(settings_.admin.listen);
    if (!bound) {
      return "cannot listen on [admin] listen = \"" + settings_.admin.listen.host + ":" +
             std::to_string(settings_.admin.listen.port) + "\": " + bound.error().message();
    }
    admin_endpoint_ = *bound;
    log_line(LogLevel::Info, "admin listening", {{"address", to_text(*bound)}});
  }
  log_line(LogLevel::Info, "ready");
  return {};
}

std::string Server::open_cache() {
  const CacheSettings& cache = settings_.cache;
  const bool on_disk = cache.disk_bytes > 0;
  if (on_disk && !files_) {
    auto directory = std::make_unique<CacheDirectory>(cache.directory);
    seed_ = std::make_unique<admission::FingerprintSeed>(directory->seed());
    files_ = std::move(directory);
  } else {
    seed_ = std::make_unique<admission::FingerprintSeed>(random_seed());
  }
  try {
    policy_ = admission::make_policy(settings_.admission, clock_.steady());
  } catch (const std::bad_alloc&) {
    return "[admission] expected_keys = " + std::to_string(settings_.admission.expected_keys) +
           " needs more memory than there is";
  }
  admission::TwoGenerationFilter* const filter = on_disk ? policy_->filter() : nullptr;
  CacheSettings of_objects = cache;
  std::optional<admission::SightingJournal::Options> journal;
  if (filter != nullptr) {
    journal = journal_options(settings_, filter->size(), seed_->id());
    of_objects.disk_bytes -= journal->bytes_max;
  }
  auto opened =
      cache::Cache::open(of_objects, on_disk ? files_.get() : nullptr, *policy_, *seed_, metrics_);
  if (!opened) return "cannot use [cache] disk: " + opened.error().message();
  cache_ = std::move(*opened);
  if (journal) {
    keeper_ = std::make_unique<SightingKeeper>(*files_, *journal, *filter, clock_, metrics_,
                                               [this] { return cache_->is_directory_usable(); });
    keeper_->start();
  }
  sites_ = std::make_unique<const cache::Sites>(settings_, cache_->seed());
  purger_ = std::make_unique<Purger>(*cache_, *sites_, clock_, metrics_);
  log_line(
      LogLevel::Info, "cache open",
      {{"objects", std::to_string(cache_->objects_on_disk())},
       {"disk", on_disk && !cache_->is_disk_up() ? "not usable" : format_bytes(cache.disk_bytes)},
       {"memory", format_bytes(cache.memory_bytes)}});
  return {};
}

std::string Server::listen() {
  const ExchangeHandler::Shared shared{settings_, clock_,       *cache_,   *sites_,
                                       flights_,  *disk_,       counters_, access_log_.get(),
                                       metrics_,  purger_.get()};
  const HandlerFactory make_handler = [&](Worker& worker) {
    auto handler = std::make_unique<ExchangeHandler>(worker.io(), shared);
    worker.on_tick([raw = handler.get()](SteadyTime now) { raw->tick(now); });
    handlers_.push_back(handler.get());
    return handler;
  };
  const unsigned count = settings_.proxy.workers > 0
                             ? settings_.proxy.workers
                             : std::max(1U, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < count; ++i) {
    workers_.push_back(
        std::make_unique<Worker>(settings_.proxy, clock_, front_metrics_, make_handler));
  }
  for (const ListenAddress& wanted : settings_.proxy.listen) {
    const auto numeric = endpoint_of(wanted);
    if (!numeric) {
      return "[proxy] listen = \"" + wanted.host + "\": " + numeric.error().message();
    }
    tcp::endpoint endpoint = *numeric;
    for (const auto& worker : workers_) {
      const auto bound = worker->listen(endpoint);
      if (!bound) {
        return "cannot listen on [proxy] listen = \"" + to_text(endpoint) +
               "\": " + bound.error().message();
      }
      endpoint = *bound;  // port 0: the first worker's port is everyone's
    }
    endpoints_.push_back(endpoint);
    log_line(LogLevel::Info, "listening", {{"address", to_text(endpoint)}});
  }
  return {};
}

void Server::register_gauges() {
  const auto gauge = [this](const char* name, const char* help, std::function<double()> read) {
    metrics_.gauge(name, help, {}, std::move(read));
  };
  gauge("secondsight_index_objects", "Objects in the disk cache's index.",
        [this] { return static_cast<double>(cache_->objects_on_disk()); });
  gauge("secondsight_index_bytes", "Memory of the disk cache's index.",
        [this] { return static_cast<double>(cache_->index_bytes()); });
  gauge("secondsight_disk_bytes", "Size of the disk cache's files.",
        [this] { return static_cast<double>(cache_->disk_bytes()); });
  gauge("secondsight_disk_up", "Whether objects can be written to the disk cache.",
        [this] { return cache_->is_disk_up() ? 1.0 : 0.0; });
  gauge("secondsight_memory_bytes", "Bytes in the memory tier, overhead included.",
        [this] { return static_cast<double>(cache_->memory_bytes()); });
  gauge("secondsight_memory_objects", "Objects in the memory tier.",
        [this] { return static_cast<double>(cache_->memory_objects()); });
  gauge("secondsight_writer_queue_bytes", "Admitted bytes that wait for the disk.",
        [this] { return static_cast<double>(cache_->writer_queue_bytes()); });
  gauge("secondsight_purge_stamps", "Purges that are remembered.",
        [this] { return static_cast<double>(cache_->purge_stamps()); });
  gauge("secondsight_purge_bytes", "Memory of the purges that are remembered.",
        [this] { return static_cast<double>(cache_->purge_bytes()); });
  gauge("secondsight_purges_owed", "Purges that the disk has not taken yet.",
        [this] { return static_cast<double>(cache_->owed_purges()); });
  metrics_.counter_from(
      "secondsight_purge_folds_total",
      "How often so many purges were remembered that the older half became one of everything.", {},
      [this] { return static_cast<double>(cache_->purge_folds()); });
  gauge("secondsight_flights", "Shared fetches under way.",
        [this] { return static_cast<double>(flights_.count()); });
  register_filter_gauges(metrics_, *policy_, clock_);
  for (const bool footer : {true, false}) {
    metrics_.counter_from("secondsight_written_bytes_total",
                          "Bytes handed to the disk cache's file system, by cause.",
                          {{"cause", footer ? "footer" : "header"}}, [this, footer] {
                            const auto c = cache_->log_counters();
                            return static_cast<double>(footer ? c.footer_bytes : c.header_bytes);
                          });
  }
}

void Server::stop(const std::function<bool()>& hurry) {
  constexpr std::chrono::milliseconds kGlance{100};  // how often `hurry` is asked
  draining_.store(true, std::memory_order_relaxed);
  log_line(LogLevel::Info, "draining");
  for (const auto& worker : workers_) worker->begin_drain();
  const auto deadline = std::chrono::steady_clock::now() + settings_.proxy.drain_timeout;
  bool hurried = false;
  for (const auto& worker : workers_) {
    while (!hurried && std::chrono::steady_clock::now() < deadline &&
           !worker->wait_drained(std::min(deadline, std::chrono::steady_clock::now() + kGlance))) {
      hurried = hurry();
    }
  }
  end_workers();
  if (maintenance_) maintenance_->stop();
  if (keeper_) keeper_->stop();
  if (cache_) cache_->stop();
  if (admin_) admin_->stop();
  log_line(LogLevel::Info, "stopped");
}

/// Order matters: a flight of one worker may have readers on another. First every fetch is given up
/// on its own thread, then all threads end, then no disk call is under way any more, and only then
/// is any worker destroyed.
void Server::end_workers() {
  if (purger_) purger_->stop();
  for (std::size_t i = 0; workers_started_ && i < workers_.size(); ++i) {
    std::promise<void> cancelled;
    net::post(workers_[i]->io(), [&, i] {
      handlers_[i]->cancel_flights();
      cancelled.set_value();
    });
    cancelled.get_future().wait();
  }
  for (const auto& worker : workers_) worker->stop();
  for (const auto& worker : workers_) worker->join();
  if (disk_) disk_->stop();
  workers_.clear();
  handlers_.clear();
}

}  // namespace secondsight::proxy
