#include "proxy/purger.h"

#include <mutex>
#include <optional>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "config/log.h"

namespace secondsight::proxy {
namespace {

namespace json = boost::json;
using cache::Purge;
using cache::PurgeKind;
using cache::PurgeScope;

json::object to_json(const Purge& purge) {
  json::object object;
  if (purge.scope == PurgeScope::Everything)
    object["everything"] = true;
  else
    object[to_string(purge.scope)] = json::string(purge.text);
  return object;
}

Purger::Answer answer_faults(int status, const PurgeFaults& faults) {
  json::array errors;
  for (const std::string& fault : faults) errors.push_back(json::string(fault));
  return {status, json::serialize(json::object{{"errors", std::move(errors)}})};
}

}  // namespace

/// Whether the event loops of those who wait are still there.
struct Purger::Gate {
  std::mutex mutex;
  bool is_open = true;  // guarded by it
};

struct Purger::Waiting {
  explicit Waiting(net::io_context& context) : io(context), timer(context, kPatience) {}
  net::io_context& io;
  net::steady_timer timer;                           // cancelled when the disk has answered
  std::optional<boost::system::error_code> outcome;  // on the waiter's thread
};

Purger::Purger(cache::Cache& cache, const cache::Sites& sites, const Clock& clock, Metrics& metrics)
    : cache_(cache),
      sites_(sites),
      clock_(clock),
      not_durable_(metrics.counter(
          "secondsight_purges_not_durable_total",
          "Requests to purge that were answered before the disk had taken the purge.")),
      gate_(std::make_shared<Gate>()) {
  for (std::size_t scope = 0; scope < counters_.size(); ++scope) {
    for (std::size_t kind = 0; kind < counters_[scope].size(); ++kind) {
      counters_[scope][kind] =
          &metrics.counter("secondsight_purges_total", "Purges, by what they concern and how.",
                           {{"scope", std::string(to_string(static_cast<PurgeScope>(scope)))},
                            {"kind", std::string(to_string(static_cast<PurgeKind>(kind)))}});
    }
  }
}

Purger::~Purger() {
  stop();
}

void Purger::stop() {
  const std::lock_guard lock(gate_->mutex);
  gate_->is_open = false;
}

net::awaitable<Purger::Answer> Purger::purge_json(net::io_context& io, std::string_view text,
                                                  std::string_view by) {
  auto read = read_purge_request(text, sites_);
  if (const auto* faults = std::get_if<PurgeFaults>(&read)) co_return answer_faults(400, *faults);
  auto request = std::get<PurgeRequest>(std::move(read));
  std::string who(by);
  co_return co_await purge(io, std::move(request), std::move(who));
}

net::awaitable<Purger::Answer> Purger::purge_url(net::io_context& io, std::string_view host,
                                                 std::string_view target, PurgeKind kind,
                                                 std::string_view by) {
  PurgeRequest request;
  auto wanted = purge_of_url(host, target, kind, sites_);
  if (!wanted) {
    const std::string limit = std::to_string(cache::kPurgeTextBytesMax);
    const PurgeFaults faults{"the URL has more than " + limit + " bytes: purge it by a prefix"};
    co_return answer_faults(414, faults);
  }
  request.purges.push_back(std::move(*wanted));
  std::string who(by);
  co_return co_await purge(io, std::move(request), std::move(who));
}

net::awaitable<Purger::Answer> Purger::purge(net::io_context& io, PurgeRequest request,
                                             std::string by) {
  const auto waiting = begin(io, request);
  note(request, by);
  while (!waiting->outcome && waiting->timer.expiry() > std::chrono::steady_clock::now())
    co_await waiting->timer.async_wait(use_result);

  json::array purged;
  for (const Purge& purge : request.purges) purged.push_back(to_json(purge));
  const bool is_durable = waiting->outcome && !*waiting->outcome;
  json::object told{
      {"purged", std::move(purged)}, {"soft", request.is_soft()}, {"durable", is_durable}};
  Answer answer;
  if (!is_durable) {
    answer.status = 503;
    const std::string reason =
        waiting->outcome ? waiting->outcome->message() : "the disk has not answered yet";
    told["reason"] = json::string(reason);
    not_durable_.add();
  }
  answer.json = json::serialize(told);
  co_return answer;
}

/// In effect when it returns.
std::shared_ptr<Purger::Waiting> Purger::begin(net::io_context& io, const PurgeRequest& request) {
  auto waiting = std::make_shared<Waiting>(io);
  cache_.purge(request.purges, clock_.wall(),
               [weak = std::weak_ptr(waiting), gate = gate_](const auto& error) {
                 const std::lock_guard lock(gate->mutex);
                 const auto asker = gate->is_open ? weak.lock() : nullptr;
                 if (!asker) return;  // gone, and with it perhaps its event loop
                 net::post(asker->io, [asker, error] {
                   asker->outcome = error;
                   asker->timer.cancel();
                 });
               });
  return waiting;
}

void Purger::note(const PurgeRequest& request, std::string_view by) {
  for (const Purge& purge : request.purges) {
    counters_[static_cast<std::size_t>(purge.scope)][static_cast<std::size_t>(purge.kind)]->add();
    log_line(LogLevel::Info, "purge",
             {{"scope", to_string(purge.scope)},
              {"kind", to_string(purge.kind)},
              {"what", purge.text},
              {"by", by}});
  }
}

}  // namespace secondsight::proxy
