#include "proxy/admin.h"

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include "config/check.h"
#include "proxy/listener.h"

namespace secondsight::proxy {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using namespace std::chrono_literals;

constexpr unsigned kConnectionsMax = 64;
constexpr std::uint32_t kHeaderBytesMax = 8192;
constexpr std::chrono::seconds kTimeout = 10s;       // for one request, and for its answer
constexpr std::chrono::milliseconds kPause = 100ms;  // after a failed accept

using Answer = http::response<http::string_body>;

Answer make_answer(http::status status, std::string text) {
  Answer answer(status, 11);
  answer.set(http::field::content_type, "text/plain; charset=utf-8");
  answer.set(http::field::cache_control, "no-store");
  answer.body() = std::move(text);
  return answer;
}

}  // namespace

struct Admin::Impl {
  Impl(const Metrics& m, std::function<bool()> d) : metrics(m), is_draining(std::move(d)) {}

  Answer answer(http::verb method, std::string_view target) const {
    const bool is_health = target == "/healthz";
    if (!is_health && target != "/metrics")
      return make_answer(http::status::not_found, "not found\n");
    if (method != http::verb::get && method != http::verb::head) {
      Answer refusal = make_answer(http::status::method_not_allowed, "method not allowed\n");
      refusal.set(http::field::allow, "GET, HEAD");
      return refusal;
    }
    if (is_health && is_draining())
      return make_answer(http::status::service_unavailable, "draining\n");
    if (is_health) return make_answer(http::status::ok, "ok\n");
    Answer page = make_answer(http::status::ok, metrics.expose());
    page.set(http::field::content_type, "text/plain; version=0.0.4");
    return page;
  }

  net::awaitable<void> serve(tcp::socket socket) {
    beast::tcp_stream stream(std::move(socket));
    beast::flat_buffer buffer;
    for (;;) {
      http::request_parser<http::empty_body> parser;
      parser.header_limit(kHeaderBytesMax);
      stream.expires_after(kTimeout);
      const auto read = co_await http::async_read(stream, buffer, parser, use_result);
      if (std::get<0>(read)) break;
      const auto& request = parser.get();
      Answer page = answer(request.method(), std::string_view(request.target()));
      page.keep_alive(request.keep_alive());
      page.prepare_payload();
      const bool is_head = request.method() == http::verb::head;
      if (is_head) page.body().clear();
      stream.expires_after(kTimeout);
      const auto written = co_await http::async_write(stream, page, use_result);
      if (std::get<0>(written) || !page.keep_alive()) break;
    }
    beast::error_code ignored;
    stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
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
  net::io_context io{1};
  tcp::acceptor acceptor{io};
  unsigned connections = 0;  // admin thread only
  std::thread thread;
};

Admin::Admin(const Metrics& metrics, std::function<bool()> is_draining)
    : impl_(std::make_unique<Impl>(metrics, std::move(is_draining))) {}

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
}

}  // namespace secondsight::proxy
