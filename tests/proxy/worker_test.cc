#include "proxy/worker.h"

#include <atomic>
#include <future>

#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include "config/metrics.h"
#include "proxy/listener.h"
#include "tests/support/raw_client.h"

namespace secondsight::proxy {
namespace {

using namespace std::chrono_literals;
using testing::RawClient;

const tcp::endpoint kAnyPort(net::ip::address_v4::loopback(), 0);

/// "/never" waits without end; all else is answered with the worker's name.
class NamedHandler final : public Handler {
 public:
  NamedHandler(net::io_context& io, std::string name, std::promise<void>* is_waiting)
      : never_(io, net::steady_timer::time_point::max()),
        name_(std::move(name)),
        is_waiting_(is_waiting) {}

  net::awaitable<void> handle(const Request& request, BodySource&, ResponseSink& sink) override {
    if (request.target == "/never") {
      is_waiting_->set_value();
      (void)co_await never_.async_wait(use_result);
    }
    ResponseSink::Head head;
    head.ready = "HTTP/1.1 200 OK\r\n";
    head.content_length = name_.size();
    sink.begin(head);
    const auto piece = std::as_bytes(std::span(name_));
    if ((co_await sink.write(std::span(&piece, 1))).has_error()) co_return;
    (void)co_await sink.finish();
  }

 private:
  net::steady_timer never_;
  std::string name_;
  std::promise<void>* is_waiting_;
};

class WorkerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Worker> make_worker(const std::string& name) {
    return std::make_unique<Worker>(settings, clock, front, [this, name](Worker& worker) {
      return std::make_unique<NamedHandler>(worker.io(), name, &is_waiting);
    });
  }
  ProxySettings settings;
  SystemClock clock;
  Metrics metrics;
  FrontMetrics front{metrics};
  std::promise<void> is_waiting;
};

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view kNever = "GET /never HTTP/1.1\r\nHost: a\r\n\r\n";

TEST_F(WorkerTest, WorkersShareAPortTheKernelChose) {
  const auto one = make_worker("one");
  const auto two = make_worker("two");
  const auto bound = one->listen(kAnyPort);
  ASSERT_TRUE(bound.has_value());
  ASSERT_NE(bound->port(), 0);
  ASSERT_TRUE(two->listen(*bound).has_value());
  one->start();
  two->start();
  for (int i = 0; i < 20; ++i) {
    RawClient client(bound->port());
    client.send(kGet);
    const auto name = client.read_response().body;
    EXPECT_TRUE(name == "one" || name == "two") << name;
  }
  EXPECT_EQ(front.connections.value(), 20u);
}

TEST_F(WorkerTest, TicksItsServicesOnItsThread) {
  const auto worker = make_worker("w");
  std::promise<std::thread::id> ticked;
  int ticks = 0;
  worker->on_tick([&](SteadyTime) {
    if (++ticks == 2) ticked.set_value(std::this_thread::get_id());
  });
  worker->start();
  EXPECT_NE(ticked.get_future().get(), std::this_thread::get_id());
}

TEST_F(WorkerTest, DrainsIdleConnectionsAndStopsAccepting) {
  const auto worker = make_worker("w");
  const auto bound = worker->listen(kAnyPort);
  ASSERT_TRUE(bound.has_value());
  worker->start();
  RawClient client(bound->port());
  client.send(kGet);
  EXPECT_EQ(client.read_response().status, 200);
  worker->begin_drain();
  EXPECT_TRUE(worker->wait_drained(std::chrono::steady_clock::now() + 10s));
  EXPECT_EQ(client.read_to_end(), "");
  RawClient late(bound->port());
  EXPECT_FALSE(late.send(kGet) && late.read_response().status != 0);
}

TEST_F(WorkerTest, DrainGivesUpAtItsDeadlineAndEndingDestroysWhatWaits) {
  auto worker = make_worker("w");
  const auto bound = worker->listen(kAnyPort);
  ASSERT_TRUE(bound.has_value());
  worker->start();
  RawClient client(bound->port());
  client.send(kNever);
  is_waiting.get_future().wait();
  worker->begin_drain();
  EXPECT_FALSE(worker->wait_drained(std::chrono::steady_clock::now()));
  worker.reset();
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_NE(metrics.expose().find("secondsight_connections 0"), std::string::npos);
}

TEST_F(WorkerTest, DrainsAtOnceWithoutSessions) {
  const auto worker = make_worker("w");
  worker->start();
  worker->begin_drain();
  EXPECT_TRUE(worker->wait_drained(std::chrono::steady_clock::now() + 10s));
}

TEST(Listener, SeesAPortInUse) {
  net::io_context io;
  const auto first = open_listener(io, kAnyPort);
  ASSERT_TRUE(first.has_value());
  const auto bound = first->local_endpoint();
  EXPECT_EQ(check_unused(bound).error(), net::error::address_in_use);
  EXPECT_TRUE(open_listener(io, bound).has_value());
}

TEST(Listener, ReadsNumericAddressesOnly) {
  EXPECT_EQ(endpoint_of({"::1", 80})->port(), 80);
  EXPECT_TRUE(endpoint_of({"localhost", 80}).has_error());
}

}  // namespace
}  // namespace secondsight::proxy
