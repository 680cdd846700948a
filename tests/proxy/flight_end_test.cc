#include <thread>

#include <gtest/gtest.h>

#include "tests/proxy/flight_fixture.h"
#include "tests/support/gated_file_system.h"
#include "tests/support/sim_file_system.h"

namespace secondsight::proxy::test {
namespace {

using namespace literals;
using secondsight::test::DiskGate;
using secondsight::test::GatedFileSystem;
using secondsight::test::SimFileSystem;
using std::chrono::hours;
using Clients = std::vector<std::unique_ptr<RawClient>>;

/// No memory tier, so that every body above 256 KiB is a fill; parts of 1 MiB.
void fill_all(Settings& s) {
  s.admission.policy = PolicyName::Always;
  s.cache.disk_bytes = 256_MiB;
  s.cache.memory_bytes = 0;
}

TEST(FlightEnd, AFillMayBeCommittedAfterItsWorkerIsGone) {
  const std::string body = body_of(1'500'000);  // two parts: less than what makes the origin wait
  ScriptedOrigin origin([&](OriginConnection& connection) {
    for (;;) {
      const std::string request = connection.read_request();
      if (request.empty()) return;
      if (!request.starts_with("GET /f")) return connection.checkpoint();
      connection.send(ok(kFresh, body));
    }
  });
  const auto gate = std::make_shared<DiskGate>();
  RunningProxy proxy(origin.url(), fill_all,
                     std::make_unique<GatedFileSystem>(std::make_unique<SimFileSystem>(1), gate));
  Clients waiting;  // cut when their worker is destroyed
  for (int i = 0; i < 16; ++i) waiting.push_back(ask(proxy, "/w" + std::to_string(i)));
  gate->close();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(proxy.get("/f" + std::to_string(i)).body == body);
  gate->wait_for_writer();
  std::thread opener([&] {
    for (const auto& client : waiting) EXPECT_TRUE(client->wait_closed());
    gate->open();
  });
  proxy.stop();
  opener.join();
}

TEST(FlightEnd, AFillGoesOnWithoutADiskThatHangs) {
  const std::string body = body_of(16_MiB);
  ScriptedOrigin origin([&](OriginConnection& connection) {
    if (connection.read_request().empty()) return;
    connection.send(ok(kFresh, body));
    connection.wait_for_close();
  });
  const auto gate = std::make_shared<DiskGate>();
  const auto patient = [](Settings& s) {
    fill_all(s);
    s.proxy.body_timeout = s.origin.idle_timeout = s.origin.response_timeout = hours{1'000};
  };
  RunningProxy proxy(origin.url(), patient,
                     std::make_unique<GatedFileSystem>(std::make_unique<SimFileSystem>(1), gate));
  gate->close();
  const auto client = ask(proxy, "/a");
  ASSERT_NE(client->read_until("\r\n\r\n"), "");
  gate->wait_for_writer();
  const std::string start = client->read_exactly(2_MiB);
  std::string rest;
  EXPECT_TRUE(eventually([&] {
    proxy.clock.advance(std::chrono::milliseconds{100});
    rest += client->read_some();
    return start.size() + rest.size() == body.size();
  }));
  EXPECT_TRUE(start + rest == body);
  gate->open();
  proxy.drain();
  EXPECT_EQ(proxy.metric("secondsight_index_objects"), 0);
  EXPECT_EQ(proxy.metric("secondsight_writer_queue_bytes"), 0);
}

TEST(FlightEnd, UploadsMayBeUnderWay) {
  ScriptedOrigin origin([](OriginConnection& connection) {
    connection.read_head();
    connection.wait_for_close();
  });
  for (int round = 0; round < 5; ++round) {
    RunningProxy proxy(origin.url());
    Clients clients;
    for (int i = 0; i < 8; ++i) {
      clients.push_back(std::make_unique<RawClient>(proxy.port()));
      clients.back()->send(
          "POST /a HTTP/1.1\r\nHost: example.test\r\nContent-Length: 1000\r\n\r\nhalf");
    }
    const std::size_t wanted = 8 * (static_cast<std::size_t>(round) + 1);
    ASSERT_TRUE(eventually([&] { return origin.connections() >= wanted; }));
    proxy.stop();
    for (const auto& client : clients) EXPECT_TRUE(client->wait_closed());
  }
}

}  // namespace
}  // namespace secondsight::proxy::test
