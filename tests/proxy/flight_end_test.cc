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

/// Everything that may be under way at an end: flights that wait, gather, fill and pass, with
/// readers of both paces on both workers, some of whom have left.
TEST(FlightEnd, TheEndMayComeAtAnyTime) {
  const std::string body = body_of(6_MiB);
  for (unsigned seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    ScriptedOrigin origin([&](OriginConnection& connection) {
      const std::string request = connection.read_request();
      if (request.empty()) return;
      const std::size_t kind = static_cast<std::size_t>(request[5] - '0');
      if (kind == 0) return connection.checkpoint();
      const std::size_t bytes = kind == 1 ? 100'000 : body.size();
      const char* fields = kind == 3 ? "Cache-Control: no-store\r\n" : kFresh;
      connection.send(head_of(bytes, fields) + body.substr(0, bytes * kind / 5));
      connection.checkpoint();
    });
    RunningProxy proxy(
        origin.url(),
        [&](Settings& s) {
          fill_all(s);
          if (seed % 2 == 0) s.cache.memory_bytes = 4_MiB;
          if (seed % 3 == 0) s.admission.policy = PolicyName::SecondSighting;
        },
        std::make_unique<SimFileSystem>(seed));
    Clients clients;
    for (int i = 0; i < 24; ++i) {
      const auto kind = random() % 5;
      const std::string target = "/" + std::to_string(kind) + std::to_string(random() % 2);
      clients.push_back(ask(proxy, target, {}, random() % 3 == 0 ? kSlow : 0));
      if (kind != 0 && random() % 3 == 0) clients.back()->read_until("\r\n");
      if (kind > 1 && random() % 3 == 0) clients.back()->read_exactly(random() % 300'000);
      if (random() % 6 == 0) clients.back()->reset();
    }
    proxy.stop();
  }
}

/// Asks for everything twice; how many answers were cut. All that came has to be right.
int visit(const RunningProxy& proxy, const std::vector<std::string>& bodies) {
  int cut = 0;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      const RawResponse response = proxy.get("/" + std::to_string(i));
      EXPECT_TRUE(bodies[i].starts_with(response.body)) << i;
      if (!response.whole) {
        ++cut;
        continue;
      }
      EXPECT_EQ(response.status, 200);
      EXPECT_EQ(response.body.size(), bodies[i].size());
    }
  }
  return cut;
}

struct Trouble {
  const char* name;
  std::uint64_t memory_bytes;
  boost::system::errc::errc_t error;
};

class DiskTrouble : public ::testing::TestWithParam<Trouble> {
 protected:
  DiskTrouble() {
    for (std::size_t i = 0; i < 4; ++i) bodies_.push_back(body_of(2'000 * (i + 1), i));
    bodies_.push_back(body_of(1'500'000, 9));
    for (std::size_t i = 0; i < bodies_.size(); ++i)
      origin_.on("/" + std::to_string(i), ok(kFresh, bodies_[i]));
  }
  void change(Settings& s) const {
    s.admission.policy = PolicyName::Always;
    s.cache.disk_bytes = 8_MiB;
    s.cache.memory_bytes = GetParam().memory_bytes;
  }
  std::vector<std::string> bodies_;
  RoutedOrigin origin_;
};

INSTANTIATE_TEST_SUITE_P(
    FlightEnd, DiskTrouble,
    ::testing::Values(Trouble{"IoError", 0, boost::system::errc::io_error},
                      Trouble{"IoErrorWithMemory", 4_MiB, boost::system::errc::io_error},
                      Trouble{"NoSpace", 0, boost::system::errc::no_space_on_device}),
    [](const auto& row) { return std::string(row.param.name); });

TEST_P(DiskTrouble, NoFailedChangeReachesAClient) {
  std::uint64_t failed = 0;
  for (bool came_to_it = true; came_to_it && !HasFailure(); ++failed) {
    SCOPED_TRACE(failed);
    const auto gate = std::make_shared<DiskGate>();
    RunningProxy proxy(
        origin_.url(), [&](Settings& s) { change(s); },
        std::make_unique<GatedFileSystem>(std::make_unique<SimFileSystem>(failed), gate));
    const std::uint64_t at = gate->changes() + failed;
    gate->fail_change(at, GetParam().error);
    EXPECT_EQ(visit(proxy, bodies_), 0);
    proxy.drain();
    EXPECT_EQ(proxy.metric("secondsight_writer_queue_bytes"), 0);
    EXPECT_TRUE(eventually([&] { return proxy.metric("secondsight_flights") == 0; }));
    came_to_it = gate->changes() > at;
    proxy.try_disk_again();
    EXPECT_EQ(visit(proxy, bodies_), 0);
    proxy.drain();
    EXPECT_GT(proxy.metric("secondsight_index_objects"), 0);
  }
  EXPECT_GT(failed, 10U);
}

/// A read may fail after the first bytes of an answer have left: that one is cut, never wrong.
TEST_P(DiskTrouble, AFailedReadCostsOneAnswerAtMost) {
  std::uint64_t failed = 0;
  for (bool came_to_it = true; came_to_it && !HasFailure(); ++failed) {
    SCOPED_TRACE(failed);
    auto disk = std::make_unique<SimFileSystem>(failed);
    SimFileSystem& sim = *disk;
    RunningProxy proxy(
        origin_.url(), [&](Settings& s) { change(s); }, std::move(disk));
    const std::uint64_t at = sim.operations() + failed;
    sim.fail_operation(at, GetParam().error);
    EXPECT_LE(visit(proxy, bodies_), 1);
    proxy.drain();
    came_to_it = sim.operations() > at;
    EXPECT_EQ(proxy.metric("secondsight_writer_queue_bytes"), 0);
    if (came_to_it) {
      EXPECT_EQ(visit(proxy, bodies_), 0);
    }
  }
  EXPECT_GT(failed, 20U);
}

TEST_P(DiskTrouble, AFullDiskCostsHitsOnly) {
  auto disk = std::make_unique<SimFileSystem>(1);
  SimFileSystem& sim = *disk;
  RunningProxy proxy(
      origin_.url(), [&](Settings& s) { change(s); }, std::move(disk));
  sim.set_capacity_bytes(sim.bytes_used());
  EXPECT_EQ(visit(proxy, bodies_), 0);
  proxy.drain();
  EXPECT_EQ(proxy.metric("secondsight_index_objects"), 0);
  EXPECT_GT(proxy.metric("secondsight_disk_write_errors_total"), 0);
  sim.set_capacity_bytes(1_GiB);
  proxy.try_disk_again();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(visit(proxy, bodies_), 0);
  proxy.drain();
  EXPECT_EQ(proxy.metric("secondsight_index_objects"), static_cast<double>(bodies_.size()));
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
