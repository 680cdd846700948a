#include "proxy/origin.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <curl/curl.h>

#include "config/check.h"
#include "proxy/origin_choice.h"
#include "proxy/origin_sockets.h"
#include "proxy/origin_transfer.h"

namespace secondsight::proxy {
namespace {

// In the order of OriginError.
constexpr std::array<std::string_view, 9> kErrorNames{
    "none",      "unreachable", "connect-timeout", "response-timeout", "disconnected",
    "malformed", "truncated",   "request-body",    "cancelled"};
static_assert(kErrorNames.size() == static_cast<std::size_t>(OriginError::Cancelled) + 1);

class CurlOriginClient;

// The caller's end of a fetch; empty once the fetch is over or the client is gone.
class CurlFetch final : public OriginFetch {
 public:
  CurlFetch(CurlOriginClient& client, std::size_t slot) : client_(&client), slot_(slot) {}
  ~CurlFetch() override;
  void resume() override;
  void over() noexcept { client_ = nullptr; }

 private:
  CurlOriginClient* client_;
  std::size_t slot_;
};

struct OriginMetrics {
  explicit OriginMetrics(Metrics& metrics)
      : fetches(metrics.counter("secondsight_origin_fetches_total", "Requests for the origin.")),
        connections(metrics.counter("secondsight_origin_connections_total",
                                    "Connections opened to the origin.")) {
    for (std::size_t i = 1; i < kErrorNames.size(); ++i) {
      const auto name = to_string(static_cast<OriginError>(i));
      errors[i] =
          &metrics.counter("secondsight_origin_errors_total",
                           "Requests for the origin that failed.", {{"error", std::string(name)}});
    }
  }
  Counter& fetches;
  Counter& connections;
  std::array<Counter*, kErrorNames.size()> errors{};
};

class CurlOriginClient final : public OriginClient {
 public:
  CurlOriginClient(net::io_context& io, const OriginSettings& settings, const Clock& clock,
                   Metrics& metrics)
      : io_(io),
        settings_(settings),
        clock_(clock),
        metrics_(metrics),
        choice_(settings.urls.size()),
        sockets_(io, [this](curl_socket_t socket, int events) { act(socket, events); }),
        multi_(curl_multi_init()),
        self_(std::make_shared<CurlOriginClient*>(this)) {
    CHECK(!settings_.urls.empty());
    CHECK(multi_ != nullptr);
    sockets_.drive(multi_);
    const long per_host = static_cast<long>(settings_.max_connections);
    curl_multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS, per_host);
    // Every connection that may be open may also wait in the pool.
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS,
                      per_host * static_cast<long>(settings_.urls.size()));
  }

  ~CurlOriginClient() override {
    CHECK(!in_curl_);
    *self_ = nullptr;
    for (const auto& slot : slots_) {
      if (slot->fetch != nullptr) slot->fetch->over();
      slot->transfer.detach();
      if (slot->added) curl_multi_remove_handle(multi_, slot->transfer.easy());
    }
    slots_.clear();
    curl_multi_cleanup(multi_);
  }

  std::unique_ptr<OriginFetch> start(OriginRequest request, OriginReceiver& receiver) override;
  bool is_down(SteadyTime now) override { return choice_.is_down(now); }
  void tick(SteadyTime now) override;

  void cancel(std::size_t index);
  void resume(std::size_t index) { slots_[index]->transfer.resume(); }

 private:
  // A place in the pool of easy handles. It stays where it is for the client's life.
  struct Slot {
    Slot(std::size_t at, CurlOriginClient& client)
        : index(at),
          transfer(client.io_, client.sockets_, client.settings_, client.metrics_.connections),
          tried(client.settings_.urls.size()) {
      CHECK(curl_easy_setopt(transfer.easy(), CURLOPT_PRIVATE, this) == CURLE_OK);
    }
    std::size_t index;
    OriginTransfer transfer;
    CurlFetch* fetch = nullptr;  // the caller's end, while both live
    std::vector<bool> tried;     // origins, for this fetch
    std::uint64_t serial = 0;    // of the fetch that uses it
    bool busy = false;
    bool added = false;  // to multi_
  };

  // No call into the multi handle is allowed while libcurl runs; what a callback asks for waits in
  // to_remove_ and to_add_ for settle().
  class InCurl {
   public:
    explicit InCurl(CurlOriginClient& client) : client_(client) {
      CHECK(!std::exchange(client_.in_curl_, true));
    }
    ~InCurl() { client_.in_curl_ = false; }
    InCurl(const InCurl&) = delete;
    InCurl& operator=(const InCurl&) = delete;

   private:
    CurlOriginClient& client_;
  };

  Slot& take_slot();
  void act(curl_socket_t socket, int events);
  void settle();
  void add(Slot& slot);
  void remove(Slot& slot);
  void unpause_later(Slot& slot);
  void completed(Slot& slot, CURLcode code);
  bool try_next_origin(Slot& slot);
  void finish(Slot& slot, OriginError error);
  void recycle(Slot& slot);

  net::io_context& io_;
  const OriginSettings settings_;
  const Clock& clock_;
  OriginMetrics metrics_;
  OriginChoice choice_;
  OriginSockets sockets_;
  CURLM* multi_;
  std::shared_ptr<CurlOriginClient*> self_;  // empty at the end, for handlers that are still posted
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::size_t> free_;
  std::vector<std::size_t> to_remove_;
  std::vector<std::size_t> to_add_;
  std::vector<std::size_t> expired_;
  bool in_curl_ = false;
};

CurlFetch::~CurlFetch() {
  if (client_ != nullptr) client_->cancel(slot_);
}

void CurlFetch::resume() {
  if (client_ != nullptr) client_->resume(slot_);
}

CurlOriginClient::Slot& CurlOriginClient::take_slot() {
  if (free_.empty()) {
    slots_.push_back(std::make_unique<Slot>(slots_.size(), *this));
    return *slots_.back();
  }
  Slot& slot = *slots_[free_.back()];
  free_.pop_back();
  return slot;
}

std::unique_ptr<OriginFetch> CurlOriginClient::start(OriginRequest request,
                                                     OriginReceiver& receiver) {
  metrics_.fetches.add();
  Slot& slot = take_slot();
  auto fetch = std::make_unique<CurlFetch>(*this, slot.index);
  slot.fetch = fetch.get();
  slot.busy = true;
  ++slot.serial;
  slot.tried.assign(slot.tried.size(), false);
  const SteadyTime now = clock_.steady();
  const auto origin = choice_.pick(slot.tried, now);
  CHECK(origin.has_value());
  slot.transfer.begin(request, receiver, [this, &slot] { unpause_later(slot); });
  slot.transfer.expect_head_by(now + settings_.response_timeout);
  slot.transfer.aim(*origin);
  if (in_curl_) {
    to_add_.push_back(slot.index);
  } else {
    add(slot);
  }
  return fetch;
}

// Only queues the transfer: libcurl begins when its timer, set here to "now", is served.
void CurlOriginClient::add(Slot& slot) {
  slot.tried[slot.transfer.origin()] = true;
  const InCurl guard(*this);
  CHECK(curl_multi_add_handle(multi_, slot.transfer.easy()) == CURLM_OK);
  slot.added = true;
}

void CurlOriginClient::remove(Slot& slot) {
  if (!std::exchange(slot.added, false)) return;
  const InCurl guard(*this);
  CHECK(curl_multi_remove_handle(multi_, slot.transfer.easy()) == CURLM_OK);
}

void CurlOriginClient::act(curl_socket_t socket, int events) {
  {
    const InCurl guard(*this);
    int running = 0;
    CHECK(curl_multi_socket_action(multi_, socket, events, &running) == CURLM_OK);
  }
  settle();
}

// Does what callbacks asked for and tells receivers what has ended. They may start, cancel and
// resume fetches meanwhile; nothing here keeps a place across such a call.
void CurlOriginClient::settle() {
  while (!to_remove_.empty()) {
    Slot& slot = *slots_[to_remove_.back()];
    to_remove_.pop_back();
    recycle(slot);
  }
  for (const std::size_t index : to_add_) {
    Slot& slot = *slots_[index];
    if (slot.busy && !slot.added) add(slot);
  }
  to_add_.clear();
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    Slot* slot = nullptr;
    CHECK(curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &slot) == CURLE_OK);
    completed(*slot, message->data.result);
  }
}

void CurlOriginClient::completed(Slot& slot, CURLcode code) {
  const OriginError error = slot.transfer.verdict(code);
  const bool unreached = error == OriginError::Unreachable || error == OriginError::ConnectTimeout;
  if (unreached) {
    choice_.failed(slot.transfer.origin(), clock_.steady());
    if (try_next_origin(slot)) return;
  } else {
    choice_.reached(slot.transfer.origin());
  }
  finish(slot, error);
}

bool CurlOriginClient::try_next_origin(Slot& slot) {
  const auto origin = choice_.pick(slot.tried, clock_.steady());
  if (!origin) return false;
  remove(slot);
  slot.transfer.aim(*origin);
  add(slot);
  return true;
}

void CurlOriginClient::finish(Slot& slot, OriginError error) {
  if (error != OriginError::None) metrics_.errors[static_cast<std::size_t>(error)]->add();
  OriginReceiver& receiver = slot.transfer.receiver();
  slot.fetch->over();
  recycle(slot);
  receiver.on_done(error);
}

void CurlOriginClient::recycle(Slot& slot) {
  slot.transfer.detach();
  remove(slot);
  slot.fetch = nullptr;
  slot.busy = false;
  free_.push_back(slot.index);
}

void CurlOriginClient::cancel(std::size_t index) {
  Slot& slot = *slots_[index];
  metrics_.errors[static_cast<std::size_t>(OriginError::Cancelled)]->add();
  slot.fetch = nullptr;
  slot.transfer.detach();
  if (in_curl_) {
    to_remove_.push_back(index);
  } else {
    recycle(slot);
  }
}

// Posted, because libcurl delivers the bytes it holds from within curl_easy_pause().
void CurlOriginClient::unpause_later(Slot& slot) {
  net::post(io_, [self = self_, index = slot.index, serial = slot.serial] {
    CurlOriginClient* client = *self;
    if (client == nullptr) return;
    Slot& paused = *client->slots_[index];
    if (!paused.busy || paused.serial != serial) return;
    CURLcode code = CURLE_OK;
    {
      const InCurl guard(*client);
      code = paused.transfer.apply_pauses();
    }
    // A callback failed in there, which libcurl itself then forgets.
    if (code != CURLE_OK && paused.transfer.attached()) client->completed(paused, code);
    client->settle();
  });
}

void CurlOriginClient::tick(SteadyTime now) {
  expired_.clear();
  for (const auto& slot : slots_)
    if (slot->busy && slot->transfer.attached() && slot->transfer.expired(now))
      expired_.push_back(slot->index);
  // A receiver may end others of these, and start new fetches in their places.
  for (std::size_t i = 0; i < expired_.size(); ++i) {
    Slot& slot = *slots_[expired_[i]];
    if (slot.busy && slot.transfer.attached() && slot.transfer.expired(now))
      finish(slot, slot.transfer.verdict_of_timeout());
  }
}

}  // namespace

std::string_view to_string(OriginError error) noexcept {
  return kErrorNames[static_cast<std::size_t>(error)];
}

std::unique_ptr<OriginClient> make_curl_origin_client(net::io_context& io,
                                                      const OriginSettings& settings,
                                                      const Clock& clock, Metrics& metrics) {
  static const bool initialised = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  CHECK(initialised);
  return std::make_unique<CurlOriginClient>(io, settings, clock, metrics);
}

}  // namespace secondsight::proxy
