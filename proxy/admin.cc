#include "proxy/admin.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "config/check.h"
#include "proxy/listener.h"

namespace secondsight::proxy {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using namespace std::chrono_literals;

constexpr unsigned kConnectionsMax = 512;
// Fewer: while a disk hangs and purges wait for it, health and metrics are still told.
constexpr unsigned kPurgesMax = 128;
constexpr std::uint32_t kHeaderBytesMax = 8192;
constexpr std::uint64_t kBodyBytesMax = 64U << 10;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::size_t kDroppedBytesMax = 1U << 20;    // of a body that is too large
constexpr std::chrono::seconds kTimeout = 10s;        // for one request, and for its answer
constexpr std::chrono::milliseconds kPause = 100ms;   // after a failed accept
constexpr std::chrono::seconds kImportTimeout = 60s;  // a snapshot is read and kept on a slow disk

using Answer = http::response<http::string_body>;

Answer make_answer(http::status status, std::string text) {
  Answer answer(status, 11);
  answer.set(http::field::content_type, "text/plain; charset=utf-8");
  answer.set(http::field::cache_control, "no-store");
  answer.body() = std::move(text);
  return answer;
}

Answer make_json(http::status status, const boost::json::object& content) {
  Answer answer = make_answer(status, boost::json::serialize(content) + "\n");
  answer.set(http::field::content_type, "application/json");
  return answer;
}

Answer refuse_method(const char* allowed) {
  Answer refusal = make_answer(http::status::method_not_allowed, "method not allowed\n");
  refusal.set(http::field::allow, allowed);
  return refusal;
}

boost::json::object to_json(const Explanation& explanation) {
  boost::json::array words;
  for (const auto& [label, text] : explanation.words)
    words.push_back(boost::json::array{label, text});
  return {{"facts", explanation.facts}, {"words", std::move(words)}};
}

/// Whether the event loop of those who wait is still there.
struct Gate {
  std::mutex mutex;
  bool is_open = true;  // guarded by it
};

/// One who waits for an import. Lives and dies with the event loop.
struct ImportWait {
  explicit ImportWait(net::io_context& context) : io(context), timer(context, kImportTimeout) {}
  net::io_context& io;
  net::steady_timer timer;               // cancelled by the outcome
  std::optional<SnapshotImport> result;  // admin thread
};

}  // namespace

struct Admin::Impl {
  Impl(const Metrics& m, std::function<bool()> d, Explain e, Purge p, ImportSightings i)
      : metrics(m),
        is_draining(std::move(d)),
        explain(std::move(e)),
        purge(std::move(p)),
        import_sightings(std::move(i)) {}

  Answer answer(http::verb method, std::string_view target, std::string_view body) const {
    if (target == "/explain") {
      return method == http::verb::post ? answer_explain(body) : refuse_method("POST");
    }
    // POST has been answered.
    if (target == "/purge" || (target == "/sightings/import" && import_sightings))
      return refuse_method("POST");
    const bool is_health = target == "/healthz";
    if (!is_health && target != "/metrics")
      return make_answer(http::status::not_found, "not found\n");
    if (method != http::verb::get && method != http::verb::head) return refuse_method("GET, HEAD");
    if (is_health && is_draining())
      return make_answer(http::status::service_unavailable, "draining\n");
    if (is_health) return make_answer(http::status::ok, "ok\n");
    Answer page = make_answer(http::status::ok, metrics.expose());
    page.set(http::field::content_type, "text/plain; version=0.0.4");
    return page;
  }

  Answer answer_explain(std::string_view head) const {
    const auto outcome = explain(head);
    if (const auto* refused = std::get_if<NotExplained>(&outcome))
      return make_json(http::status::bad_request, {{"error", refused->reason}});
    return make_json(http::status::ok, to_json(std::get<Explanation>(outcome)));
  }

  net::awaitable<Answer> answer_purge(const http::request<http::string_body>& request) {
    // A page that an operator looks at can send a POST here, though not read the answer.
    if (request.find(http::field::origin) != request.end())
      co_return make_json(http::status::forbidden, {{"errors", {"not from a web page"}}});
    if (purges >= kPurgesMax)
      co_return make_json(http::status::service_unavailable,
                          {{"errors", {"too many purges wait for the disk; try again"}}});
    ++purges;
    const Purger::Answer purged = co_await purge(io, request.body());
    --purges;
    Answer answer =
        make_answer(http::int_to_status(static_cast<unsigned>(purged.status)), purged.json + "\n");
    answer.set(http::field::content_type, "application/json");
    co_return answer;
  }

  net::awaitable<Answer> answer_import(const http::request<http::string_body>& request) {
    if (!import_sightings) co_return make_answer(http::status::not_found, "not found\n");
    if (request.find(http::field::origin) != request.end())
      co_return answer_outcome(http::status::forbidden, refuse_import("not from a web page"));
    if (is_importing) {
      co_return answer_outcome(http::status::service_unavailable,
                               refuse_import("another import is under way; try again"));
    }
    is_importing = true;
    const auto wait = std::make_shared<ImportWait>(io);
    import_sightings([weak = std::weak_ptr(wait), gate = gate](SnapshotImport outcome) {
      const std::lock_guard lock(gate->mutex);
      const auto waiting = gate->is_open ? weak.lock() : nullptr;
      if (!waiting) return;  // gone, and with it perhaps the event loop
      net::post(waiting->io, [waiting, outcome = std::move(outcome)]() mutable {
        waiting->result = std::move(outcome);
        waiting->timer.cancel();
      });
    });
    while (!wait->result && wait->timer.expiry() > std::chrono::steady_clock::now())
      (void)co_await wait->timer.async_wait(use_result);
    is_importing = false;
    if (!wait->result) {
      co_return answer_outcome(http::status::service_unavailable,
                               refuse_import("the proxy has not taken it up in a minute"));
    }
    co_return answer_outcome(is_refused(*wait->result) ? http::status::conflict : http::status::ok, *wait->result);
  }

  static Answer answer_outcome(http::status status, const SnapshotImport& outcome) {
    Answer answer = make_answer(status, proxy::to_json(outcome) + "\n");
    answer.set(http::field::content_type, "application/json");
    return answer;
  }

  /// What is still coming of a body that is too large: closing before would reset the connection,
  /// and the reset may overtake our answer.
  static net::awaitable<void> drop_rest(beast::tcp_stream& stream, beast::flat_buffer& buffer) {
    std::size_t dropped = 0;
    for (beast::error_code error; !error && dropped < kDroppedBytesMax;) {
      buffer.clear();
      const auto read = co_await stream.async_read_some(buffer.prepare(kBodyBytesMax), use_result);
      error = std::get<0>(read);
      dropped += std::get<1>(read);
    }
  }

  net::awaitable<void> serve(tcp::socket socket) {
    beast::tcp_stream stream(std::move(socket));
    beast::flat_buffer buffer;
    bool too_large = false;
    for (;;) {
      http::request_parser<http::string_body> parser;
      parser.header_limit(kHeaderBytesMax);
      parser.body_limit(kBodyBytesMax);
      stream.expires_after(kTimeout);
      beast::error_code error;
      const auto head = co_await http::async_read_header(stream, buffer, parser, use_result);
      error = std::get<0>(head);
      if (!error && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
        const auto told = co_await net::async_write(stream, net::buffer(kContinue), use_result);
        error = std::get<0>(told);
      }
      if (!error) {
        const auto read = co_await http::async_read(stream, buffer, parser, use_result);
        error = std::get<0>(read);
      }
      too_large = error == http::error::body_limit;
      if (error && !too_large) break;
      const auto& request = parser.get();
      Answer page;
      if (too_large) {
        page =
            make_json(http::status::payload_too_large, {{"error", "a body of more than 64 KiB"}});
      } else if (request.target() == "/purge" && request.method() == http::verb::post) {
        page = co_await answer_purge(request);
      } else if (request.target() == "/sightings/import" && request.method() == http::verb::post) {
        page = co_await answer_import(request);
      } else {
        page = answer(request.method(), std::string_view(request.target()), request.body());
      }
      page.keep_alive(request.keep_alive() && !too_large);
      page.prepare_payload();
      const bool is_head = request.method() == http::verb::head;
      if (is_head) page.body().clear();
      stream.expires_after(kTimeout);
      const auto written = co_await http::async_write(stream, page, use_result);
      if (std::get<0>(written) || !page.keep_alive()) break;
    }
    beast::error_code ignored;
    stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
    if (too_large) co_await drop_rest(stream, buffer);
    --connections;
  }

  net::awaitable<void> accept() {
    net::steady_timer pause(io);
    for (;;) {
      auto [error, socket] = co_await acceptor.async_accept(use_result);
      if (error) {
        pause.expires_after(kPause);
        (void)co_await pause.async_wait(use_result);
      } else if (connections < kConnectionsMax) {
        ++connections;
        net::co_spawn(io, serve(std::move(socket)), net::detached);
      }
    }
  }

  const Metrics& metrics;
  const std::function<bool()> is_draining;
  const Explain explain;
  const Purge purge;
  const ImportSightings import_sightings;
  const std::shared_ptr<Gate> gate = std::make_shared<Gate>();  // with who imports
  net::io_context io{1};
  tcp::acceptor acceptor{io};
  unsigned connections = 0;  // admin thread only, as the next
  unsigned purges = 0;       // that wait for the disk
  bool is_importing = false;
  std::thread thread;
};

Admin::Admin(const Metrics& metrics, std::function<bool()> is_draining, Explain explain,
             Purge purge, ImportSightings import_sightings)
    : impl_(std::make_unique<Impl>(metrics, std::move(is_draining), std::move(explain),
                                   std::move(purge), std::move(import_sightings))) {}

Admin::~Admin() {
  stop();
}

Result<tcp::endpoint> Admin::start(const ListenAddress& address) {
  CHECK(!impl_->thread.joinable());
  const auto endpoint = endpoint_of(address);
  if (endpoint.has_error()) return endpoint.error();
  if (const auto unused = check_unused(*endpoint); unused.has_error()) return unused.error();
  auto acceptor = open_listener(impl_->io, *endpoint);
  if (acceptor.has_error()) return acceptor.error();
  impl_->acceptor = std::move(acceptor.value());
  beast::error_code error;
  const auto bound = impl_->acceptor.local_endpoint(error);
  if (error) return error;
  net::co_spawn(impl_->io, impl_->accept(), net::detached);
  impl_->thread = std::thread([this] { impl_->io.run(); });
  return bound;
}

void Admin::stop() {
  impl_->io.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
  const std::lock_guard lock(impl_->gate->mutex);
  impl_->gate->is_open = false;
}

}  // namespace secondsight::proxy
