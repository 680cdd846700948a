#include "loadtest/origin.h"

#include <algorithm>
#include <array>
#include <pthread.h>
#include <thread>
#include <time.h>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/basic_parser.hpp>

#include "config/clock.h"
#include "loadtest/origin_response.h"

namespace secondsight::loadtest {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

/// Takes the few fields that the origin answers by; their views point into the connection's buffer.
class RequestParser final : public http::basic_parser<true> {
 public:
  OriginRequestHead head;

 private:
  using text = boost::beast::string_view;
  static std::string_view view(text t) { return {t.data(), t.size()}; }

  void on_request_impl(http::verb, text method, text target, int, error_code&) override {
    head.method = view(method);
    head.target = view(target);
  }
  void on_field_impl(http::field name, text, text value, error_code&) override {
    if (name == http::field::if_none_match) head.if_none_match = view(value);
    if (name == http::field::range) head.range = view(value);
    if (name == http::field::if_range) head.if_range = view(value);
  }
  void on_header_impl(error_code&) override {}
  void on_response_impl(int, text, int, error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(text body, error_code&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, text, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, text body, error_code&) override {
    return body.size();
  }
  void on_finish_impl(error_code&) override {}
};

/// One client connection. Answers whole heads out of its buffer in order, so pipelining needs no
/// queue.
class OriginSession : public std::enable_shared_from_this<OriginSession> {
 public:
  OriginSession(tcp::socket socket, OriginCounters& counters, std::chrono::seconds max_age)
      : socket_(std::move(socket)), counters_(counters), max_age_(max_age) {}

  void start() {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    socket_.non_blocking(true, ignored);
    read();
  }
  void close() {
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  void read() {
    if (filled_ == buffer_.size()) return close();  // a head larger than the buffer
    socket_.async_read_some(net::buffer(buffer_.data() + filled_, buffer_.size() - filled_),
                            [self = shared_from_this()](const error_code& error, std::size_t n) {
                              if (error) return self->close();
                              self->filled_ += n;
                              self->serve();
                            });
  }

  /// Answers every whole head in the buffer, until a write has to wait.
  void serve() {
    while (true) {
      if (!sent_whole_response()) return wait_to_write();
      if (!socket_.is_open()) return;
      if (closing_) return close();
      if (!take_request()) break;
    }
    read();
  }

  bool take_request() {
    if (filled_ == 0 || closing_) return false;
    RequestParser parser;
    error_code error;
    const std::size_t used = parser.put(net::buffer(buffer_.data(), filled_), error);
    if (!parser.is_header_done() && error == http::error::need_more) return false;
    head_sent_ = 0;
    body_at_ = 0;
    if (!parser.is_header_done()) {
      counters_.refused.fetch_add(1, std::memory_order_relaxed);
      response_ = {};
      response_.head = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
      closing_ = true;
      filled_ = 0;
      return true;
    }
    // A body would have to be read before the next head; nothing here takes one.
    parser.head.keep_alive = parser.keep_alive() && parser.is_done();
    closing_ = !parser.head.keep_alive;
    const SystemClock clock;
    response_ = answer(parser.head, max_age_, clock.wall());
    count(parser.head);
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(used),
              buffer_.begin() + static_cast<std::ptrdiff_t>(filled_), buffer_.begin());
    filled_ -= used;
    body_at_ = response_.first;
    return true;
  }

  void count(const OriginRequestHead& head) {
    const auto add = [](std::atomic<std::uint64_t>& counter, std::uint64_t n) {
      counter.fetch_add(n, std::memory_order_relaxed);
    };
    if (response_.status == 304) {
      add(counters_.not_modified, 1);
    } else if (response_.status >= 400) {
      add(counters_.refused, 1);
    } else if (head.method == "HEAD") {
      add(counters_.heads, 1);
    } else {
      add(counters_.fetches, 1);
      add(counters_.body_bytes, response_.end - response_.first);
    }
  }

  /// Gathers the head's rest and the next runs of the body into one write after the other. False
  /// when the socket would block. An error closes the socket, which counts as sent.
  bool sent_whole_response() {
    constexpr std::size_t kPieces = 16;  // of up to 256 KiB: more than a socket buffer takes
    while (head_sent_ < response_.head.size() || body_at_ < response_.end) {
      std::array<net::const_buffer, kPieces> pieces;
      std::size_t count = 0;
      if (head_sent_ < response_.head.size()) {
        pieces[count++] = net::buffer(response_.head) + head_sent_;
      }
      std::uint64_t at = body_at_;
      while (count < kPieces && at < response_.end) {
        const auto run = response_.body->run_at(at);
        const auto bytes =
            static_cast<std::size_t>(std::min<std::uint64_t>(run.size(), response_.end - at));
        pieces[count++] = net::buffer(run.data(), bytes);
        at += bytes;
      }
      error_code error;
      const std::size_t sent = socket_.write_some(pieces, error);
      if (error == net::error::would_block) return false;
      if (error) {
        close();
        return true;
      }
      const std::size_t of_head = std::min(sent, response_.head.size() - head_sent_);
      head_sent_ += of_head;
      body_at_ += sent - of_head;
    }
    return true;
  }

  void wait_to_write() {
    socket_.async_wait(tcp::socket::wait_write,
                       [self = shared_from_this()](const error_code& error) {
                         if (error) return self->close();
                         self->serve();
                       });
  }

  static constexpr std::size_t kBufferBytes = 16u << 10;
  tcp::socket socket_;
  OriginCounters& counters_;
  std::chrono::seconds max_age_;
  std::array<char, kBufferBytes> buffer_;
  std::size_t filled_ = 0;
  OriginResponse response_;
  std::size_t head_sent_ = 0;
  std::uint64_t body_at_ = 0;
  bool closing_ = false;
};

}  // namespace

/// One event loop and thread each; the acceptor lives on the first and deals connections out in
/// turn.
struct Origin::Impl {
  struct Loop {
    net::io_context io{1};
    std::thread thread;
  };

  explicit Impl(unsigned threads) : loops(threads), acceptor(loops.front().io) {}

  void accept() {
    Loop& loop = loops[next++ % loops.size()];
    acceptor.async_accept(loop.io, [this, &loop](const error_code& error, tcp::socket socket) {
      if (error == net::error::operation_aborted) return;
      if (!error) {
        auto session = std::make_shared<OriginSession>(std::move(socket), counters, max_age);
        net::post(loop.io, [session] { session->start(); });
      }
      accept();
    });
  }

  std::vector<Loop> loops;
  tcp::acceptor acceptor;
  tcp::endpoint endpoint;
  std::chrono::seconds max_age{0};
  OriginCounters counters;
  std::size_t next = 0;
};

Origin::Origin() = default;

Result<std::unique_ptr<Origin>> Origin::start(const Options& options) {
  error_code error;
  const auto address = net::ip::make_address(options.host, error);
  if (error) return make_error_code(boost::system::errc::invalid_argument);
  std::unique_ptr<Origin> origin(new Origin);
  origin->impl_ = std::make_unique<Impl>(std::max(1u, options.threads));
  Impl& impl = *origin->impl_;
  impl.max_age = options.max_age;
  const tcp::endpoint wanted(address, options.port);
  impl.acceptor.open(wanted.protocol(), error);
  if (!error) impl.acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) impl.acceptor.bind(wanted, error);
  if (!error) impl.acceptor.listen(net::socket_base::max_listen_connections, error);
  if (!error) impl.endpoint = impl.acceptor.local_endpoint(error);
  if (error) return error;
  impl.accept();
  for (Impl::Loop& loop : impl.loops) {
    loop.thread = std::thread([&loop] {
      const auto work = net::make_work_guard(loop.io);
      loop.io.run();
    });
  }
  return origin;
}

Origin::~Origin() {
  if (!impl_) return;
  for (Impl::Loop& loop : impl_->loops) loop.io.stop();
  for (Impl::Loop& loop : impl_->loops) {
    if (loop.thread.joinable()) loop.thread.join();
  }
}

tcp::endpoint Origin::endpoint() const {
  return impl_->endpoint;
}

std::string Origin::url() const {
  const auto& address = impl_->endpoint.address();
  const std::string host = address.is_v6() ? '[' + address.to_string() + ']' : address.to_string();
  return "http://" + host + ':' + std::to_string(impl_->endpoint.port());
}

const OriginCounters& Origin::counters() const noexcept {
  return impl_->counters;
}

double Origin::cpu_seconds() const {
  double total = 0;
  for (Impl::Loop& loop : impl_->loops) {
    clockid_t clock{};
    timespec used{};
    if (pthread_getcpuclockid(loop.thread.native_handle(), &clock) == 0 &&
        clock_gettime(clock, &used) == 0) {
      total += static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
    }
  }
  return total;
}

}  // namespace secondsight::loadtest
