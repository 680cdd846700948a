#include "loadtest/driver.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <time.h>

#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "config/check.h"
#include "loadtest/cache_status.h"
#include "loadtest/object_url.h"
#include "loadtest/response_reader.h"

namespace secondsight::loadtest {
namespace {

using boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;

/// One request under way.
struct Exchange {
  const PlannedObject* object = nullptr;
  SteadyClock::time_point intended;  // where its latency starts
  SteadyClock::time_point sent;      // where its timeout starts
};

class Connection;

/// What a connection tells its run.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  /// The connection is free again once this has returned.
  virtual void on_end(Connection&, const Exchange&, Outcome, const ResponseReader& reader) = 0;
  virtual void on_reconnect() = 0;
};

/// One keep-alive connection, one request at a time.
class Connection {
 public:
  Connection(net::io_context& io, const DriveOptions& options, ConnectionOwner& owner)
      : socket_(io), options_(options), owner_(owner) {}

  bool busy() const noexcept { return reader_.has_value(); }
  const Exchange& exchange() const noexcept { return exchange_; }

  void start(const Exchange& exchange) {
    exchange_ = exchange;
    const auto name = parse_object_target(exchange.object->target);
    CHECK(name);
    reader_.emplace(Body(name->name, name->size_bytes));
    request_ =
        "GET " + exchange.object->target + " HTTP/1.1\r\nHost: " + options_.host + "\r\n\r\n";
    reused_ = socket_.is_open();
    reused_ ? send() : connect();
  }

  /// Ends the request under way.
  void fail(Outcome outcome) {
    close();
    end(outcome);
  }

 private:
  // Handlers of a closed socket still come; `life_` tells them that they are late.
  void connect() {
    error_code ignored;
    socket_.open(options_.server.protocol(), ignored);
    socket_.set_option(tcp::no_delay(true), ignored);
    socket_.async_connect(options_.server, [this, life = life_](const error_code& error) {
      if (life != life_) return;
      if (error) return fail(Outcome::ConnectFailed);
      send();
    });
  }

  void send() {
    begin_ = end_ = 0;
    net::async_write(socket_, net::buffer(request_),
                     [this, life = life_](const error_code& error, std::size_t) {
                       if (life != life_) return;
                       if (error) return lost();
                       read();
                     });
  }

  void read() {
    if (begin_ > 0) {  // the parser needs a head in one piece
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ == buffer_.size()) return fail(Outcome::Malformed);
    socket_.async_read_some(net::buffer(buffer_.data() + end_, buffer_.size() - end_),
                            [this, life = life_](const error_code& error, std::size_t n) {
                              if (life != life_) return;
                              if (error) return lost();
                              end_ += n;
                              take();
                            });
  }

  void take() {
    begin_ += reader_->feed(buffer_.data() + begin_, end_ - begin_);
    if (reader_->failed()) return fail(Outcome::Malformed);
    if (!reader_->done()) return read();
    if (begin_ != end_) return fail(Outcome::Malformed);
    finish();
  }

  /// The peer closed. Between two requests it may: RFC 9112 9.5 lets a client send again then,
  /// once.
  void lost() {
    const bool unanswered = !reader_->started() && end_ == 0;
    close();
    if (reused_ && unanswered) {
      reused_ = false;
      owner_.on_reconnect();
      return connect();
    }
    reader_->feed_eof();
    if (reader_->failed()) return end(Outcome::Disconnected);
    finish();
  }

  void finish() {
    if (!reader_->keeps_connection()) close();
    end(reader_->outcome());
  }

  void end(Outcome outcome) {
    owner_.on_end(*this, exchange_, outcome, *reader_);
    reader_.reset();
  }

  void close() {
    ++life_;
    error_code ignored;
    socket_.close(ignored);
  }

  static constexpr std::size_t kBufferBytes = 64u << 10;
  tcp::socket socket_;
  const DriveOptions& options_;
  ConnectionOwner& owner_;
  Exchange exchange_;
  std::string request_;
  std::optional<ResponseReader> reader_;
  std::array<char, kBufferBytes> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool reused_ = false;
  std::uint64_t life_ = 0;
};

class Run final : public ConnectionOwner {
 public:
  Run(const Plan& plan, const DriveOptions& options)
      : plan_(plan), options_(options), next_due_(io_), tick_(io_), signals_(io_, SIGINT, SIGTERM) {
    for (unsigned i = 0; i < std::max(1u, options.connections); ++i) {
      connections_.push_back(std::make_unique<Connection>(io_, options_, *this));
      idle_.push_back(connections_.back().get());
    }
  }

  DriveResult run() {
    signals_.async_wait([this](const error_code& error, int signal) {
      if (error) return;
      result_.interrupted_by = signal;
      io_.stop();
    });
    started_ = SteadyClock::now();
    const double cpu_before = thread_cpu_seconds();
    tick();
    hand_out();
    io_.run();
    result_.seconds = seconds(SteadyClock::now() - started_);
    result_.cpu_seconds = thread_cpu_seconds() - cpu_before;
    report_progress();
    return std::move(result_);
  }

 private:
  static double seconds(SteadyClock::duration d) {
    return std::chrono::duration<double>(d).count();
  }
  static std::uint64_t nanoseconds(SteadyClock::duration d) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(d).count());
  }
  static double thread_cpu_seconds() {
    timespec used{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
  }

  /// When the request at the cursor should start; in a closed loop: now.
  SteadyClock::time_point due(SteadyClock::time_point now) const {
    if (options_.rate <= 0) return now;
    const std::chrono::duration<double> offset(static_cast<double>(cursor_) / options_.rate);
    return started_ + std::chrono::duration_cast<SteadyClock::duration>(offset);
  }

  void hand_out() {
    while (cursor_ < plan_.requests.size() && !idle_.empty()) {
      const auto now = SteadyClock::now();
      const auto intended = due(now);
      if (intended > now) return wait_until(intended);
      const PlannedObject& object = plan_.objects[plan_.requests[cursor_++]];
      Connection* const connection = idle_.front();
      idle_.pop_front();
      connection->start({&object, intended, now});
    }
    if (result_.requests == plan_.requests.size()) finish();
  }

  void wait_until(SteadyClock::time_point time) {
    if (waiting_) return;
    waiting_ = true;
    next_due_.expires_at(time);
    next_due_.async_wait([this](const error_code& error) {
      waiting_ = false;
      if (!error) hand_out();
    });
  }

  void on_end(Connection& connection, const Exchange& exchange, Outcome outcome,
              const ResponseReader& reader) override {
    const auto now = SteadyClock::now();
    ++result_.requests;
    ++result_.outcomes[static_cast<std::size_t>(outcome)];
    const OutcomeFacts facts = facts_of(outcome);
    if (facts.error) ++result_.errors;
    if (facts.corrupt) ++result_.corrupt_bodies;
    if (facts.error || facts.corrupt) {
      note_failure(exchange, facts.word, reader);
    } else {
      result_.latency.record(nanoseconds(now - exchange.intended));
      count_response(*exchange.object, reader);
    }
    idle_.push_back(&connection);
    // Not from within the connection's own handler, which still uses its reader.
    net::post(io_, [this] { hand_out(); });
  }

  void count_response(const PlannedObject& object, const ResponseReader& reader) {
    result_.body_bytes += reader.body_bytes();
    const CacheStatus status = read_cache_status(reader.cache_status(), "secondsight");
    if (status.hit) {
      ++result_.hits;
      result_.hit_bytes += reader.body_bytes();
    }
    if (!status.detail.empty()) {
      const auto place = result_.details.find(status.detail);
      place == result_.details.end() ? void(result_.details.emplace(status.detail, 1))
                                     : void(++place->second);
    }
    const bool to_disk = status.stored && (status.detail == "repeat" || status.detail == "always");
    if (to_disk && object.times_asked == 1) ++result_.one_hit_written;
  }

  void note_failure(const Exchange& exchange, std::string_view word, const ResponseReader& reader) {
    constexpr std::size_t kExamplesMax = 5;
    if (result_.examples.size() >= kExamplesMax) return;
    std::string text = exchange.object->target + ": " + std::string(word);
    if (reader.status() != 0) {
      text += ", status " + std::to_string(reader.status()) + ", " +
              std::to_string(reader.body_bytes()) +
              " body bytes, Cache-Status: " + std::string(reader.cache_status());
    }
    result_.examples.push_back(std::move(text));
  }

  void on_reconnect() override { ++result_.reconnects; }

  void tick() {
    constexpr auto kTick = std::chrono::milliseconds(250);
    tick_.expires_after(kTick);
    tick_.async_wait([this](const error_code& error) {
      if (error) return;
      const auto now = SteadyClock::now();
      for (const auto& connection : connections_) {
        if (connection->busy() && now - connection->exchange().sent > options_.timeout) {
          connection->fail(Outcome::TimedOut);
        }
      }
      report_progress();
      tick();
    });
  }

  void report_progress() const {
    if (!options_.on_progress) return;
    options_.on_progress({result_.requests, plan_.requests.size(), result_.hits,
                          result_.errors + result_.corrupt_bodies, SteadyClock::now() - started_});
  }

  void finish() {
    tick_.cancel();
    next_due_.cancel();
    signals_.cancel();
    io_.stop();
  }

  const Plan& plan_;
  const DriveOptions& options_;
  net::io_context io_{1};
  net::steady_timer next_due_;
  net::steady_timer tick_;
  net::signal_set signals_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::deque<Connection*> idle_;
  std::size_t cursor_ = 0;
  bool waiting_ = false;
  SteadyClock::time_point started_;
  DriveResult result_;
};

}  // namespace

DriveResult drive(const Plan& plan, const DriveOptions& options) {
  return Run(plan, options).run();
}

}  // namespace secondsight::loadtest
